"""Every equation against numbers worked out by hand, and properties that hold for any numbers."""

import math

import hypothesis
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st

from consmarl.sharing import equations
from consmarl.sharing.equations import Messages
from consmarl.sharing.options import Normalisation
from tests.sharing.numbers import (
    boltzmann_policy,
    close,
    floats,
    fractions,
    policy_confidence,
    singles,
    some_examples,
    values_of,
)

E = math.e
NORMALISATIONS = list(Normalisation)

asking_probability = jax.jit(equations.asking_probability)
giving_probability = jax.jit(equations.giving_probability)
teacher_weights = jax.jit(equations.teacher_weights)
negative_weights = jax.jit(equations.negative_weight, static_argnums=(1, 2))
modified_probability = jax.jit(equations.modified_probability, static_argnames="normalisation")

# No agent has values of 2¹²⁷, but an infinity times zero would show up here first.
extreme_values = st.integers(2, 12).flatmap(lambda size: values_of(size, -(2.0**127), 2.0**127) | values_of(size))
visits = st.integers(0, 2**31 - 1).map(np.int32)
prestiges = singles(0.0, 2e4)  # √n·Γ with n up to four hundred million


# --- Eq. 1 and 2: asking and giving ---


@pytest.mark.parametrize(
    ("num_visits", "expected"),
    [(0, 1.0), (1, 2 / 3), (4, 4 / 9), (9, 8 / 27), (2, (2 / 3) ** math.sqrt(2))],  # (3/2)^−√n
)
def test_the_asking_probability_falls_with_the_root_of_visits(num_visits, expected):
    assert equations.asking_probability(jnp.int32(num_visits), 0.5) == close(expected)


def test_agents_in_cleanup_keep_asking_about_known_observations():
    # υ_a = 0.01, the paper's value for Cleanup: 1.01^−10 after a hundred visits
    assert equations.asking_probability(jnp.int32(100), 0.01) == close(0.9052870)


@pytest.mark.parametrize(
    ("num_visits", "values", "expected"),
    [
        (4, (0.0, 1.0), 0.84),  # 1 − (5/2)^−2 = 1 − 4/25
        (1, (-1.0, 0.0, 1.0), 0.84),  # √1·|1 − (−1)| = 2 again
        (9, (5.0, 4.0), 0.936),  # 1 − (2/5)³ = 1 − 8/125
        (0, (0.0, 100.0), 0.0),  # never seen: 1 − 1
        (10_000, (7.0, 7.0, 7.0), 0.0),  # the action does not matter
    ],
)
def test_the_giving_probability_rises_with_visits_and_importance(num_visits, values, expected):
    assert equations.giving_probability(jnp.int32(num_visits), floats(*values), 1.5) == close(expected)


@some_examples
@hypothesis.given(visits, singles(0.0009765625, 10.0))
def test_the_asking_probability_lies_between_0_and_1(num_visits, scale):
    assert 0 <= asking_probability(num_visits, scale) <= 1


@some_examples
@hypothesis.given(visits, values_of(5, -1e5, 1e5), singles(0.0009765625, 10.0))
def test_the_giving_probability_lies_between_0_and_1(num_visits, values, scale):
    assert 0 <= giving_probability(num_visits, values, scale) <= 1


# --- Eq. 4 and 5: policies and their confidence ---


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ((1, 0), 1),
        ((0, 0, 1, 0, 0), 1),
        ((1 / 2, 1 / 2), 0),
        ((1 / 4, 1 / 4, 1 / 4, 1 / 4), 0),
        ((3 / 4, 1 / 4), 1 / 2),  # σ = 1/4, and 2·(1/4)/√1
        ((1 / 2, 1 / 2, 0), 1 / 2),  # σ² = (1/36 + 1/36 + 4/36)/3 = 1/18, and 3/√18/√2 = 3/6
        ((1 / 2, 1 / 4, 1 / 4, 0), 1 / math.sqrt(6)),  # σ² = (1/16 + 1/16)/4 = 1/32, and 4/√32/√3 = 4/√96
    ],
)
def test_confidence_is_the_normalised_standard_deviation(policy, expected):
    assert equations.policy_confidence(floats(*policy)) == close(expected)


@pytest.mark.parametrize(
    ("values", "temperature", "expected"),
    [
        ((1, 0), 1.0, (E / (E + 1), 1 / (E + 1))),
        ((math.log(3), 0), 1.0, (3 / 4, 1 / 4)),
        ((math.log(3), 0), 0.5, (9 / 10, 1 / 10)),  # e^(2·ln 3) = 9
        ((math.log(9), 0), 2.0, (3 / 4, 1 / 4)),  # e^(ln 9 / 2) = 3
        ((-2, -2, -2), 1.0, (1 / 3, 1 / 3, 1 / 3)),
        ((1000, 0), 1.0, (1, 0)),  # e^1000 overflows any float
        ((-1000, -1000), 1.0, (1 / 2, 1 / 2)),  # and e^−1000 underflows to 0
    ],
)
def test_the_policy_is_the_softmax_of_the_values(values, temperature, expected):
    assert equations.boltzmann_policy(floats(*values), temperature).tolist() == close(list(expected))


@some_examples
@hypothesis.given(extreme_values)
def test_policies_add_up_to_one_and_confidence_lies_between_0_and_1(values):
    policy = np.asarray(boltzmann_policy(values))
    assert ((policy >= 0) & (policy <= 1)).all()
    assert policy.sum() == close(1)
    assert 0 <= policy_confidence(policy) <= 1


@some_examples
@hypothesis.given(extreme_values)
def test_a_deterministic_policy_has_full_confidence_and_a_uniform_one_none(values):
    size = len(values)
    certain = np.zeros(size, np.float32)
    certain[int(np.argmax(values))] = 1
    assert policy_confidence(certain) == close(1)
    assert policy_confidence(np.full(size, 1 / size, np.float32)) == close(0)


# --- Eq. 6 and 7: who may teach, and a teacher's prestige ---


@pytest.mark.parametrize(
    ("teacher_visits", "teacher_values", "expected"),
    [
        (6, (0.0, 1.0), True),  # met it more often
        (4, (0.0, 3.0), True),  # expects more
        (6, (0.0, 3.0), True),  # both
        (4, (0.0, 1.0), False),
        (5, (2.0, -9.0), False),  # equal visits and an equal maximum are not enough
        (4, (1.9, 1.9), False),  # a higher mean is not a higher maximum
    ],
)
def test_teachers_have_more_or_better_experience(teacher_visits, teacher_values, expected):
    student_visits, student_values = jnp.int32(5), floats(2.0, -8.0)
    knows_more = equations.has_more_or_better_experience(
        jnp.int32(teacher_visits), student_visits, floats(*teacher_values), student_values
    )
    assert bool(knows_more) is expected


@pytest.mark.parametrize(
    ("teacher_visits", "teacher_values", "margin", "is_familiar", "is_hopeful"),
    [
        (6, (0.0, 1.0), 0.0, True, False),  # the student met it 5 times, and expects 2
        (4, (0.0, 3.0), 0.0, False, True),
        (5, (2.0, -9.0), 0.0, False, False),  # equal visits and an equal maximum are not enough
        (6, (0.0, 3.0), 0.5, True, True),  # 3 > 2 + 0.5
        (6, (0.0, 3.0), 1.0, True, False),  # 3 is not more than 2 + 1
        (0, (-1.0, 3.5), 1.0, False, True),
    ],
)
def test_each_condition_for_teachers_can_be_used_alone(teacher_visits, teacher_values, margin, is_familiar, is_hopeful):
    visits, values = (jnp.int32(teacher_visits), jnp.int32(5)), (floats(*teacher_values), floats(2.0, -8.0))
    assert bool(equations.is_more_familiar(*visits)) is is_familiar
    assert bool(equations.is_more_hopeful(*values, margin)) is is_hopeful
    assert bool(equations.has_more_or_better_experience(*visits, *values, margin)) is (is_familiar or is_hopeful)


@pytest.mark.parametrize(
    ("num_visits", "confidence", "expected"),
    [(9, 0.5, 1.5), (0, 1.0, 0.0), (2, 1.0, math.sqrt(2)), (500_000, 1.0, 707.1068), (16, 0.0, 0.0)],
)
def test_prestige_is_familiarity_times_confidence(num_visits, confidence, expected):
    assert equations.prestige(jnp.int32(num_visits), jnp.float32(confidence)) == close(expected)


# --- Eq. 8: the weight of negative knowledge ---

EPISODES = (5_000, 10_000, 20_000, 50_000, 80_000)

# The end of section D of the specification, with e_i = 5000: at a = −0.5, h(20,000) = 1/(0.0003·20,000 − 0.5) = 2/11.
WEIGHTS = {
    0.0: (1, 0.5, 0.25, 0.1, 0.0625),  # PGM
    -0.5: (1, 0.4, 0.182, 0.069, 0.043),  # Cleanup
    0.3: (1, 0.588, 0.323, 0.137),  # FT, the paper
    0.7: (1, 0.769, 0.526, 0.270),  # FT, the authors' code
}


@pytest.mark.parametrize("shape", WEIGHTS)
def test_the_weight_of_negative_knowledge_falls_as_in_the_paper(shape):
    expected = WEIGHTS[shape]
    weights = equations.negative_weight(jnp.array(EPISODES[: len(expected)]), 5_000, shape)
    assert weights.tolist() == pytest.approx(list(expected), abs=5e-4)  # printed with three decimal places


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (0.0, (1, 1 / 2, 1 / 4, 1 / 10, 1 / 16)),
        (-0.5, (1, 2 / 5, 2 / 11, 2 / 29, 2 / 47)),
        (0.3, (1, 10 / 17, 10 / 31, 10 / 73, 10 / 115)),
        (0.7, (1, 10 / 13, 10 / 19, 10 / 37, 10 / 55)),
        (1.0, (1, 1, 1, 1, 1)),
    ],
)
def test_the_weight_of_negative_knowledge_is_a_hyperbola(shape, expected):
    assert equations.negative_weight(jnp.array(EPISODES), 5_000, shape).tolist() == close(list(expected))


shapes = st.floats(-4.0, 1.0)  # a
start_episodes = st.sampled_from([1, 3, 500, 5_000, 100_000])


@hypothesis.settings(some_examples, max_examples=40)  # every pair of settings compiles
@hypothesis.given(start_episodes, shapes, st.lists(st.integers(1, 10**6), min_size=8, max_size=8))
def test_weights_lie_between_0_and_1_once_sharing_starts_and_never_rise(start_episode, shape, episodes_since):
    # sharing is on in episodes after e_i; `since` is at least 1
    since = np.sort(np.array(episodes_since, np.int32))
    negative = np.asarray(negative_weights(start_episode + since, start_episode, shape))
    positive = 1 - negative
    assert ((negative > 0) & (negative <= 1)).all()
    assert ((positive >= 0) & (positive < 1)).all()
    assert (negative + positive).tolist() == close([1.0] * 8)
    assert (np.diff(negative) <= 0).all()


@pytest.mark.parametrize("shape", [0.0, -0.5, 0.3, 0.7])
def test_weights_lie_between_0_and_1_in_the_episode_in_which_sharing_starts(shape):
    starts = (1, 100, 2_500, 5_000, 20_000, 100_000)
    negative = [negative_weights(jnp.int32(start), start, shape).item() for start in starts]
    assert negative == close([1.0] * len(starts))
    assert max(negative) <= 1  # otherwise w_p = 1 − w_n would be negative


# --- Eq. 10: the weights of teachers ---


@pytest.mark.parametrize(
    ("told", "is_counted", "expected"),
    [
        ((0, math.log(3)), (True, True), (1 / 4, 3 / 4)),
        ((0, math.log(3), 50), (True, True, False), (1 / 4, 3 / 4, 0)),
        ((5, 9), (True, False), (1, 0)),
        ((5, 9), (False, False), (0, 0)),
        ((2, 2, 2, 2), (True, True, False, True), (1 / 3, 1 / 3, 0, 1 / 3)),
    ],
)
def test_teachers_are_weighted_by_the_exponential_of_prestige(told, is_counted, expected):
    weights = equations.teacher_weights(floats(*told), jnp.array(is_counted))
    assert weights.tolist() == close(list(expected))


@pytest.mark.parametrize(
    ("told", "is_counted", "expected"),
    [
        ((2000, 0), (True, True), (1, 0)),
        ((2000, 2000), (True, True), (1 / 2, 1 / 2)),
        ((2000, 1999), (True, True), (E / (E + 1), 1 / (E + 1))),
        (
            (2000, 0, math.log(3)),
            (False, True, True),
            (0, 1 / 4, 3 / 4),
        ),  # a teacher that does not count does not drown out the others
        ((2000, 0), (False, False), (0, 0)),
    ],
)
def test_high_prestige_does_not_overflow_in_teacher_weights(told, is_counted, expected):
    weights = equations.teacher_weights(floats(*told), jnp.array(is_counted))
    assert weights.tolist() == close(list(expected))


@some_examples
@hypothesis.given(st.lists(st.tuples(prestiges, st.booleans()), min_size=6, max_size=6))
def test_teacher_weights_add_up_to_one_or_are_all_zero(teachers):
    told, is_counted = (np.array(column) for column in zip(*teachers, strict=True))
    weights = np.asarray(teacher_weights(told.astype(np.float32), is_counted))
    assert weights.sum() == close(1.0 if is_counted.any() else 0.0)
    assert (weights[~is_counted] == 0).all()
    assert ((weights >= 0) & (weights <= 1)).all()


# --- Eq. 9: the modified probability ---

NONE = -1  # names no action


def messages(*teachers):
    """One tuple per teacher: best action, its probability, worst action, its probability, prestige, is sent."""
    best, best_probability, worst, worst_probability, told, is_sent = zip(*teachers, strict=True)
    probabilities = (np.array(row, np.float32) for row in (best_probability, worst_probability, told))
    best_probability, worst_probability, told = probabilities
    return Messages(np.array(best), best_probability, np.array(worst), worst_probability, told, np.array(is_sent))


def modified(told, normalisation, *, action=1, probability=0.2, negative=0.5, rate=0.6):
    after = modified_probability(action, probability, told, 1 - negative, negative, rate, normalisation)
    return after.probability.item(), after.is_raised.item(), after.is_lowered.item()


ONE_OF_TWO_RAISES = messages(
    (1, 0.6, 0, 0.0, math.log(3), True),
    (1, 0.1, 0, 0.0, 0.0, True),  # rates it lower than the student, but still has 1/4 of the weight
)
ONE_OF_TWO_LOWERS = messages(
    (0, 0.9, 1, 0.05, 0.0, True),
    (0, 0.9, 1, 0.3, math.log(3), True),  # rates its worst action higher than the student: 3/4 of the weight
)


@pytest.mark.parametrize(
    ("told", "normalisation", "expected"),
    [
        (ONE_OF_TWO_RAISES, Normalisation.ALL_NAMING, (0.29, True, False)),  # 0.2 + ½·0.6·¾·(0.6 − 0.2)
        (ONE_OF_TWO_RAISES, Normalisation.PASSING, (0.32, True, False)),  # 0.2 + ½·0.6·1·(0.6 − 0.2)
        (ONE_OF_TWO_LOWERS, Normalisation.ALL_NAMING, (0.18875, False, True)),  # 0.2 + ½·0.6·¼·(0.05 − 0.2)
        (ONE_OF_TWO_LOWERS, Normalisation.PASSING, (0.155, False, True)),  # 0.2 + ½·0.6·1·(0.05 − 0.2)
    ],
)
def test_normalisations_differ_if_not_all_teachers_that_name_an_action_pass(told, normalisation, expected):
    assert modified(told, normalisation) == close(expected)


@pytest.mark.parametrize("normalisation", NORMALISATIONS)
def test_all_teachers_that_pass_are_weighted_by_prestige(normalisation):
    told = messages((1, 0.6, 0, 0.0, math.log(3), True), (1, 0.4, 0, 0.0, 0.0, True))
    # 0.2 + ½·0.6·(¾·0.4 + ¼·0.2)
    assert modified(told, normalisation) == close((0.305, True, False))


@pytest.mark.parametrize("normalisation", NORMALISATIONS)
def test_positive_and_negative_knowledge_apply_together_with_their_own_weights(normalisation):
    told = messages((1, 0.7, 0, 0.0, 8.0, True), (0, 0.9, 1, 0.1, 2.0, True))
    # 0.2 + ¾·0.6·0.5 − ¼·0.6·0.1: prestige matters within each kind of knowledge, not between the two
    assert modified(told, normalisation, negative=0.25) == close((0.41, True, True))


@pytest.mark.parametrize("normalisation", NORMALISATIONS)
@pytest.mark.parametrize(
    "told",
    [
        messages((0, 0.9, 2, 0.01, 3.0, True)),  # names other actions
        messages((1, 0.9, 2, 0.01, 3.0, False), (0, 0.9, 1, 0.01, 3.0, False)),  # names it, but the message is not sent
        messages((1, 0.2, 0, 0.01, 3.0, True), (0, 0.9, 1, 0.2, 3.0, True)),  # agrees: neither > nor <
        messages((1, 0.1, 0, 0.01, 3.0, True), (0, 0.9, 1, 0.3, 3.0, True)),  # best rated lower, worst rated higher
        messages((NONE, 0.0, NONE, 0.0, 0.0, False)),
    ],
)
def test_the_probability_is_unchanged_if_no_teacher_passes(told, normalisation):
    probability = np.float32(0.2).item()
    assert modified(told, normalisation) == (probability, False, False)


@pytest.mark.parametrize("normalisation", NORMALISATIONS)
def test_messages_that_are_not_sent_have_no_weight(normalisation):
    told = messages((1, 0.6, 0, 0.0, 0.0, True), (1, 1.0, 0, 0.0, 50.0, False))
    assert modified(told, normalisation) == close((0.32, True, False))  # 0.2 + ½·0.6·0.4


@pytest.mark.parametrize("normalisation", NORMALISATIONS)
def test_knowledge_without_weight_passes_the_indicator_and_changes_nothing(normalisation):
    told = messages((1, 0.9, 0, 0.0, 1.0, True))
    assert modified(told, normalisation, negative=1.0) == (np.float32(0.2).item(), True, False)


@pytest.mark.parametrize("normalisation", NORMALISATIONS)
def test_high_prestige_does_not_overflow_in_modified_probabilities(normalisation):
    told = messages((1, 0.6, 0, 0.0, 2000.0, True), (1, 0.4, 0, 0.0, 0.0, True), (0, 0.9, 1, 0.1, 2000.0, True))
    # 0.2 + ½·0.6·(1·0.4 + 0·0.2) − ½·0.6·0.1
    assert modified(told, normalisation) == close((0.29, True, True))


said = st.tuples(st.integers(0, 2), fractions, st.integers(0, 2), fractions, prestiges, st.booleans())


@pytest.mark.parametrize("normalisation", NORMALISATIONS)
@some_examples
@hypothesis.given(st.lists(said, min_size=5, max_size=5), fractions, fractions, singles(0.0078125, 1.0))
def test_probabilities_move_only_towards_those_of_the_teachers(normalisation, teachers, probability, negative, rate):
    told = messages(*teachers)
    after = modified_probability(np.int32(1), probability, told, 1 - negative, negative, rate, normalisation)
    better = told.is_sent & (told.best_action == 1) & (told.best_probability > probability)
    worse = told.is_sent & (told.worst_action == 1) & (told.worst_probability < probability)
    highest = max([probability, *told.best_probability[better]])
    lowest = min([probability, *told.worst_probability[worse]])
    assert bool(after.is_raised) is bool(better.any())
    assert bool(after.is_lowered) is bool(worse.any())
    assert lowest - 1e-6 <= after.probability <= highest + 1e-6
    assert -1e-6 <= after.probability <= 1 + 1e-6
    if not worse.any():
        assert after.probability >= probability
    if not better.any():
        assert after.probability <= probability
