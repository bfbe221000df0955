"""Sharing with forbidden actions: the results are the same as if those actions did not exist."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from consmarl.errors import UsageError
from consmarl.sharing import equations
from consmarl.sharing.adhoc_td import AdHocTD
from consmarl.sharing.advisor import Advisor
from consmarl.sharing.cons import Cons
from consmarl.sharing.consulting import SCORES
from consmarl.sharing.options import Consult, Giving, Sampling
from consmarl.sharing.requests import Request, Teachers, answer_one

NUM_TEACHERS, NUM_ACTIONS = 3, 5
MASKS = [
    [True, True, True, True, True],
    [True, False, True, True, False],
    [False, True, False, False, True],
    [False, False, True, False, False],
]


def drawn_values(seed):
    values = np.random.default_rng(seed).normal(scale=3, size=(NUM_TEACHERS, NUM_ACTIONS)).astype(np.float32)
    return values, np.array([4, 9, 2], np.int32)


def masked(values, allowed):
    return jnp.where(allowed, values, -jnp.inf)


@pytest.mark.parametrize("allowed", MASKS[:3], ids=str)
@pytest.mark.parametrize(
    "sharing",
    [Cons(), Cons(sampling=Sampling.PLAIN, temperature=0.3), AdHocTD(), AdHocTD(giving=Giving.ALWAYS)],
    ids=["cons", "cons-plain", "adhoc-td", "adhoc-td-always"],
)
def test_an_exchange_equals_one_over_only_the_allowed_actions(sharing, allowed):
    may = np.flatnonzero(allowed)
    mask = jnp.array(allowed)
    answer = jax.jit(lambda key, request, teachers: answer_one(sharing, key, request, teachers, jnp.ones(3, bool)))
    num_advised = 0
    for seed in range(12):
        values, visits = drawn_values(seed)
        key, common = jax.random.key(seed), (jnp.int32(1), jnp.int32(6000))
        request = Request(jnp.int32(0), masked(values[0], mask), *common, mask)
        found = answer(key, request, Teachers(masked(values, mask), jnp.asarray(visits)))
        smaller = Request(jnp.int32(0), jnp.asarray(values[0, may]), *common)
        expected = answer(key, smaller, Teachers(jnp.asarray(values[:, may]), jnp.asarray(visits)))
        np.testing.assert_array_equal(found.teachers.reply, expected.teachers.reply)
        np.testing.assert_array_equal(found.teachers.best_action, may[expected.teachers.best_action])
        if isinstance(sharing, Cons):
            np.testing.assert_array_equal(found.teachers.worst_action, may[expected.teachers.worst_action])
            total = expected.student.num_excluded + (len(allowed) - len(may)) * (expected.student.num_excluded > 0)
            assert found.student.num_excluded == total
        for name in ("worst_probability", "best_probability", "confidence", "prestige", "max_value"):
            np.testing.assert_allclose(getattr(found.teachers, name), getattr(expected.teachers, name), atol=1e-5)
        for name in ("policy_before", "modified", "policy_after"):
            mine = np.asarray(getattr(found.student, name))
            np.testing.assert_allclose(mine[may], getattr(expected.student, name), atol=1e-5)
            assert (mine[~np.array(allowed)] == 0).all()
        assert found.student.is_advised == expected.student.is_advised
        assert found.student.action == may[int(expected.student.action)]
        num_advised += int(found.student.is_advised)
    assert num_advised > 0


@pytest.mark.parametrize("allowed", MASKS, ids=str)
def test_equations_equal_those_over_only_the_allowed_actions(allowed):
    values, visits = drawn_values(3)
    may, mask = np.flatnonzero(allowed), jnp.array(allowed)
    policy = equations.boltzmann_policy(masked(values[0], mask))
    smaller = equations.boltzmann_policy(jnp.asarray(values[0, may]))
    np.testing.assert_allclose(policy[may], smaller, atol=1e-6)
    confidence = equations.policy_confidence(policy, mask)
    expected = 1.0 if len(may) == 1 else equations.policy_confidence(smaller)
    np.testing.assert_allclose(confidence, expected, atol=1e-5)
    giving = equations.giving_probability(jnp.asarray(visits[0]), masked(values[0], mask), 1.5, mask)
    np.testing.assert_allclose(
        giving, equations.giving_probability(jnp.asarray(visits[0]), values[0, may], 1.5), atol=1e-5
    )
    assert equations.worst_action(policy, mask) == may[np.argmin(smaller)]


@pytest.mark.parametrize("allowed", MASKS[:3], ids=str)
@pytest.mark.parametrize("mode", list(Consult))
def test_consulting_scores_equal_those_over_only_the_allowed_actions(mode, allowed):
    values, _ = drawn_values(5)
    may, mask, is_sent = np.flatnonzero(allowed), jnp.array(allowed), jnp.array([False, True, True])
    found = SCORES[mode](masked(values[0], mask), masked(values, mask), is_sent, mask)
    expected = SCORES[mode](jnp.asarray(values[0, may]), jnp.asarray(values[:, may]), is_sent)
    np.testing.assert_allclose(found[may], expected, atol=1e-5)
    assert may[np.argmax(expected)] == np.argmax(found)


class TestAdvisor:
    """The Advisor with masks, for learners of any kind."""

    def advisor(self):
        advisor = Advisor(2, 4, Cons(start_episode=0, ask_scale=0.01))
        for _ in range(2):
            advisor.begin_episode()
        return advisor

    def test_only_allowed_actions_are_advised(self):
        allowed = np.array([[True, False, True, False], [False, True, True, True]])
        rng, advisor, num_advised = np.random.default_rng(0), self.advisor(), 0
        for _ in range(15):
            values = rng.normal(size=(2, 4))
            own = np.where(allowed, values, -np.inf).argmax(axis=1)
            loving = lambda teacher, student, seen: rng.normal(size=4) + np.array([0, 90, 0, 0])  # noqa: E731, ARG005
            advised = advisor.advise([np.zeros(1)] * 2, values, own, loving, allowed=allowed)
            assert allowed[[0, 1], advised].all()
            num_advised += advisor.is_advised.sum()
        assert num_advised > 3

    def test_absent_agents_do_not_ask_and_are_not_counted(self):
        advisor = self.advisor()
        allowed = np.array([[True] * 4, [False] * 4])
        for _ in range(5):
            advisor.advise([np.zeros(1)] * 2, np.zeros((2, 4)), [0, 0], lambda *_: np.zeros(4), allowed=allowed)
            assert 1 not in advisor.exchanges
        assert advisor._tally.counts(np.zeros(1)).tolist() == [5, 0]

    def test_invalid_masks_are_refused(self):
        advisor = self.advisor()
        for allowed, said in (
            (np.ones((2, 3)), r"allowed must be booleans of shape \(2, 4\)"),
            (np.full((2, 4), 0.5), "allowed must be booleans"),
            (np.array([[False, True, True, True]] * 2), "agent 0 means to do 0, which it is not allowed to"),
        ):
            with pytest.raises(UsageError, match=said):
                advisor.advise([np.zeros(1)] * 2, np.zeros((2, 4)), [0, 0], lambda *_: np.zeros(4), allowed=allowed)
