"""Mirrored or rotated environments: their episodes are those of the original, mirrored or rotated."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import consmarl
from consmarl.learners.interface import EpisodeBatch
from consmarl.training.mirroring import Mirroring

WALKERS = [id for id in consmarl.world_ids() if consmarl.make(id).symmetries]


def turned(cells, way, grid):
    """Return cells [..., (row, column)] in the mirrored or rotated grid."""
    cells = cells[..., list(way.codes[:2])]
    for index in way.counts_down:
        cells = cells.at[..., index].set(grid[index] - 1 - cells[..., index])
    return cells


def turned_layout(layout, way, grid):
    return jax.tree.map(lambda leaf: turned(leaf, way, grid) if leaf.ndim == 2 else leaf, layout)


def test_every_environment_has_the_expected_number_of_symmetries():
    assert {id: len(consmarl.make(id).symmetries) for id in WALKERS} == {
        "pgm-3ag": 3, "pgm-6ag": 7, "ft": 7, "ft-20": 7, "ft-multi": 7,
    }  # fmt: skip
    assert consmarl.make("cleanup").symmetries == ()
    assert len(set(consmarl.make("ft").symmetries)) == 7


@pytest.mark.parametrize("id", ["pgm-3ag", "pgm-6ag", "ft-multi"])
def test_a_transformed_episode_equals_one_on_the_transformed_layout(id):
    world = consmarl.make(id)
    layout = world.generate_layout(jax.random.key(3))
    drawn = np.random.default_rng(0).integers(0, world.num_actions, (30, world.num_agents))
    advance, observe = jax.jit(world.advance), jax.jit(world.observe)
    for way in world.symmetries:
        plain, other = world.begin(layout), world.begin(turned_layout(layout, way, world.grid))
        mirroring = Mirroring((way,), tuple(world.observation_limit.tolist()))
        for actions in drawn:
            assert (mirroring._codes(observe(plain), way) == observe(other)).all()
            plain, outcome = advance(plain, jnp.asarray(actions), ())
            other, other_outcome = advance(other, jnp.asarray(way.actions)[actions], ())
            np.testing.assert_array_equal(outcome.rewards, other_outcome.rewards)
            assert outcome.done == other_outcome.done


@pytest.mark.parametrize("num_episodes", [1, 5, 8, 32])
def test_symmetries_are_spread_evenly_over_a_batch_and_each_episode_gets_one(num_episodes):
    world = consmarl.make("ft")
    rng = np.random.default_rng(1)
    shape = (world.num_agents, num_episodes, 3)
    codes = rng.integers(0, world.observation_limit + 1, (*shape[:2], 4, world.observation_size)).astype(np.uint8)
    actions = rng.integers(0, world.num_actions, shape).astype(np.uint8)
    rest = dict(rewards=rng.normal(size=shape), num_steps=jnp.full(num_episodes, 3), terminated=(), epsilon=())
    mirroring = Mirroring.of(world)
    batch = mirroring.mirrored(EpisodeBatch(jnp.asarray(codes), jnp.asarray(actions), **rest))
    assert batch.rewards is rest["rewards"]
    assert (batch.codes.dtype, batch.actions.dtype) == (np.uint8, np.uint8)
    ways = [None, *world.symmetries]
    for episode in range(num_episodes):
        fitting = [
            index for index, way in enumerate(ways)
            if (mirroring._codes(jnp.asarray(codes[:, episode]), way) == batch.codes[:, episode]).all()
        ]  # fmt: skip
        assert len(fitting) == 1
        way = ways[fitting[0]]
        expected = actions[:, episode] if way is None else np.array(way.actions)[actions[:, episode]]
        assert (batch.actions[:, episode] == expected).all()
        if num_episodes >= 8:
            assert fitting[0] == episode * 8 // num_episodes


def test_without_symmetries_batches_are_unchanged():
    batch = EpisodeBatch(*[object()] * 7)
    assert Mirroring.of(consmarl.make("cleanup")).mirrored(batch) is batch
    assert Mirroring().mirrored(batch) is batch
