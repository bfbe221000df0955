"""The effect of each answer, compared with plain loops and with the numbers that the mechanisms computed."""

import functools
import itertools
import math

import hypothesis
import jax
import numpy as np
import pytest
from hypothesis import strategies as st

from consmarl import AdHocTD, Cons
from consmarl.experiments.exchanges import RecordedEpisode
from consmarl.sharing.options import Gained, Knowledge, Normalisation, Sampling
from consmarl.sharing.record import Reply
from consmarl.sharing.requests import Draws, Request, Teachers, willing, within_budget
from consmarl.viewer.absorbed import absorbed

NUM_STEPS, NUM_AGENTS, NUM_ACTIONS = 40, 3, 4
BEFORE = (0.4, 0.3, 0.2, 0.1)  # the policy of students in hand-made requests


def episode(requests, teachers, own, done):
    """An episode with these requests; `own` and `done` are the students' actions, by request."""
    steps = {
        "rewards": np.zeros((NUM_STEPS, NUM_AGENTS), np.float32),
        "own_action": np.zeros((NUM_STEPS, NUM_AGENTS), np.uint8),
        "action": np.zeros((NUM_STEPS, NUM_AGENTS), np.uint8),
    }
    steps["own_action"][requests["step"], requests["student"]] = own
    steps["action"][requests["step"], requests["student"]] = done
    return RecordedEpisode({"episode": 0, "kind": "training"}, steps, requests, teachers, {})


def asked_by(students, steps=None):
    steps = range(len(students)) if steps is None else steps
    return {"step": np.array(steps, np.int32), "student": np.array(students, np.int32)}


def hand_made(*requests, negative_weight=0.5):
    """An episode with a request per step: (own, done, answers (agent, best, p, worst, p, prestige), changes)."""
    teachers = {
        name: np.zeros((len(requests), NUM_AGENTS), kind)
        for name, kind in dict(reply=np.uint8, best_action=np.uint8, worst_action=np.uint8, best_probability=np.float32,
                               worst_probability=np.float32, prestige=np.float32).items()
    }  # fmt: skip
    for row, (_, _, answers, _) in enumerate(requests):
        for agent, *said in answers:
            teachers["reply"][row, agent] = Reply.ANSWERED
            names = ("best_action", "best_probability", "worst_action", "worst_probability", "prestige")
            for name, value in zip(names, said, strict=True):
                teachers[name][row, agent] = value
    changes = [each[3] for each in requests]
    students = asked_by([change.get("student", 0) for change in changes]) | {
        "policy_before": np.array([change.get("before", BEFORE) for change in changes], np.float32),
        "policy_after": np.array([change.get("after", BEFORE) for change in changes], np.float32),
        "num_excluded": np.array([change.get("num_excluded", 0) for change in changes], np.uint8),
        "negative_weight": np.full(len(requests), negative_weight, np.float32),
        "is_advised": np.array([change.get("is_advised", True) for change in changes]),
    }
    own, done = ([each[at] for each in requests] for at in (0, 1))
    return episode(students, teachers, own, done)


@functools.partial(jax.jit, static_argnums=0)
def exchanges(sharing, requests, teachers, draws, has_budget):
    def one(request, of_teachers, drawn, can_pay):
        replies = within_budget(sharing, willing(sharing, request, of_teachers, drawn), can_pay)
        return sharing.exchange(request, of_teachers, replies, drawn)

    return jax.vmap(one)(requests, teachers, draws, has_budget)


def random_episode(sharing, seed, num_requests=NUM_STEPS * NUM_AGENTS):
    """An episode with random values, visits and budgets, in which the mechanism itself computes the exchanges."""
    random = np.random.default_rng(seed)
    pairs = np.array(list(itertools.product(range(NUM_STEPS), range(NUM_AGENTS))))
    pairs = pairs[np.sort(random.permutation(len(pairs))[:num_requests])]
    values = random.normal(size=(num_requests, NUM_AGENTS + 1, NUM_ACTIONS))
    values *= random.choice([0.1, 1.0, 4.0], (num_requests, 1, 1))
    is_rounded = random.random((num_requests, NUM_AGENTS + 1, 1)) < 0.3
    values = np.where(is_rounded, np.round(values), values).astype(np.float32)  # ties, also among all actions
    thinks_alike = random.random((num_requests, NUM_AGENTS)) < 0.1
    values[:, 1:][thinks_alike] = np.broadcast_to(values[:, :1], values[:, 1:].shape)[thinks_alike]
    visits = random.choice([0, 1, 2, 9, 400], (num_requests, NUM_AGENTS + 1)).astype(np.int32)
    episodes = random.integers(1, 50, num_requests).astype(np.int32)
    request = Request(pairs[:, 1].astype(np.int32), values[:, 0], visits[:, 0], episodes)
    draws = Draws(*random.random((2, num_requests), np.float32), random.random((num_requests, NUM_AGENTS), np.float32))
    has_budget = random.random((num_requests, NUM_AGENTS)) < 0.9
    student, teachers = jax.device_get(
        exchanges(sharing, request, Teachers(values[:, 1:], visits[:, 1:]), draws, has_budget)
    )
    own = random.integers(0, NUM_ACTIONS, num_requests).astype(np.uint8)
    done = np.where(student.is_advised, student.action, own)
    requests = asked_by(pairs[:, 1], pairs[:, 0]) | student._asdict()
    return episode(requests, teachers._asdict(), own, done)


CASES = {
    "paper": Cons(start_episode=10),
    "passing": Cons(start_episode=10, normalisation=Normalisation.PASSING, gained=Gained.TEACHER_PASSED),
    "half and half": Cons(knowledge=Knowledge.FIXED, update_rate=1.0, temperature=0.1),
    "half and half, passing": Cons(knowledge=Knowledge.FIXED, update_rate=0.3, normalisation=Normalisation.PASSING),
    "negative only": Cons(knowledge=Knowledge.NEGATIVE_ONLY, gained=Gained.TEACHER_PASSED),
    "positive only": Cons(knowledge=Knowledge.POSITIVE_ONLY, sampling=Sampling.PLAIN),
}


@pytest.fixture(scope="module", params=CASES)
def played(request):
    """A mechanism, and an episode in which it handled random requests."""
    sharing = CASES[request.param]
    return sharing, random_episode(sharing, seed=len(request.param))


def test_the_effects_of_answers_add_up_to_the_modified_probabilities(played):
    sharing, recorded = played
    found, requests, teachers = absorbed(recorded, sharing), recorded.requests, recorded.teachers
    assert found.raises.sum() + found.lowers.sum() > 50
    for row, before in enumerate(requests["policy_before"].astype(np.float64)):
        expected, w_n = before.copy(), float(requests["negative_weight"][row])
        for teacher in range(NUM_AGENTS):
            best, worst = teachers["best_action"][row, teacher], teachers["worst_action"][row, teacher]
            if found.raises[row, teacher]:
                pull = float(teachers["best_probability"][row, teacher]) - before[best]
                expected[best] += sharing.update_rate * (1 - w_n) * float(found.best_share[row, teacher]) * pull
            if found.lowers[row, teacher]:
                pull = float(teachers["worst_probability"][row, teacher]) - before[worst]
                expected[worst] += sharing.update_rate * w_n * float(found.worst_share[row, teacher]) * pull
        np.testing.assert_allclose(requests["modified"][row], expected, rtol=0, atol=1e-6)


def weights_by_hand(prestige, is_counted):
    largest = max((prestige[each] for each in is_counted), default=0.0)
    parts = {each: math.exp(prestige[each] - largest) for each in is_counted}
    return {each: part / sum(parts.values()) for each, part in parts.items()}


def test_shares_follow_equation_10(played):
    sharing, recorded = played
    found, teachers = absorbed(recorded, sharing), recorded.teachers
    for row, before in enumerate(recorded.requests["policy_before"]):
        for kind, share, sign in (("best", found.best_share, 1), ("worst", found.worst_share, -1)):
            named, told = teachers[f"{kind}_action"][row], teachers[f"{kind}_probability"][row]
            sent = [each for each in range(NUM_AGENTS) if teachers["reply"][row, each] == Reply.ANSWERED]
            passing = [each for each in sent if sign * (told[each] - before[named[each]]) > 0]
            counted = sent if sharing.normalisation is Normalisation.ALL_NAMING else passing
            expected = np.zeros(NUM_AGENTS)
            for action in range(NUM_ACTIONS):
                group = [each for each in counted if named[each] == action]
                for each, weight in weights_by_hand(teachers["prestige"][row].astype(float), group).items():
                    expected[each] = weight
            np.testing.assert_allclose(share[row], expected, rtol=1e-5, atol=1e-7)


def counted_by_hand(recorded):
    """Apply the rules of the module's docstring to one request and one teacher at a time."""
    requests, teachers, rules = recorded.requests, recorded.teachers, {}
    for row, (step, student) in enumerate(zip(requests["step"], requests["student"], strict=True)):
        own, done = recorded.steps["own_action"][step, student], recorded.steps["action"][step, student]
        w_n, is_advised = requests["negative_weight"][row], requests["is_advised"][row]
        for teacher in range(NUM_AGENTS):
            best, worst = teachers["best_action"][row, teacher], teachers["worst_action"][row, teacher]
            answers = teachers["reply"][row, teacher] == Reply.ANSWERED
            before = requests["policy_before"][row]
            raises = answers and w_n < 1 and teachers["best_probability"][row, teacher] > before[best]
            lowers = answers and w_n > 0 and teachers["worst_probability"][row, teacher] < before[worst]
            changed = bool(is_advised) and done != own
            rules[row, teacher] = (raises, lowers, raises and changed and done == best,
                                   lowers and changed and own == worst, changed)  # fmt: skip
    return rules


def assert_counted_as_by_hand(found, recorded):
    for (row, teacher), expected in counted_by_hand(recorded).items():
        rows = (found.raises, found.lowers, found.raise_changed, found.lower_changed)
        assert (*(bool(each[row, teacher]) for each in rows), bool(found.is_changed[row])) == expected


def test_answers_of_random_episodes_are_counted_by_the_rules(played):
    sharing, recorded = played
    found = absorbed(recorded, sharing)
    assert_counted_as_by_hand(found, recorded)
    assert found.is_changed.sum() > 10
    assert found.raise_changed.sum() + found.lower_changed.sum() > 10


def worst_by_hand(policy, count):
    return sorted(range(NUM_ACTIONS), key=lambda action: (policy[action], action))[:count]


def test_excluded_actions_are_the_worst_of_the_new_policy(played):
    sharing, recorded = played
    found, requests = absorbed(recorded, sharing), recorded.requests
    for row, policy in enumerate(requests["policy_after"]):
        count = requests["num_excluded"][row] if requests["is_advised"][row] else 0
        assert np.flatnonzero(found.is_excluded[row]).tolist() == sorted(worst_by_hand(policy, count))
        if requests["is_advised"][row] and not requests["is_best"][row]:
            assert not found.is_excluded[row, requests["action"][row]]  # it was drawn from the remaining actions


few = st.integers(0, 4).map(lambda number: np.float32(number) / 4)
some_requests = hypothesis.settings(max_examples=60)


@st.composite
def any_requests(draw):
    """Requests with so few distinct numbers that ties are common, and records that no mechanism would write."""
    actions, answers = st.integers(0, NUM_ACTIONS - 1), st.tuples(st.integers(0, NUM_ACTIONS - 1), few)
    policies = st.lists(few, min_size=NUM_ACTIONS, max_size=NUM_ACTIONS)
    requests = []
    for _ in range(draw(st.integers(0, 3))):
        student = draw(st.integers(0, NUM_AGENTS - 1))
        who = draw(st.sets(st.sampled_from([agent for agent in range(NUM_AGENTS) if agent != student])))
        said = [(agent, *draw(answers), *draw(answers), draw(few)) for agent in sorted(who)]
        changes = dict(student=student, before=draw(policies), after=draw(policies), is_advised=draw(st.booleans()),
                       num_excluded=draw(st.integers(0, NUM_ACTIONS - 1)))  # fmt: skip
        requests.append((draw(actions), draw(actions), said, changes))
    return hand_made(*requests, negative_weight=draw(few)) if requests else nobody_asked()


def nobody_asked():
    recorded = hand_made((0, 0, [], {}))
    requests, teachers = (
        {name: rows[:0] for name, rows in each.items()} for each in (recorded.requests, recorded.teachers)
    )
    return RecordedEpisode(recorded.header, recorded.steps, requests, teachers, {})


@some_requests
@hypothesis.given(any_requests(), st.sampled_from(Normalisation))
def test_any_record_is_counted_by_the_rules(recorded, normalisation):
    found = absorbed(recorded, Cons(normalisation=normalisation))
    assert_counted_as_by_hand(found, recorded)
    requests = recorded.requests
    for row, policy in enumerate(requests["policy_after"]):
        count = requests["num_excluded"][row] if requests["is_advised"][row] else 0
        assert set(np.flatnonzero(found.is_excluded[row])) == set(worst_by_hand(policy, count))
    for rows, kind in zip(found, (np.float32,) * 2 + (bool,) * 6, strict=True):
        assert rows.dtype == kind
        assert len(rows) == len(requests["step"])


def test_ties_among_the_worst_actions_exclude_the_first():
    recorded = hand_made(
        (0, 1, [(1, 0, 1, 1, 0, 1)], dict(after=(0.25,) * 4, num_excluded=2)),
        (0, 1, [(1, 0, 1, 1, 0, 1)], dict(after=(0.4, 0.2, 0.2, 0.2), num_excluded=2)),
        (0, 1, [(1, 0, 1, 1, 0, 1)], dict(after=(0.4, 0.2, 0.2, 0.2), num_excluded=2, is_advised=False)),
    )
    left_out = absorbed(recorded, Cons()).is_excluded
    assert [np.flatnonzero(row).tolist() for row in left_out] == [[0, 1], [1, 2], []]


def test_a_hand_made_exchange_has_the_expected_effects():
    # the student intended 0; both teachers name 2 best and 0 worst, but agent 2 gives 0 more than the student does
    says = [(1, 2, 0.9, 0, 0.1, 1.0), (2, 2, 0.6, 0, 0.5, 1.0 + math.log(3))]
    recorded = hand_made((0, 2, says, {}), (0, 1, says, {}), (0, 2, says, dict(is_advised=False)))
    found = absorbed(recorded, Cons())
    np.testing.assert_allclose(found.best_share, [[0, 0.25, 0.75]] * 3, rtol=1e-6)
    np.testing.assert_allclose(found.worst_share, [[0, 0.25, 0.75]] * 3, rtol=1e-6)
    assert found.raises.tolist() == [[False, True, True]] * 3
    assert found.lowers.tolist() == [[False, True, False]] * 3
    assert found.raise_changed.tolist() == [[False, True, True], [False] * 3, [False] * 3]
    assert found.lower_changed.tolist() == [[False, True, False], [False, True, False], [False] * 3]
    assert found.is_changed.tolist() == [True, True, False]
    passing = absorbed(recorded, Cons(normalisation=Normalisation.PASSING))
    np.testing.assert_allclose(passing.worst_share, [[0, 1, 0]] * 3, rtol=1e-6)


@pytest.mark.parametrize(
    ("negative_weight", "counts"), [(1.0, (False, True)), (0.0, (True, False)), (0.5, (True, True))]
)
def test_knowledge_without_weight_does_not_count(negative_weight, counts):
    recorded = hand_made((0, 2, [(1, 2, 0.9, 0, 0.1, 1.0)], {}), negative_weight=negative_weight)
    found = absorbed(recorded, Cons())
    assert (found.raises.any(), found.lowers.any()) == counts
    assert (found.raise_changed.any(), found.lower_changed.any()) == counts


def test_a_teacher_with_very_high_prestige_has_all_the_weight():
    says = [(1, 2, 0.9, 0, 0.1, 200.0), (2, 2, 0.6, 0, 0.2, 1.0)]  # e^200 is beyond single precision
    found = absorbed(hand_made((0, 2, says, {})), Cons())
    np.testing.assert_allclose(found.best_share, [[0, 1, 0]], atol=1e-6)


def test_in_adhoc_td_every_answer_counts_and_there_is_no_negative_knowledge():
    sharing = AdHocTD()
    recorded = random_episode(sharing, seed=1)
    found, teachers = absorbed(recorded, sharing), recorded.teachers
    is_sent = teachers["reply"] == Reply.ANSWERED
    assert is_sent.sum() > 50
    np.testing.assert_array_equal(found.raises, is_sent)
    for none in (found.lowers, found.lower_changed, found.worst_share, found.is_excluded):
        assert not none.any()
    for row, (step, student) in enumerate(zip(recorded.requests["step"], recorded.requests["student"], strict=True)):
        own, done = recorded.steps["own_action"][step, student], recorded.steps["action"][step, student]
        assert found.is_changed[row] == (is_sent[row].any() and own != done)
        for teacher in range(NUM_AGENTS):
            says_so = is_sent[row, teacher] and teachers["best_action"][row, teacher] == done
            assert found.raise_changed[row, teacher] == (says_so and done != own)
            # votes weigh the same, and the shares of those who voted add up to 1
            assert found.best_share[row, teacher] == pytest.approx(is_sent[row, teacher] / max(is_sent[row].sum(), 1))
    assert found.raise_changed.sum() > 10
    assert found.is_excluded.shape == (len(is_sent), NUM_ACTIONS)


@pytest.mark.parametrize("sharing", [Cons(), AdHocTD()])
def test_an_episode_without_requests_has_empty_results(sharing):
    found = absorbed(nobody_asked(), sharing)
    assert all(rows.shape == (0, NUM_AGENTS) for rows in found[:6])
    assert found.is_excluded.shape == (0, NUM_ACTIONS)
    assert found.is_changed.shape == (0,)
