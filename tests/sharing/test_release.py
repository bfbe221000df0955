"""The release preset behaves as the authors' released code does, in every known detail."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import consmarl
from consmarl.sharing.adhoc_td import AdHocTD
from consmarl.sharing.cons import Cons
from consmarl.sharing.interface import Prepared, Situation
from consmarl.sharing.options import AskGate, AskWhen, Eligibility, Gained, Giving, Knowledge, Normalisation, Preset
from consmarl.sharing.record import Reply
from consmarl.sharing.requests import Draws, Request, Teachers, answer_one

NUM_ENVS = 8
EPSILON = 0.05  # final value in the release, reached within its first 2,000 episodes


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def budget_spent_at_first_steps(world, mechanism, num_episodes, key):
    """Simulate the first steps of all episodes of a run with random values: (requests spent [agent], table)."""
    num_agents, num_actions = world.num_agents, world.num_actions

    def first_step(state, now):
        number, key_now = now
        key_reset, key_values, key_teachers, key_explore, key_share = jax.random.split(key_now, 5)
        states = jax.vmap(world.reset)(jax.random.split(key_reset, NUM_ENVS))
        explores = jax.random.uniform(key_explore, (num_agents, NUM_ENVS)) < EPSILON
        situation = Situation(
            codes=jax.vmap(world.observe)(states).swapaxes(0, 1),
            values=jax.random.normal(key_values, (num_agents, NUM_ENVS, num_actions)),
            actions=jnp.zeros((num_agents, NUM_ENVS), jnp.int32),
            is_exploring=explores, is_starting=explores, is_live=jnp.ones(NUM_ENVS, bool),
            epsilon=jnp.float32(EPSILON), episode=number * NUM_ENVS + jnp.arange(NUM_ENVS), step=jnp.int32(0),
        )  # fmt: skip

        def ask_teachers(students, envs):
            key_these = jax.random.fold_in(key_teachers, students[0] * NUM_ENVS + envs[0])
            return jax.random.normal(key_these, (num_agents, len(students), num_actions))

        return mechanism.share(key_share, situation, lambda _: Prepared(ask_teachers), state, memory).state, None

    memory = mechanism.begin(num_agents, NUM_ENVS, world.episode_limit)
    num_rounds = num_episodes // NUM_ENVS
    now = (jnp.arange(num_rounds), jax.random.split(key, num_rounds))
    last, _ = jax.lax.scan(first_step, mechanism.init(num_agents, num_actions), now)
    return mechanism.budget_requests - last.requests_left, last.table


@pytest.mark.parametrize(
    # the lengths of the authors' runs, and estimates from an independent simulation of first steps
    ("id", "num_episodes", "adhoc_requests", "ratio"),
    [("pgm-6ag", 80_000, 1556, 0.308), ("pgm-3ag", 100_000, 970, 0.361)],
)
def test_the_budget_spent_at_first_steps_is_close_to_the_expected_share(id, num_episodes, adhoc_requests, ratio):
    world = consmarl.make(id)
    spent = {}
    for kind in (AdHocTD, Cons):
        used, table = budget_spent_at_first_steps(world, kind.preset(Preset.RELEASE), num_episodes, jax.random.key(0))
        assert int(table.num_lost) == 0
        spent[kind] = float(used.mean())
    assert spent[AdHocTD] == pytest.approx(adhoc_requests, rel=0.03)
    assert spent[Cons] / spent[AdHocTD] == pytest.approx(ratio, abs=0.02)


def one_teacher(values, num_visits=5, student=(0.0, 0.0, 0.0), episode=20_000):
    request = Request(jnp.int32(0), jnp.array(student), jnp.int32(1), jnp.int32(episode))
    teachers = Teachers(jnp.array([student, values]), jnp.array([1, num_visits]))
    return request, teachers


def exchange(mechanism, request, teachers, whether=0.5, which=0.5):
    draws = Draws(jnp.float32(whether), jnp.float32(which), jnp.full(2, 0.5))
    replies = answer_one(mechanism, jax.random.key(0), request, teachers, jnp.ones(2, bool)).teachers.reply
    return replies, mechanism.exchange(request, teachers, replies, draws).student


RELEASE = Cons.preset(Preset.RELEASE)


def test_the_preset_has_the_releases_settings():
    assert RELEASE.ask_gate is AskGate.EXPLORING
    assert RELEASE.ask_when is AskWhen.FIRST_STEP
    assert RELEASE.has_second_draw
    assert not RELEASE.enforces_answer_budget
    assert RELEASE.knowledge is Knowledge.NEGATIVE_ONLY
    assert RELEASE.temperature == 0.3
    assert RELEASE.update_rate == 0.6
    assert RELEASE.normalisation is Normalisation.PASSING
    assert RELEASE.gained is Gained.TEACHER_PASSED
    assert RELEASE.requires_seen
    assert RELEASE.eligibility is Eligibility.EITHER
    adhoc = AdHocTD.preset(Preset.RELEASE)
    assert (adhoc.ask_gate, adhoc.ask_when, adhoc.giving) == (AskGate.EXPLORING, AskWhen.FIRST_STEP, Giving.ALWAYS)
    assert adhoc.has_second_draw
    assert not adhoc.enforces_answer_budget


def test_only_negative_knowledge_changes_a_probability():
    _, student = exchange(RELEASE, *one_teacher((3.0, 0.0, -3.0)))
    third = 1 / 3
    worst = np.exp(-3) / (np.exp(3) + 1 + np.exp(-3))
    # the best action's probability stays; the worst action's moves by τ = 0.6 towards the teacher's
    np.testing.assert_allclose(student.modified, [third, third, third + 0.6 * (worst - third)], rtol=1e-5)
    expected = np.exp(np.asarray(student.modified) / 0.3)  # κ = 0.3
    np.testing.assert_allclose(student.policy_after, expected / expected.sum(), rtol=1e-5)


def test_positive_knowledge_without_weight_still_costs_a_request():
    # the student considers the teacher's worst action even worse, so only positive knowledge passes the test
    request, teachers = one_teacher((1.0, 0.0, 0.0), student=(0.5, -2.0, 0.5))
    _, student = exchange(RELEASE, request, teachers)
    np.testing.assert_array_equal(student.modified, student.policy_before)
    assert student.is_advised
    _, student = exchange(Cons(knowledge=Knowledge.NEGATIVE_ONLY), request, teachers)
    assert not student.is_advised  # Algorithm 3 requires a changed probability


def test_a_teacher_that_never_saw_the_observation_does_not_answer():
    request, teachers = one_teacher((3.0, 0.0, -3.0), num_visits=0)
    assert exchange(RELEASE, request, teachers)[0][1] == Reply.NEVER_SEEN
    assert exchange(Cons(), request, teachers)[0][1] == Reply.ANSWERED


@functools.partial(jax.jit, static_argnums=0)
def many_steps(mechanism, step, explores):
    num_agents, num_envs = 2, 4_000
    situation = Situation(
        codes=jnp.arange(num_envs, dtype=jnp.int32)[None, :, None] + jnp.zeros((num_agents, 1, 1), jnp.int32),
        values=jnp.broadcast_to(jnp.array([0.0, 1.0]), (num_agents, num_envs, 2)),
        actions=jnp.where(explores, 0, 1) + jnp.zeros((num_agents, num_envs), jnp.int32),
        is_exploring=jnp.full((num_agents, num_envs), explores),
        is_starting=jnp.full((num_agents, num_envs), explores),
        is_live=jnp.ones(num_envs, bool), epsilon=jnp.float32(0.25),
        episode=jnp.full(num_envs, 9_000), step=step,
    )  # fmt: skip
    state, memory = mechanism.init(num_agents, 2), mechanism.begin(num_agents, num_envs, 5)
    no_idea = Prepared(lambda students, _envs: jnp.zeros((num_agents, len(students), 2)))
    return mechanism.share(jax.random.key(2), situation, lambda _: no_idea, state, memory)


def test_only_exploring_agents_ask_and_only_at_first_steps():
    for step, explores, asks in ((0, True, True), (0, False, False), (1, True, False)):
        shared = many_steps(RELEASE, step, explores)
        assert bool(shared.traffic.requests.sum() > 0) is asks
    # P_ask(1) = 1/1.5, measured on 8,000 decisions
    assert many_steps(RELEASE, 0, True).traffic.requests.mean() == pytest.approx(2 / 3, abs=0.02)


def test_agents_without_advice_explore_with_epsilon_squared():
    # all of these agents are exploring (ε); with probability 1 − ε they act greedily nevertheless
    actions = many_steps(RELEASE, 1, True).actions
    assert (np.asarray(actions) == 0).mean() == pytest.approx(0.25, abs=0.02)
    assert (np.asarray(many_steps(Cons(), 1, True).actions) == 0).all()
