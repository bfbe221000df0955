"""The bonus for newly seen cells: checked by hand and against a slow version, and never part of reported returns."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import consmarl
from consmarl.learners.interface import EpisodeBatch
from consmarl.training.coverage import CoverageBonus, newly_seen


def in_view_slowly(world, codes):
    """Return the cells of the window around one agent."""
    row, column = int(codes[0]), int(codes[1])
    tall, wide = world.view[0] // 2, world.view[1] // 2
    return {
        (r, c)
        for r in range(row - tall, row + tall + 1)
        for c in range(column - wide, column + wide + 1)
        if 0 <= r < world.grid[0] and 0 <= c < world.grid[1]
    }


def path(world, cells):
    codes = np.zeros((len(cells), world.observation_size), np.uint8)
    codes[:, :2] = cells
    return jnp.asarray(codes)


def test_only_cells_seen_for_the_first_time_count():
    world = consmarl.make("pgm-3ag")  # 8 × 9 cells, a window of 3 × 5
    walk = path(world, [(0, 0), (1, 0), (2, 0), (1, 0), (1, 1), (1, 1), (7, 8)])
    # down, twice: a row of 3 cells; back up: nothing; right: a column of 3 cells; stay: nothing; far corner: 2 × 3
    assert newly_seen(world, walk).tolist() == [3, 3, 0, 3, 0, 6]


@pytest.mark.parametrize("id", ["pgm-3ag", "pgm-6ag", "ft"])
def test_newly_seen_cells_match_the_slow_reference(id):
    world = consmarl.make(id)
    rng = np.random.default_rng(0)
    codes = np.stack([path(world, np.stack([rng.integers(0, side, 9) for side in world.grid], -1)) for _ in range(4)])
    counted = newly_seen(world, jnp.asarray(codes).reshape(2, 2, 9, -1)).reshape(4, 8)
    for walk, counts in zip(codes, counted, strict=True):
        seen = in_view_slowly(world, walk[0])
        for step in range(8):
            new = in_view_slowly(world, walk[step + 1]) - seen
            assert counts[step] == len(new)
            seen |= new


def test_the_bonus_is_added_only_to_rewards():
    world = consmarl.make("pgm-3ag")
    walk = path(world, [(0, 0), (1, 0), (1, 0)])[None, None]
    batch = EpisodeBatch(walk, jnp.zeros((1, 1, 2)), jnp.array([[[-0.2, 1.0]]]), *[object()] * 4)
    with_bonus = CoverageBonus(0.5, world, start_episode=7).added(batch, jnp.asarray(8))
    np.testing.assert_allclose(with_bonus.rewards, [[[-0.2 + 0.5 * 3, 1.0]]], rtol=1e-6)
    assert with_bonus._replace(rewards=batch.rewards) == batch
    before = CoverageBonus(0.5, world, start_episode=7).added(batch, jnp.asarray(7))
    np.testing.assert_array_equal(before.rewards, batch.rewards)
    assert CoverageBonus().added(batch, jnp.asarray(8)) is batch


def test_returns_are_reported_without_the_bonus():
    settings = dict(episodes=8, num_envs=4, warmup_steps=0, batch_episodes=2, replay_episodes=8, hidden_size=4)
    config = consmarl.TrainConfig(env="pgm-3ag", preset="paper", **settings)
    plain, paid = (config.with_options({"coverage_bonus": bonus}).trainer() for bonus in (0.0, 0.5))
    assert plain.learning.coverage.weight == 0
    (_, said), (_, said_too) = (trainer.run(trainer.init(0), 1) for trainer in (plain, paid))
    np.testing.assert_array_equal(said.returns, said_too.returns)  # both played before they learned
    assert not jax.tree.all(jax.tree.map(lambda a, b: (a == b).all(), said.learning, said_too.learning))


def test_the_bonus_starts_after_a_share_of_the_run():
    config = consmarl.TrainConfig(env="pgm-3ag", preset="paper", episodes=400, coverage_bonus=0.1, coverage_after=0.25)
    assert config.trainer().coverage_start == 100
    assert config.with_options({"coverage_bonus": 0.0}).trainer().coverage_start == 0


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (dict(env="cleanup", coverage_bonus=0.1), "observations in cleanup do not say which cells are in view"),
        (dict(env="cleanup", mirror_episodes=True), "cleanup is not symmetric"),
        (dict(env="pgm-3ag", coverage_bonus=-1.0), "coverage_bonus must be at least 0"),
        (dict(method="ga-comm", mirror_episodes=True), "not from replay: leave out mirror_episodes"),
    ],
)
def test_settings_that_an_environment_or_method_does_not_support_are_refused(settings, said):
    with pytest.raises(consmarl.UsageError, match=said):
        consmarl.TrainConfig(**settings).trainer()
