"""Consulting the team: how actions are scored, who answers, and that nothing changes if all agents are identical."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import consmarl
from consmarl.errors import UsageError
from consmarl.learners.interface import TeamSpec
from consmarl.learners.iql import IQL
from consmarl.sharing.consulting import SCORES, Consulting
from consmarl.sharing.options import Consult
from consmarl.sharing.record import Reply
from consmarl.training.exploration import Greedy
from consmarl.training.loop import Trainer
from consmarl.training.rollout import Actors, play_episodes

WORLD = consmarl.make("pgm-3ag", grid=(3, 4), mining_steps=1, stones_per_pile=2, view=(3, 3), episode_limit=6)
NUM_ENVS = 12  # 36 pairs of student and environment: more than are updated together

# three agents; the first is the student, and the third expects the most
VALUES = np.array([[1.0, 0.0, 0.5], [0.2, 0.9, 0.1], [0.0, 0.3, 2.0]], np.float32)
ALL_OTHERS = np.array([False, True, True])
HOPEFUL = np.array([False, False, True])  # max Q above the student's 1.0


def scores(mode, is_sent):
    return np.asarray(SCORES[mode](jnp.array(VALUES[0]), jnp.array(VALUES), jnp.array(is_sent)))


def test_the_mean_is_taken_over_the_whole_team():
    np.testing.assert_allclose(scores(Consult.MEAN, ALL_OTHERS), [0.4, 0.4, 2.6 / 3], rtol=1e-6)


def test_votes_are_counted_and_ties_go_to_the_students_preference():
    found = scores(Consult.VOTE, ALL_OTHERS)
    np.testing.assert_array_equal(np.floor(found), [1, 1, 1])
    assert found.argmax() == 0


def test_a_majority_outvotes_the_student():
    agreed = jnp.array([[5.0, 0.0], [0.0, 0.1], [0.0, 0.1]])
    assert int(SCORES[Consult.VOTE](agreed[0], agreed, jnp.array(ALL_OTHERS)).argmax()) == 1


def test_only_the_most_hopeful_teammates_values_count():
    np.testing.assert_array_equal(scores(Consult.BEST, HOPEFUL), VALUES[2])


def test_the_students_values_count_if_nobody_is_more_hopeful():
    np.testing.assert_array_equal(scores(Consult.BEST, np.zeros(3, bool)), VALUES[0])


def test_absorption_changes_the_policy_by_equation_9():
    # by hand: one teacher, so its weight is 1; τ = 0.6, w_p = w_n = 0.5
    own, teacher = (np.exp(row) / np.exp(row).sum() for row in (VALUES[0], VALUES[2]))
    expected = own.copy()
    expected[2] += 0.5 * 0.6 * (teacher[2] - own[2])  # its best action, likelier for it than for the student
    expected[0] += 0.5 * 0.6 * (teacher[0] - own[0])  # its worst
    np.testing.assert_allclose(scores(Consult.CONS, HOPEFUL), expected, rtol=1e-5)


@functools.cache
def team(are_alike):
    learner = IQL(TeamSpec.of(WORLD), hidden_size=8)
    leaves, tree = jax.tree.flatten(learner.parameters(jax.jit(learner.init)(jax.random.key(1))))
    keys = jax.random.split(jax.random.key(2), len(leaves))
    # larger than usual initial weights, so that actions depend on observations
    drawn = [jax.random.normal(key, leaf.shape) for key, leaf in zip(keys, leaves, strict=True)]
    parameters = jax.tree.unflatten(tree, drawn)
    if are_alike:
        parameters = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf[:1], leaf.shape), parameters)
    return learner, parameters


def played(mode, *, are_alike=False):
    learner, parameters = team(are_alike)
    trainer = Trainer(world=WORLD, learner=learner)
    sharing = {} if mode is None else {"sharing": Consulting(mode)}
    return jax.device_get(trainer.evaluate(parameters, jax.random.key(4), NUM_ENVS, **sharing))


@pytest.mark.parametrize("mode", list(Consult))
def test_identical_agents_play_as_they_would_alone(mode):
    alone, together = played(None, are_alike=True), played(mode, are_alike=True)
    np.testing.assert_array_equal(together.batch.actions, alone.batch.actions)
    np.testing.assert_array_equal(together.batch.rewards, alone.batch.rewards)


@pytest.mark.parametrize("mode", list(Consult))
def test_different_agents_change_their_actions_and_messages_are_counted(mode):
    alone, together = played(None), played(mode)
    assert (together.batch.actions != alone.batch.actions).any()
    traffic, num_steps = together.traffic, together.batch.num_steps
    np.testing.assert_array_equal(traffic.requests, np.broadcast_to(num_steps, (3, NUM_ENVS)))
    np.testing.assert_array_equal(traffic.taught.sum(axis=0), traffic.answers.sum(axis=0))
    if mode in (Consult.MEAN, Consult.VOTE):
        np.testing.assert_array_equal(traffic.answers, 2 * traffic.requests)
    else:  # not all teammates expect more than the student
        assert 0 < traffic.answers.sum() < 2 * traffic.requests.sum()


def test_recorded_answers_match_the_actions_taken():
    learner, parameters = team(are_alike=False)
    actors = Actors(learner, Greedy(), Consulting(Consult.BEST))
    play = jax.jit(functools.partial(play_episodes, WORLD, actors, num_envs=NUM_ENVS, is_recording=True))
    episodes = jax.device_get(
        play(parameters, (), jnp.zeros(WORLD.episode_limit), jnp.int32(0), jax.random.key(4))
    )  # fmt: skip
    step = episodes.records.step  # [step, agent, env, …]
    is_live = episodes.records.is_live
    np.testing.assert_array_equal(step.is_asking, np.broadcast_to(is_live[:, None, :], step.is_asking.shape))
    is_sent = step.teachers.reply == Reply.ANSWERED
    np.testing.assert_array_equal(is_sent.sum(axis=(0, 3)), episodes.traffic.answers)
    # those that answer expect more than the student, which takes the best action of the one that expects the most
    hopes = step.teachers.max_value
    own = np.diagonal(hopes, axis1=1, axis2=3).transpose(0, 2, 1)
    np.testing.assert_array_equal(is_sent, (hopes > own[..., None]) & step.is_asking[..., None])
    leader = hopes.argmax(axis=3)
    best = np.take_along_axis(step.teachers.best_action, leader[..., None], axis=3)[..., 0]
    np.testing.assert_array_equal(step.action[step.is_asking], best[step.is_asking])
    np.testing.assert_array_equal(step.action, episodes.batch.actions.transpose(2, 0, 1))


def test_a_team_of_one_has_nobody_to_consult():
    with pytest.raises(UsageError, match="a team of one has nobody to consult"):
        Consulting(Consult.MEAN).init(1, 5)
