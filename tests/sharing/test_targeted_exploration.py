"""Algorithm 1 (targeted exploration) and drawing by weight: examples worked out by hand, and general properties."""

import math

import hypothesis
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st

from consmarl.sharing import equations
from tests.sharing.numbers import (
    BEFORE_ONE,
    SIZES,
    close,
    floats,
    fractions,
    policies,
    singles,
    some_examples,
)

draw_action = jax.jit(equations.draw_action)
targeted_exploration = jax.jit(equations.targeted_exploration)
draws_of_actions = jax.jit(jax.vmap(equations.draw_action, (None, 0)))
explorations = jax.jit(jax.vmap(equations.targeted_exploration, (None, None, 0, 0)))

draws = singles(0.0, float(BEFORE_ONE)).map(np.float32)
ALL_DRAWS = np.append(np.linspace(0, 1, 1000, endpoint=False), BEFORE_ONE).astype(np.float32)


def explored(policy, confidence):
    """The actions that Algorithm 1 may draw if it does not simply take the best, and how many it excludes."""
    # a `whether` of 1 is never drawn, but ensures that the best action is not taken directly
    drawn = explorations(floats(*policy), jnp.float32(confidence), np.ones_like(ALL_DRAWS), ALL_DRAWS)
    (num_excluded,) = set(drawn.num_excluded.tolist())
    assert not drawn.is_best.any()
    return set(drawn.action.tolist()), num_excluded


@pytest.mark.parametrize("size", SIZES)
def test_intervals_of_confidence_are_closed_above(size):
    policy = np.arange(1, size + 1) / sum(range(1, size + 1))
    for number in range(1, size):  # q
        upper = number / (size - 1)
        for confidence in (upper, upper - 1e-4, upper - 1 / (size - 1) + 1e-4):
            actions, num_excluded = explored(policy, confidence)
            assert num_excluded == number
            assert actions == set(range(number, size))  # the policy rises with the action's number


@pytest.mark.parametrize("size", SIZES)
def test_no_confidence_excludes_one_action(size):
    policy = np.arange(size, 0, -1) / sum(range(1, size + 1))
    actions, num_excluded = explored(policy, 0.0)
    assert num_excluded == 1
    assert actions == set(range(size - 1))


@pytest.mark.parametrize(
    ("policy", "confidence", "expected"),
    [
        ((0.25, 0.25, 0.25, 0.25), 0.0, {1, 2, 3}),
        ((0.25, 0.25, 0.25, 0.25), 0.5, {2, 3}),  # in (1/3, 2/3]
        ((0.25, 0.25, 0.25, 0.25), 0.9, {3}),
        ((0.1, 0.7, 0.1, 0.1), 0.3, {1, 2, 3}),
        ((0.1, 0.7, 0.1, 0.1), 0.6, {1, 3}),
        ((0.4, 0.1, 0.4, 0.1), 0.9, {2}),
    ],
)
def test_ties_among_bad_actions_exclude_the_lowest_number_first(policy, confidence, expected):
    assert explored(policy, confidence)[0] == expected


@pytest.mark.parametrize(("policy", "best"), [((0.7, 0.3), 0), ((0.3, 0.7), 1)])
@pytest.mark.parametrize("confidence", [0.0, 0.4, 1.0])
def test_only_the_better_of_two_actions_is_left(policy, best, confidence):
    assert explored(policy, confidence) == ({best}, 1)


def test_the_best_action_is_taken_with_a_probability_equal_to_the_confidence():
    policy = floats(0.2, 0.5, 0.3)
    for whether, expected in ((0.0, True), (0.3999, True), (0.4, False), (BEFORE_ONE, False)):
        drawn = targeted_exploration(policy, jnp.float32(0.4), jnp.float32(whether), jnp.float32(BEFORE_ONE))
        assert drawn.is_best.item() is expected
        assert drawn.action == (1 if expected else 2)  # 0 is excluded, and the largest draw falls on 2
        assert drawn.num_excluded == (0 if expected else 1)


def test_full_confidence_always_takes_the_best_action_and_zero_confidence_draws():
    policy = floats(0.2, 0.5, 0.3)
    assert targeted_exploration(policy, jnp.float32(1), BEFORE_ONE, BEFORE_ONE).is_best
    assert not targeted_exploration(policy, jnp.float32(0), jnp.float32(0), jnp.float32(0)).is_best


@pytest.mark.parametrize(
    ("temperature", "confidence", "num_excluded", "probability"),
    [(0.3, 0.844, 4, 1.0), (1.0, 0.256, 2, 0.685)],  # specification, A.3, step 7
)
def test_the_temperature_determines_the_students_confidence(temperature, confidence, num_excluded, probability):
    """Even if p̃ is 1 for one of five actions and 0 for the rest, the new policy depends on the temperature."""
    policy = equations.boltzmann_policy(floats(0, 0, 1, 0, 0), temperature)
    sureness = equations.policy_confidence(policy).item()
    assert sureness == pytest.approx(confidence, abs=5e-4)
    # one action with x = e^(1/κ) against four with 1 each: Γ̃ = (5·x/(x + 4) − 1)/4 = (x − 1)/(x + 4)
    odds = math.exp(1 / temperature)
    assert sureness == close((odds - 1) / (odds + 4))
    assert explored(policy, sureness)[1] == num_excluded
    others_left = 4 - num_excluded
    best = sureness + (1 - sureness) * odds / (odds + others_left)  # Γ̃ + (1 − Γ̃)·Π(best)
    assert best == pytest.approx(probability, abs=5e-4)
    assert frequencies(policy, sureness)[2] == pytest.approx(probability, abs=0.01)


NUM_WHETHER, NUM_WHICH = 64, 256
GRID = [((np.arange(num) + 0.5) / num).astype(np.float32) for num in (NUM_WHETHER, NUM_WHICH)]
WHETHER, WHICH = (axis.reshape(-1) for axis in np.meshgrid(*GRID))


def frequencies(policy, confidence):
    """The share of each action over an even grid of both draws."""
    actions = explorations(policy, jnp.float32(confidence), WHETHER, WHICH).action
    return np.bincount(actions, minlength=len(policy)) / len(WHICH)


@hypothesis.settings(some_examples, max_examples=40)
@hypothesis.given(policies, fractions)
def test_actions_have_the_expected_frequencies(policy, confidence):
    policy = np.asarray(policy)
    size = len(policy)
    is_boundary = abs(confidence * (size - 1) - round(confidence * (size - 1))) < 1e-5
    hypothesis.assume(not is_boundary or confidence == 0)  # rounding decides; boundaries have their own test
    num_excluded = max(math.ceil(confidence * (size - 1)), 1)
    left = policy.astype(float)
    left[np.argsort(policy, stable=True)[:num_excluded]] = 0
    expected = (1 - confidence) * left / left.sum()
    expected[np.argmax(policy)] += confidence
    # a grid of N draws measures the length of an interval to within 1/N
    difference = np.abs(frequencies(policy, confidence) - expected)
    assert difference.max() <= 1 / NUM_WHETHER + 1 / NUM_WHICH


@some_examples
@hypothesis.given(policies, fractions, draws, st.just(BEFORE_ONE) | st.just(np.float32(0)) | draws)
def test_the_worst_actions_are_never_explored(policy, confidence, whether, which):
    policy = np.asarray(policy)
    drawn = targeted_exploration(policy, confidence, whether, which)
    if drawn.is_best:
        assert drawn.action == np.argmax(policy)
    else:
        assert 1 <= drawn.num_excluded <= len(policy) - 1
        assert drawn.action not in np.argsort(policy, stable=True)[: drawn.num_excluded]


@pytest.mark.parametrize(
    ("weights", "draw", "expected"),
    [
        ((0, 1, 0, 3), 0.0, 1),
        ((0, 1, 0, 3), 0.2499, 1),
        ((0, 1, 0, 3), 0.25, 3),  # 1 does not exceed ¼·4; action 2 has no weight and is skipped
        ((0, 1, 0, 3), BEFORE_ONE, 3),
        ((0, 1, 3, 0), BEFORE_ONE, 2),
        ((1, 1, 2, 0, 0), 0.5, 2),
        ((0, 0, 1e-30, 0), 0.0, 2),
        ((0, 0, 1e-30, 0), BEFORE_ONE, 2),
    ],
)
def test_drawing_skips_actions_without_weight(weights, draw, expected):
    assert equations.draw_action(floats(*weights), jnp.float32(draw)) == expected


some_weights = st.sampled_from(SIZES).flatmap(
    lambda size: st.lists(st.just(0.0) | singles(0.0009765625, 1.0), min_size=size, max_size=size)
)


@some_examples
@hypothesis.given(some_weights.filter(any))
def test_actions_are_drawn_in_proportion_to_their_weights(weights):
    weights = np.array(weights, np.float32)
    actions = np.asarray(draws_of_actions(weights, ALL_DRAWS))
    assert (weights[actions] > 0).all()
    shares = np.bincount(actions, minlength=len(weights)) / len(ALL_DRAWS)
    assert np.abs(shares - weights / weights.sum()).max() <= 2 / len(ALL_DRAWS)
