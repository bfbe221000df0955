"""Footprints: an exact memory of an agent's own path."""

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given

import consmarl
from consmarl.environments.interface import Ground
from consmarl.errors import UsageError
from consmarl.experiments.configuration.config import TrainConfig
from consmarl.learners.interface import TeamSpec
from consmarl.learners.iql import IQL
from consmarl.networks.footprints import MOST_STEPS, first_way, scale_of_told, told, told_in_episodes, with_step

GROUND = Ground((5, 4), (3, 1))
(ROWS, COLUMNS), VIEW = GROUND
CELLS = [(row, column) for row in range(ROWS) for column in range(COLUMNS)]


@jax.jit
def told_here(rows, columns):
    return told_in_episodes(rows, columns, *GROUND)


@jax.jit
def told_after_a_step(way, row, column):
    way = with_step(way, row, column, *GROUND)
    return way, told(way, row, column, *GROUND)


def in_view(place):
    """The cells of the window around a place, row by row, including those outside the grid."""
    reach = [side // 2 for side in VIEW]
    return [(place[0] + down, place[1] + right)
            for down in range(-reach[0], reach[0] + 1) for right in range(-reach[1], reach[1] + 1)]  # fmt: skip


def told_slowly(places, step):
    """A network's extra inputs after a step: step counts of the cells in view, then unseen cells by direction."""
    so_far, here = places[: step + 1], places[step]
    steps = [min(so_far.count(cell), MOST_STEPS) for cell in in_view(here)]
    seen = {cell for place in so_far for cell in in_view(place)}
    window = in_view(here)
    parts = dict.fromkeys([(down, right) for down in (-1, 0, 1) for right in (-1, 0, 1)], 0)
    for row, column in CELLS:
        down = -1 if row < window[0][0] else 1 if row > window[-1][0] else 0
        right = -1 if column < window[0][1] else 1 if column > window[-1][1] else 0
        parts[down, right] += (row, column) not in seen
    assert parts.pop((0, 0)) == 0
    return steps + [255 * unseen // len(CELLS) for unseen in parts.values()]


PLACES = st.lists(st.sampled_from(CELLS), min_size=4, max_size=4)


@given(PLACES)
def test_footprint_inputs_match_those_worked_out_from_the_path(places):
    rows, columns = (jnp.array(each, jnp.int32) for each in zip(*places, strict=True))
    found = told_here(rows, columns)
    expected = np.array([told_slowly(places, step) for step in range(len(places))])
    assert found.shape == (4, len(scale_of_told(VIEW)))
    assert np.abs(np.asarray(found, int) - expected).max() <= 1  # shares of 255 may round differently
    np.testing.assert_array_equal(found[:, :3], expected[:, :3])


@given(PLACES)
def test_stepwise_footprints_equal_those_of_whole_episodes(places):
    rows, columns = (jnp.array(each, jnp.int32) for each in zip(*places, strict=True))
    way = first_way((), GROUND.grid)
    for step, expected in enumerate(told_here(rows, columns)):
        way, found = told_after_a_step(way, rows[step], columns[step])
        np.testing.assert_array_equal(found, expected)


def test_step_counts_are_capped():
    rows = jnp.zeros(300, jnp.int32)
    counts = np.asarray(told_in_episodes(rows, rows, *GROUND))[:, VIEW[0] * VIEW[1] // 2]
    assert counts.tolist() == [min(number, MOST_STEPS) for number in range(1, 301)]


def test_footprints_need_observations_that_contain_the_position():
    cleanup = IQL(TeamSpec.of(consmarl.make("cleanup")), footprints=True)
    with pytest.raises(UsageError, match="row and column on a grid"):
        _ = cleanup.networks.input_size
    with pytest.raises(UsageError, match=r"row and column: learn\.footprints must be off"):
        TrainConfig(env="cleanup", learn={"footprints": True}).trainer()
