"""Experts beside the team: they hold no seat and do not learn, and their networks follow every student's episode."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import consmarl
from consmarl import AdHocTD, Cons
from consmarl.environments.foreign import ForeignWorld
from consmarl.environments.pettingzoo import WorldParallelEnv
from consmarl.learners.interface import TeamSpec
from consmarl.learners.iql import IQL
from consmarl.learners.team_networks import Memory
from consmarl.sharing import reported
from consmarl.sharing.options import TeacherMemory
from consmarl.sharing.record import Reply
from consmarl.training import checkpoints
from consmarl.training.loop import Trainer
from consmarl.training.python_loop import PythonTrainer
from consmarl.training.teaching import Place, Teachers, in_students_place
from tests.training.test_sharing import SIZES, SMALL, FixedStart, equal

WORLD = consmarl.make("pgm-3ag", **SMALL)
TEAM, EXPERTS = slice(3), slice(3, None)
BUDGET = 40  # answers that every teacher may give
ALONE = Cons(start_episode=0, ask_scale=0.05, teacher_memory=TeacherMemory.HISTORY, budget_answers=BUDGET)
CONS = dataclasses.replace(ALONE, num_beside=3)  # one mechanism for most tests, because each is compiled separately
ADHOC_TD = AdHocTD(start_episode=0, ask_scale=0.05, budget_answers=BUDGET, num_beside=3)
NUM_ROUNDS = 6


@functools.cache
def learner_in(world):
    return IQL(TeamSpec.of(world), hidden_size=8, target_every_updates=5)


@functools.cache
def networks(seed, bias=0.0):
    """Networks of a team; the bias raises all values."""
    drawn = learner_in(WORLD).networks.init(jax.random.key(seed))
    return jax.device_get(drawn._replace(head_bias=drawn.head_bias + bias))


@functools.cache
def trainer(sharing, num_envs=2):
    return Trainer(world=WORLD, learner=learner_in(WORLD), num_envs=num_envs, sharing=sharing, **SIZES)


def beginning(run, bias=0.0, seed=1):
    state = run.init(seed)
    return state._replace(beside=jax.tree.map(jnp.asarray, networks(7, bias))) if run.sharing.num_beside else state


@functools.cache
def played(sharing, bias=0.0, num_envs=2, num_rounds=NUM_ROUNDS):
    """Return the final state and the report of a run that is as long as replay."""
    run = trainer(sharing, num_envs)
    return jax.device_get(run.run(beginning(run, bias), num_rounds, is_recording=True))


def by_whole_episodes(parameters, codes, actions):
    """Run every network over one student's whole episodes: values [expert, step, episode, action]."""
    team = learner_in(WORLD).networks

    def of_one(agent, own):
        return team.unroll(own, team.episode_inputs(agent, codes, actions))[1]

    return jax.jit(jax.vmap(of_one))(jnp.arange(3), parameters)


# with eleven environments there are more than 32 pairs, whose memories are updated by lists
@pytest.mark.parametrize(("num_envs", "num_rounds"), [(2, NUM_ROUNDS), (11, 1)], ids=["together", "by lists"])
def test_experts_evaluate_the_students_history_with_their_own_networks(num_envs, num_rounds):
    state, report = played(CONS, num_envs=num_envs, num_rounds=num_rounds)
    step = jax.tree.map(lambda rows: np.moveaxis(rows, 3, 1), report.records.step)  # [round, env, step, agent, …]
    is_live = np.moveaxis(report.records.is_live, 2, 1)
    episodes, num_compared = state.replay.episodes, 0
    for student in range(3):
        values = by_whole_episodes(networks(7), episodes.codes[student], episodes.actions[student])
        for episode in range(num_rounds * num_envs):
            place = divmod(episode, num_envs)
            asked = np.flatnonzero(step.is_asking[place][:, student] & is_live[place])
            highest, best = (rows[place][asked, student, EXPERTS]
                             for rows in (step.teachers.max_value, step.teachers.best_action))  # fmt: skip
            expected = np.asarray(values)[:, asked, episode].swapaxes(0, 1)  # [request, expert, action]
            np.testing.assert_allclose(highest, expected.max(axis=2), rtol=1e-4, atol=1e-5)
            np.testing.assert_array_equal(best, expected.argmax(axis=2))
            num_compared += len(asked)
    assert num_compared > 50


OF_STUDENTS = (TeacherMemory.STUDENT, TeacherMemory.STUDENT_AFTER_STEP)


@pytest.mark.parametrize("remember", OF_STUDENTS)
def test_with_the_students_memory_experts_answer_like_a_team_of_their_networks(remember):
    learner, random = learner_in(WORLD), np.random.default_rng(0)
    codes = random.integers(0, 3, (3, 2, WORLD.observation_size)).astype(np.uint8)
    before, after = random.normal(size=(2, 3, 2, 8)).astype(np.float32)
    place = Place(codes, np.array([[0, 1], [2, -1], [3, 4]]), Memory(before), Memory(after), jnp.int32(2))
    students, envs = jnp.array([2, 0]), jnp.array([1, 0])

    @jax.jit
    def asked(parameters, beside):
        teachers = Teachers(learner, parameters, remember, jax.random.key(3), beside)
        return in_students_place(teachers, place, ())(jnp.zeros((3, 2), bool)).ask_teachers(students, envs)

    together = asked(networks(1), networks(7))
    apart = np.concatenate([asked(networks(1), ()), asked(networks(7), ())])
    np.testing.assert_allclose(together, apart, rtol=1e-5, atol=1e-6)
    assert len(np.unique(apart.max(axis=2))) == 12  # every teacher has an opinion of its own on every student


def test_experts_have_the_students_visits_so_only_higher_values_make_them_answer():
    _, report = played(CONS)
    step = report.records.step
    visits, replies = step.teachers.num_visits[step.is_asking], step.teachers.reply[step.is_asking]
    own = step.num_visits[step.is_asking]
    assert own.max() > 1
    np.testing.assert_array_equal(visits[:, EXPERTS], np.repeat(own[:, None], 3, axis=1))
    expects_more = step.teachers.max_value[step.is_asking] > step.values[step.is_asking].max(axis=1)[:, None]
    is_silent = replies[:, EXPERTS] == Reply.KNOWS_LESS
    np.testing.assert_array_equal(is_silent, ~expects_more[:, EXPERTS])
    assert 0 < is_silent.mean() < 1


@pytest.mark.parametrize("sharing", [CONS, ADHOC_TD], ids=["CONS", "AdHocTD"])
def test_every_expert_has_its_own_budget_and_its_answers_are_counted_separately(sharing):
    state, report = played(sharing, bias=3.0)
    answered = (report.records.step.teachers.reply == Reply.ANSWERED).sum(axis=(0, 1, 2, 3))  # [teacher]
    assert state.sharing.answers_left.tolist() == (BUDGET - answered).tolist()
    assert answered[EXPERTS].tolist() == [BUDGET] * 3
    told = {name: report.sharing[name].sum() for name in ("answers", "taught", "expert_answers")}
    assert told == {
        "answers": answered.sum(),
        "taught": answered[TEAM].sum(),
        "expert_answers": answered[EXPERTS].sum(),
    }
    assert report.sharing["answers_left"].shape == (NUM_ROUNDS, 3)  # of the agents


def test_experts_do_not_change_while_all_agents_learn():
    state, _ = played(CONS)
    assert equal(state.beside, networks(7))
    first = jax.device_get(trainer(CONS).init(1).learner.online)
    for before, after in zip(first, state.learner.online, strict=True):
        assert [bool((before[agent] != after[agent]).any()) for agent in range(3)] == [True] * 3


def test_experts_with_low_values_never_answer_and_change_no_action():
    (_, without), (state, hopeless) = played(ALONE), played(CONS, bias=-100.0)
    assert not hopeless.sharing["expert_answers"].any()
    for name in ("requests", "answers", "taught", "advised", "requests_left", "answers_left"):
        np.testing.assert_array_equal(hopeless.sharing[name], without.sharing[name], err_msg=name)
    np.testing.assert_array_equal(hopeless.records.step.action, without.records.step.action)
    assert without.sharing["advised"].sum() > 0
    assert state.sharing.answers_left[EXPERTS].tolist() == [BUDGET] * 3


def test_a_run_without_experts_has_no_state_or_metrics_for_them():
    run = trainer(ALONE)
    state, report = played(ALONE)
    parts = {jax.tree_util.keystr(path[:1]) for path, _ in jax.tree_util.tree_leaves_with_path(state)}
    assert parts == {".learner", ".sharing", ".replay", ".key", ".num_rounds", ".num_env_steps"}
    assert state.sharing.answers_left.shape == (3,)
    assert report.records.step.teachers.reply.shape[-1] == 3
    assert "expert_answers" not in report.sharing
    assert reported.EXPERT_ANSWERS not in run.metrics.metrics
    assert reported.EXPERT_ANSWERS in trainer(CONS).metrics.metrics


def test_a_resumed_run_restores_its_experts(tmp_path):
    run = trainer(CONS)
    first = beginning(run)
    plenty = first.sharing._replace(
        answers_left=jnp.full(6, 1_000, jnp.int32)
    )  # so that experts still answer at the end
    state, _ = run.run(first._replace(sharing=plenty), NUM_ROUNDS, is_recording=True)
    checkpoints.save(tmp_path, 1, state, run.sharing.facts(state.sharing), keep=1)
    whole, report = run.run(state, NUM_ROUNDS, is_recording=True)
    restored = checkpoints.restore(tmp_path, functools.partial(run.init, 1)).state
    assert equal(restored.beside, networks(7))
    resumed, again = run.run(restored, NUM_ROUNDS, is_recording=True)
    assert equal(whole, resumed)
    assert equal(report, again)
    assert report.sharing["expert_answers"].sum() > 0


def test_experts_answer_the_same_in_the_python_loop_and_compiled():
    world = FixedStart(num_agents=3, num_mines=1, num_piles=2, **SMALL)
    foreign = ForeignWorld(WorldParallelEnv(world), episode_limit=world.episode_limit)
    sharing = dataclasses.replace(CONS, counting="exact")
    # no learning, after which weights would agree only up to rounding
    parts = dict(sharing=sharing, num_envs=1, **SIZES | dict(warmup_steps=10_000))
    runs = [kind(world=each, learner=learner_in(each), **parts)
            for kind, each in ((Trainer, world), (PythonTrainer, foreign))]  # fmt: skip
    (state, report), (python_state, python_report) = (
        jax.device_get(run.run(beginning(run, bias=0.1), 5, is_recording=True)) for run in runs
    )
    assert report.sharing["expert_answers"].sum() > 0
    for name in ("requests", "answers", "taught", "expert_answers", "advised", "answers_left"):
        np.testing.assert_array_equal(python_report.sharing[name], report.sharing[name], err_msg=name)
    assert equal(state.sharing[1:], python_state.sharing[1:])
    assert equal(python_state.beside, networks(7, 0.1))
