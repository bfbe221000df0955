"""The loop: order of events, counts, and results that do not depend on how a run is divided into chunks."""

import dataclasses
import functools
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import consmarl
from consmarl.learners.interface import TeamSpec
from consmarl.learners.iql import IQL
from consmarl.training.exploration import EpsilonZGreedy
from consmarl.training.loop import Trainer
from tests.probes.worlds import Probe

WORLD = consmarl.make("pgm-3ag", grid=(3, 4), mining_steps=1, stones_per_pile=2, view=(3, 3), episode_limit=8)
# Each number of rounds is compiled separately, so the tests use only these two and single rounds.
WHOLE, HALF = 12, 6


@functools.cache
def trainer(num_envs=1, warmup_steps=40, **settings):
    learner = IQL(TeamSpec.of(WORLD), hidden_size=8, target_every_updates=5)
    return Trainer(world=WORLD, learner=learner, num_envs=num_envs, replay_episodes=12, batch_episodes=4,
                   warmup_steps=warmup_steps, **settings)  # fmt: skip


def equal(left, right):
    pairs = zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True)
    return all(np.array_equal(*map(as_plain, pair)) for pair in pairs)


def as_plain(leaf):
    return jax.random.key_data(leaf) if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf


def test_learning_starts_once_more_than_the_warmup_steps_are_stored():
    run = trainer()
    _, report = run.run(run.init(0), WHOLE)
    # 5 episodes of 8 steps are 40, which is not more than 40
    assert report.has_learned[:, 0].tolist() == [False] * 5 + [True] * 7
    assert (np.asarray(report.learning["loss"])[:5] == 0).all()
    assert (np.asarray(report.learning["loss"])[5:] > 0).all()


def test_each_episode_is_followed_by_one_update_for_any_number_of_environments():
    for num_envs in (1, 2, 4):
        run = trainer(num_envs)
        state, _ = run.run(run.init(0), 12 // num_envs)
        assert int(state.replay.num_added) == 12
        assert int(state.learner.num_updates) == 12 - 5


class Noting:
    """A learner that notes what each update was given, instead of learning."""

    is_on_policy = False

    def update(self, state, batch, key):
        given = jnp.stack([batch.rewards.sum(), jax.random.uniform(key)])
        return (state[0] + 1, state[1].at[state[0]].set(given)), {"given": given}


def test_several_updates_per_episode_equal_separate_updates():
    learning = dataclasses.replace(trainer(warmup_steps=0).learning, learner=Noting(), updates_per_episode=3)
    key, replay = jax.random.key(5), learning.replay.init()
    filled = replay._replace(
        num_added=jnp.int32(6),
        episodes=replay.episodes._replace(rewards=jax.random.normal(key, replay.episodes.rewards.shape)),
    )
    episode = jax.tree.map(lambda leaf: leaf[:1], filled.episodes)
    start = (jnp.int32(0), jnp.zeros((3, 2)))
    after, learned = jax.jit(learning.store_and_learn)(start, filled, episode, key)
    sample = jax.jit(lambda key: learning.replay.sample(after, key, learning.batch_episodes, 7))
    expected = []
    for key_once in jax.random.split(jax.random.split(key, 1)[0], 3):
        key_sample, key_update = jax.random.split(key_once)
        expected.append([sample(key_sample).rewards.sum(), jax.random.uniform(key_update)])
    count, given = learned.learner
    assert count == 3
    np.testing.assert_allclose(given, expected, rtol=1e-5)
    np.testing.assert_allclose(learned.metrics["given"][0], np.mean(expected, axis=0), rtol=1e-5)


@pytest.mark.parametrize(
    ("exploration", "chunks"), [(None, (1, 1, HALF, 1, 1, 1, 1)), (EpsilonZGreedy(), (1,) * WHOLE)]
)
def test_results_do_not_depend_on_chunks(exploration, chunks):
    run = trainer(2) if exploration is None else trainer(2, exploration=exploration)
    whole, _ = run.run(run.init(3), WHOLE)
    parts = run.init(3)
    for rounds in chunks:
        parts, _ = run.run(parts, rounds)
    assert equal(whole, parts)


def test_the_same_seed_gives_the_same_run_and_another_seed_a_different_one():
    run = trainer()
    first, same, other = (run.run(run.init(seed), WHOLE)[0] for seed in (1, 1, 2))
    assert equal(first, same)
    assert not equal(first.learner.online, other.learner.online)


def test_epsilon_decays_with_the_steps_actually_played():
    run = trainer()
    state, report = run.run(run.init(0), WHOLE)
    steps = np.asarray(report.num_steps)[:, 0]
    assert int(state.num_env_steps) == steps.sum()
    before = np.concatenate([[0], np.cumsum(steps)[:-1]])
    np.testing.assert_allclose(report.epsilon, 1 - 0.95 / 50_000 * before, atol=1e-6)


def test_stored_episodes_follow_the_rules_of_the_environment():
    """Check the moves, step counts and rewards of every stored episode against the rules of the environment."""
    run = trainer(4)
    state, report = run.run(run.init(5), 3)
    stored = jax.device_get(state.replay.episodes)
    for slot in range(12):
        length = stored.num_steps[slot]
        cells = stored.codes[:, slot, : length + 1, :2].astype(int)
        moves = np.array([(0, 0), (1, 0), (0, -1), (-1, 0), (0, 1)])[stored.actions[:, slot, :length]]
        expected = np.clip(cells[:, :-1] + moves, 0, np.array(WORLD.grid) - 1)
        np.testing.assert_array_equal(cells[:, 1:], expected)
        np.testing.assert_array_equal(stored.codes[:, slot, : length + 1, 2], np.tile(np.arange(length + 1), (3, 1)))
        assert not stored.rewards[:, slot, length:].any()
        assert (stored.rewards[:, slot, :length] != 0).all()  # every step has a cost
        assert stored.terminated[slot] or length == WORLD.episode_limit
    np.testing.assert_allclose(report.returns[0, 0], stored.rewards[:, 0].sum(axis=1), rtol=1e-5)
    assert report.counters.per_agent["gold_mined"].shape == (3, 4, 3, 1)


@dataclass(frozen=True)
class HangingUp(Probe):
    """The task is over as soon as the agent takes action 1, whatever happened before; every step pays 1."""

    episode_limit: int = 6

    def rewards(self, state, actions):
        del state
        return jnp.ones_like(actions)

    def advance(self, state, actions, draws):
        state, outcome = super().advance(state, actions, draws)
        return state, outcome._replace(terminated=actions[0] == 1)


def test_an_episode_ends_at_its_first_end_and_records_whether_it_terminated():
    world = HangingUp()
    learner = IQL(TeamSpec.of(world), hidden_size=2)
    run = Trainer(world=world, learner=learner, num_envs=16, replay_episodes=32, warmup_steps=10**6)
    state, _ = run.run(run.init(0), 2)
    stored = jax.device_get(state.replay.episodes)
    ends = [np.flatnonzero(actions == 1) for actions in stored.actions[0]]
    # the first action 1 ends an episode; what is stored after it is padding
    expected = [min([*(end[:1] + 1), world.episode_limit]) for end in ends]
    assert stored.num_steps.tolist() == expected
    last = stored.actions[0, np.arange(32), stored.num_steps - 1]
    assert stored.terminated.tolist() == (last == 1).tolist()
    assert set(stored.terminated.tolist()) == {True, False}
    assert stored.rewards[0].sum(axis=1).tolist() == stored.num_steps.tolist()
    assert stored.actions[0, :16].tolist() != stored.actions[0, 16:].tolist()  # every round has its own draws


def test_evaluation_is_reproducible_and_does_not_affect_training():
    run = trainer()
    state, _ = run.run(run.init(0), HALF)
    parameters = run.learner.parameters(state.learner)
    once, again = (run.evaluate(parameters, jax.random.key(4), 20) for _ in range(2))
    assert equal(once.batch, again.batch)
    after, _ = run.run(state, HALF)
    straight, _ = run.run(run.init(0), WHOLE)
    assert equal(after, straight)
