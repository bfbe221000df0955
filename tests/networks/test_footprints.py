"""Footprints: an exact memory of where an agent has been."""

import hypothesis.strategies as st
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given

import consmarl
from consmarl.errors import UsageError
from consmarl.experiments.config import TrainConfig
from consmarl.learners.interface import TeamSpec
from consmarl.learners.iql import IQL
from consmarl.networks.footprints import MOST_STEPS, in_view, windows_of, with_step

GRID, VIEW = (3, 4), (3, 5)


def seen_slowly(places, step):
    """How often the agent has been on each cell of its window after a step, this time included, row by row."""
    (row, column), so_far = places[step], places[: step + 1]
    rows, columns = (
        range(middle - side // 2, middle + side // 2 + 1) for middle, side in zip((row, column), VIEW, strict=True)
    )
    return np.array([min(so_far.count((r, c)), MOST_STEPS) for r in rows for c in columns])


PLACES = st.lists(st.tuples(st.integers(0, GRID[0] - 1), st.integers(0, GRID[1] - 1)), min_size=4, max_size=4)


@given(PLACES)
def test_a_window_counts_the_steps_on_its_cells(places):
    rows, columns = (jnp.array(each, jnp.int32) for each in zip(*places, strict=True))
    found = windows_of(rows, columns, GRID, VIEW)
    np.testing.assert_array_equal(found, [seen_slowly(places, step) for step in range(len(places))])


@given(PLACES)
def test_step_by_step_it_is_the_same_as_by_whole_episodes(places):
    rows, columns = (jnp.array(each, jnp.int32) for each in zip(*places, strict=True))
    board = jnp.zeros(GRID[0] * GRID[1], jnp.uint8)
    for step, window in enumerate(windows_of(rows, columns, GRID, VIEW)):
        board = with_step(board, rows[step], columns[step], GRID)
        np.testing.assert_array_equal(in_view(board, rows[step], columns[step], GRID, VIEW), window)


def test_long_stays_are_counted_up_to_a_bound():
    rows = jnp.zeros(300, jnp.int32)
    middle = VIEW[0] * VIEW[1] // 2
    counts = np.asarray(windows_of(rows, rows, GRID, VIEW))[:, middle]
    assert counts.tolist() == [min(number, MOST_STEPS) for number in range(1, 301)]


def test_they_take_a_world_whose_observations_tell_the_place():
    cleanup = IQL(TeamSpec.of(consmarl.make("cleanup")), footprints=True)
    with pytest.raises(UsageError, match="row and column on a grid"):
        _ = cleanup.networks.input_size
    with pytest.raises(UsageError, match=r"row and column: learn\.footprints must be off"):
        TrainConfig(env="cleanup", learn={"footprints": True}).trainer()
