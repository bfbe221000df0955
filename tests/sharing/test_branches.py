"""Sharing with actions of several dimensions: a request covers all of them, and each is absorbed separately."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from consmarl import Advisor, UsageError
from consmarl.sharing import equations
from consmarl.sharing.adhoc_td import AdHocTD
from consmarl.sharing.cons import Cons
from consmarl.sharing.consulting import Consulting
from consmarl.sharing.interface import Prepared, Situation
from consmarl.sharing.options import Consult, Eligibility
from consmarl.sharing.record import Reply
from consmarl.sharing.requests import Request, Teachers, answer_one, draws_of
from tests.sharing import oracle

AGENTS, BRANCHES, ACTIONS, EPISODE, START = 4, 3, 4, 70, 40


def a_request(seed):
    """All agents' values [teacher, branch, action] in agent 0's situation, and how often they have been there."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(AGENTS, BRANCHES, ACTIONS)).astype(np.float32)
    return values, rng.integers(1, 30, AGENTS).astype(np.int32)


@functools.partial(jax.jit, static_argnums=0)
def answered(mechanism, key, values, visits, allowed=None):
    request = Request(jnp.int32(0), values[0], visits[0], jnp.int32(EPISODE), allowed)
    return answer_one(mechanism, key, request, Teachers(values, visits), jnp.ones(AGENTS, bool))


def slowly(values, visits, draws, rules):
    """Algorithm 3 for the values of one dimension, [teacher, action], as if it were a whole action."""
    agents = [
        oracle.Agent({"seen": int(count)}, [row.astype(float).tolist()] * AGENTS, 10, 10, "seen")
        for row, count in zip(values, visits, strict=True)
    ]
    return oracle.algorithm_3(agents, 0, EPISODE, rules, draws)


def test_every_dimension_is_absorbed_as_a_separate_action():
    mechanism = Cons(start_episode=START, eligibility=Eligibility.ANYONE, temperature=0.3)
    rules = oracle.Rules(start_episode=START, teachers="any", temperature=0.3)
    num_compared, num_advised = 0, 0
    for seed in range(40):
        values, visits = a_request(seed)
        key = jax.random.key(seed)
        student, told = jax.device_get(answered(mechanism, key, values, visits))
        draws = draws_of(key, AGENTS, BRANCHES)
        for branch in range(BRANCHES):
            own = oracle.Draws(0.0, float(draws.whether[branch]), float(draws.which[branch]))
            try:
                action, _, replies = slowly(values[:, branch], visits, own, rules)
            except oracle.TooCloseError:
                continue
            num_compared += 1
            num_advised += action is not None
            assert bool(student.is_advised[branch]) == (action is not None)
            assert action is None or int(student.action[branch]) == action
            for teacher, (best, chance, worst, worst_chance, prestige) in replies.items():
                assert (told.best_action[teacher, branch], told.worst_action[teacher, branch]) == (best, worst)
                np.testing.assert_allclose(told.best_probability[teacher, branch], chance, rtol=1e-4)
                np.testing.assert_allclose(told.worst_probability[teacher, branch], worst_chance, rtol=1e-4)
                np.testing.assert_allclose(told.prestige[teacher, branch], prestige, rtol=1e-4)
    assert num_compared > 100
    assert num_advised > 0


def test_eligibility_compares_the_mean_over_dimensions_of_the_maximum_values():
    mechanism = Cons(start_episode=START, eligibility=Eligibility.MORE_HOPEFUL, hope_margin=0.1)
    replied = set()
    for seed in range(6):
        values, visits = a_request(seed)
        told = jax.device_get(answered(mechanism, jax.random.key(0), values, visits)).teachers
        hopes = values.max(axis=2).mean(axis=1)
        for teacher in range(1, AGENTS):
            assert (told.reply[teacher] == Reply.ANSWERED) == (hopes[teacher] > hopes[0] + 0.1)
        replied |= set(told.reply[1:].tolist())
    assert replied == {Reply.ANSWERED, Reply.NOT_MORE_HOPEFUL}


def test_importance_is_the_mean_over_dimensions():
    values = jnp.array([[1.0, 3.0, 2.0], [0.0, 0.5, -9.0]])
    allowed = jnp.array([[True, True, True], [True, True, False]])
    # by hand: spans of 2 and 0.5, so that 1 − 2.5^−(√4 · 1.25)
    chance = equations.giving_probability(jnp.int32(4), values, 1.5, allowed)
    np.testing.assert_allclose(chance, 1 - 2.5**-2.5, rtol=1e-6)


def test_votes_are_counted_separately_in_every_dimension():
    values, visits = a_request(1)
    exchange = answered(AdHocTD(giving="always", start_episode=START), jax.random.key(0), values, visits)
    for branch in range(BRANCHES):
        votes = np.bincount(values[1:, branch].argmax(axis=1), minlength=ACTIONS)
        np.testing.assert_array_equal(exchange.student.modified[branch], votes)
        assert votes[exchange.student.action[branch]] == votes.max()


def test_choices_that_do_not_exist_are_never_advised():
    allowed = np.ones((BRANCHES, ACTIONS), bool)
    allowed[1, 2:], allowed[2, 1:] = False, False
    for mechanism in (Cons(start_episode=START, eligibility="anyone"), AdHocTD(giving="always", start_episode=START)):
        for seed in range(5):
            values, visits = a_request(seed)
            values = np.where(allowed, values, np.float32(-np.inf))
            student, told = jax.device_get(answered(mechanism, jax.random.key(seed), values, visits, allowed))
            for named in (student.action[None], told.best_action, told.worst_action):
                assert allowed[np.arange(BRANCHES)[None], named].all()
            assert np.isfinite(student.policy_after).all()


def a_situation(values, actions):
    num_agents, num_envs = values.shape[:2]
    nobody = jnp.zeros((num_agents, num_envs), bool)
    return Situation(
        codes=jnp.broadcast_to(jnp.arange(num_agents)[:, None, None], (num_agents, num_envs, 1)).astype(jnp.uint8),
        values=jnp.asarray(values), actions=jnp.asarray(actions), is_exploring=nobody, is_starting=nobody,
        is_live=jnp.ones(num_envs, bool), epsilon=jnp.float32(0.1), episode=jnp.full(num_envs, EPISODE),
        step=jnp.int32(0),
    )  # fmt: skip


def asking_everybody(told):
    """Teachers with the given values in every student's situation: [teacher, student, env, …]."""
    return lambda _is_asking: Prepared(lambda students, envs: told[:, students, envs])


def test_a_request_costs_one_unit_and_unadvised_dimensions_keep_the_students_choice():
    rng = np.random.default_rng(5)
    told = rng.normal(size=(AGENTS, AGENTS, 1, BRANCHES, ACTIONS)).astype(np.float32)
    told[:, :, :, 2] = 0.0  # no agent knows anything about the last dimension
    own = told[np.arange(AGENTS), np.arange(AGENTS)]
    actions = np.full((AGENTS, 1, BRANCHES), ACTIONS - 1, np.int32)
    mechanism = Cons(start_episode=START, eligibility="anyone", ask_scale=1e-6, initial_places=64)
    state = mechanism.init(AGENTS, ACTIONS)
    memory = mechanism.begin(AGENTS, 1, 2)
    shared = jax.jit(lambda key: mechanism.share(
        key, a_situation(own, actions), asking_everybody(jnp.asarray(told)), state, memory, is_recording=True
    ))(jax.random.key(1))  # fmt: skip
    student = shared.record.student
    is_advised = np.asarray(student.is_advised)[:, 0]  # [agent, branch]
    assert is_advised[:, :2].any(axis=1).all()
    assert not is_advised[:, 2].any()
    expected = np.where(is_advised, np.asarray(student.action)[:, 0], actions[:, 0])
    np.testing.assert_array_equal(shared.actions[:, 0], expected)
    np.testing.assert_array_equal(shared.traffic.advised, 1)
    np.testing.assert_array_equal(state.requests_left - shared.state.requests_left, 1)
    np.testing.assert_array_equal(state.answers_left - shared.state.answers_left, AGENTS - 1)


@pytest.mark.parametrize("mode", list(Consult))
def test_consulting_scores_every_dimension_separately(mode):
    rng = np.random.default_rng(6)
    told = rng.normal(size=(AGENTS, AGENTS, 2, BRANCHES, ACTIONS)).astype(np.float32)
    own = told[np.arange(AGENTS), np.arange(AGENTS)]  # [agent, env, branch, action]
    shared = jax.jit(lambda key: Consulting(mode).share(
        key, a_situation(own, np.zeros((AGENTS, 2, BRANCHES), np.int32)), asking_everybody(jnp.asarray(told)), (), (),
        is_recording=True,
    ))(jax.random.key(0))  # fmt: skip
    assert shared.actions.shape == (AGENTS, 2, BRANCHES)
    for student in range(AGENTS):
        for env in range(2):
            rows = told[:, student, env]  # [teacher, branch, action]
            hopes = rows.max(axis=2).mean(axis=1)
            answers = np.arange(AGENTS) != student
            if mode in (Consult.BEST, Consult.CONS):
                answers &= hopes > hopes[student]
            assert int(shared.traffic.answers[student, env]) == answers.sum()
            if mode is Consult.MEAN:
                np.testing.assert_array_equal(shared.actions[student, env], rows.mean(axis=0).argmax(axis=1))
            if mode is Consult.VOTE:
                for branch in range(BRANCHES):
                    votes = np.bincount(rows[:, branch].argmax(axis=1), minlength=ACTIONS)
                    assert votes[int(shared.actions[student, env, branch])] == votes.max()
            if mode in (Consult.BEST, Consult.CONS) and not answers.any():
                np.testing.assert_array_equal(shared.actions[student, env], rows[student].argmax(axis=1))


@functools.partial(jax.jit, static_argnums=0)
def compiled_step(mechanism, key, situation, told, state, memory):
    return mechanism.share(key, situation, asking_everybody(told), state, memory)


def test_an_advisor_agrees_with_the_compiled_mechanism():
    mechanism = Cons(start_episode=0, ask_scale=0.01, eligibility="anyone", initial_places=256)
    advisor = Advisor(AGENTS, ACTIONS, mechanism, num_dimensions=BRANCHES)
    state, memory = mechanism.init(AGENTS, ACTIONS), mechanism.begin(AGENTS, 1, 10)
    rng, num_kept = np.random.default_rng(7), 0
    advisor.begin_episode()
    advisor.begin_episode()
    for step in range(10):
        told = rng.normal(size=(AGENTS, AGENTS, 1, BRANCHES, ACTIONS)).astype(np.float32)
        told[..., 1, :] *= rng.random() < 0.5  # where no agent prefers an action, there is nothing to learn
        own = told[np.arange(AGENTS), np.arange(AGENTS)]
        actions = rng.integers(0, ACTIONS, (AGENTS, 1, BRANCHES)).astype(np.int32)
        situation = a_situation(own, actions)._replace(episode=jnp.ones(1, jnp.int32), step=jnp.int32(step))
        key = jax.random.key(step)
        shared = compiled_step(mechanism, key, situation, told, state, memory)
        state, memory = shared.state, shared.memory
        codes = np.asarray(situation.codes)[:, 0]
        plain = jax.tree.map(np.asarray, situation)
        decided = advisor.decide(key, plain, codes, lambda j, i, _seen, told=told: told[j, i, 0])
        np.testing.assert_array_equal(decided, shared.actions[:, 0])
        assert advisor.is_advised.tolist() == (shared.traffic.advised[:, 0] == 1).tolist()
        assert advisor.requests_left.tolist() == state.requests_left.tolist()
        num_kept += sum(not each.student.is_advised.all() for each in advisor.exchanges.values())
    assert num_kept > 0


def test_an_advisor_handles_history_and_invalid_input_in_several_dimensions():
    mechanism = Cons(start_episode=0, ask_scale=1e-6, teacher_memory="history", eligibility="anyone")
    advisor, again = (Advisor(2, 3, mechanism, num_dimensions=2) for _ in range(2))
    rng, shown = np.random.default_rng(8), []

    def ask(teacher, student, history):
        del teacher, student
        shown.append(history.last_actions)
        return np.array([[0.0, 1.0, 2.0], [3.0, 1.0, 0.0]])

    advisor.begin_episode()
    advisor.begin_episode()
    chosen = [advisor.advise(np.eye(2, dtype=np.uint8), np.zeros((2, 2, 3)), np.ones((2, 2), int), ask)
              for _ in range(2)]  # fmt: skip
    assert shown[0].tolist() == [[-1, -1]]
    assert shown[-1].tolist() == [[-1, -1], chosen[0][1].tolist()]
    again.load_state_dict(advisor.state_dict())
    for each in (advisor, again):
        each.advise(np.eye(2, dtype=np.uint8), np.zeros((2, 2, 3)), np.ones((2, 2), int), ask)
    assert shown[-1].tolist() == shown[-3].tolist()
    values = rng.normal(size=(2, 2, 3))
    with pytest.raises(UsageError, match=r"actions must be 2 × 2 whole numbers from 0 to 2"):
        advisor.advise(np.eye(2, dtype=np.uint8), values, np.ones(2, int), ask)
    mask = np.ones((2, 2, 3), bool)
    mask[1, 0, 1] = False
    with pytest.raises(UsageError, match="agent 1 means to do"):
        advisor.advise(np.eye(2, dtype=np.uint8), values, np.ones((2, 2), int), ask, allowed=mask)
    with pytest.raises(UsageError, match=r"2 agents with 3 × 2 actions, and this Advisor has 2 with 3\."):
        Advisor(2, 3, mechanism).load_state_dict(advisor.state_dict())
