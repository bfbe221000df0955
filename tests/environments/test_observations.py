"""Observation windows of unusual shapes and for large teams, against a slow reference; codes are exact."""

import jax
import numpy as np
import pytest
from tests.environments.oracle import observed_slowly

import consmarl
from consmarl.environments.playback import play, random_actions

SHAPES = [
    dict(grid=(7, 5), view=(3, 7), num_agents=5),
    dict(grid=(1, 9), view=(1, 3), num_agents=2),
    dict(grid=(6, 6), view=(13, 15), num_agents=4),
    dict(grid=(20, 20), view=(5, 5), num_agents=300, episode_limit=3),
    dict(grid=(3, 300), view=(3, 3), num_agents=3, episode_limit=5),
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_windows_of_any_shape_match_the_slow_reference(shape):
    world = consmarl.make("pgm-3ag", **shape)
    trajectory = play(world, jax.random.key(1), random_actions(world, jax.random.key(2)))
    for step in range(min(trajectory.num_steps, 5) + 1):
        state = jax.device_get(trajectory.state(step))
        mines = {tuple(cell): 1 for cell in state.golds.tolist()}
        piles = {tuple(cell): 1 for cell in state.stones.tolist()}
        expected = observed_slowly(
            world.grid,
            world.view,
            world.num_agents,
            world.episode_limit,
            state.agents.tolist(),
            step,
            mines,
            piles,
        )
        np.testing.assert_allclose(trajectory.codes[step] * world.observation_scale[None, :], expected, atol=1e-6)


def test_codes_use_the_smallest_dtype_that_holds_them():
    assert consmarl.make("pgm-6ag").observation_dtype == np.uint8
    assert consmarl.make("pgm-6ag", num_agents=300, grid=(20, 20)).observation_dtype == np.uint16
    assert consmarl.make("ft", episode_limit=256).observation_dtype == np.uint16
    assert consmarl.make("cleanup").observation_dtype == np.uint8


def test_different_codes_give_different_observations():
    """Counting by codes is exact: no two codes at one position give the same observation."""
    for id in consmarl.world_ids():
        world = consmarl.make(id)
        for limit, scale in zip(world.observation_limit, world.observation_scale, strict=True):
            values = np.arange(limit + 1).astype(np.float32) * scale
            assert len(set(values.tolist())) == limit + 1


def test_layouts_use_every_cell_equally_often_and_are_ordered_from_the_top_left():
    world = consmarl.make("pgm-3ag", grid=(3, 3))
    num_layouts = 9000
    layouts = jax.vmap(world.generate_layout)(jax.random.split(jax.random.key(3), num_layouts))
    numbers = {name: np.asarray(cells[..., 0] * 3 + cells[..., 1]) for name, cells in layouts._asdict().items()}
    everything = np.concatenate(list(numbers.values()), axis=1)
    assert all(len(set(row)) == 6 for row in everything.tolist())
    for cells in numbers.values():
        assert (np.diff(cells, axis=1) > 0).all()
        expected = num_layouts * cells.shape[1] / 9
        assert (np.abs(np.bincount(cells.reshape(-1), minlength=9) - expected) < 5 * np.sqrt(expected)).all()
