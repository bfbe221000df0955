"""Cleanup's beams and growth, on maps small enough to work out by hand."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import consmarl
from consmarl.environments.cleanup import CleanupDraws, WasteRule
from consmarl.errors import UsageError

LEFT, RIGHT, UP, DOWN, STAY, CLEAN = range(6)
MAP = (
    "@@@@@@@",
    "@H   B@",
    "@H   B@",
    "@R P B@",
    "@RP  B@",
    "@@@@@@@",
)


@pytest.fixture
def world():
    return consmarl.make("cleanup", map=MAP, num_agents=2, waste_limit=1.0)


@functools.cache
def advance_in(world):
    return jax.jit(world.advance)


def chances(world, *, apple=1.0, waste=1.0):
    """The random draws of one step: 1 means never, 0 means wherever it is possible."""
    fields, river = len(world.field_cells), len(world.river_cells)
    return CleanupDraws(np.zeros(2), np.full(fields, apple), np.float32(waste), np.arange(river) / river)


def begin(world, *agents):
    return world.begin(world.layout_from({"agents": agents}))


def test_a_beam_stops_at_the_first_waste_and_cleans_it(world):
    state = begin(world, (4, 1), (4, 4))
    state, _ = advance_in(world)(state, np.array([CLEAN, STAY]), chances(world))
    assert np.argwhere(state.waste).tolist() == [[1, 1]]
    assert np.argwhere(state.beams).tolist() == [[2, 1], [3, 1]]
    assert state.waste_cleaned.tolist() == [1, 0]


def test_a_beam_reaches_three_cells_and_no_further(world):
    state = begin(world, (4, 3), (4, 4))
    state, _ = advance_in(world)(state, np.array([CLEAN, STAY]), chances(world))
    assert np.argwhere(state.beams).tolist() == [[1, 3], [2, 3], [3, 3]]
    state, _ = advance_in(world)(state, np.array([UP, STAY]), chances(world))
    assert not state.beams.any()  # visible for one step


def test_a_beam_cleans_under_an_agent_and_stops_there(world):
    state = begin(world, (3, 1), (2, 1))
    state, _ = advance_in(world)(state, np.array([CLEAN, STAY]), chances(world))
    assert np.argwhere(state.waste).tolist() == [[1, 1]]
    assert np.argwhere(state.beams).tolist() == [[2, 1]]


def test_a_beam_does_not_pass_through_an_agent_that_is_cleaning_too(world):
    state = begin(world, (4, 1), (3, 1))
    state, _ = advance_in(world)(state, np.array([CLEAN, CLEAN]), chances(world))
    assert state.waste_cleaned.tolist() == [0, 1]
    assert np.argwhere(state.beams).tolist() == [[2, 1], [3, 1]]


def only(world, row, column):
    return jnp.zeros(world.grid, bool).at[row, column].set(True)


def test_an_eaten_apple_rewards_every_agent_and_disappears(world):
    state = begin(world, (2, 4), (4, 4))._replace(apples=only(world, 2, 5))
    state, outcome = advance_in(world)(state, np.array([RIGHT, STAY]), chances(world))
    assert outcome.rewards.tolist() == [1.0, 1.0]
    assert state.apples_eaten.tolist() == [1, 0]
    assert not state.apples.any()


def test_apples_grow_on_free_field_cells_only(world):
    state = begin(world, (1, 5), (4, 4))
    state, _ = advance_in(world)(state, np.array([STAY, STAY]), chances(world, apple=0.0))
    assert np.argwhere(state.apples).tolist() == [[2, 5], [3, 5], [4, 5]]


def test_waste_appears_on_the_clean_river_cell_that_was_drawn(world):
    state = begin(world, (4, 2), (4, 4))
    state, _ = advance_in(world)(state, np.array([STAY, STAY]), chances(world, waste=0.0))
    assert np.argwhere(state.waste).tolist() == [[1, 1], [2, 1], [3, 1]]


def test_nothing_grows_once_the_river_is_covered():
    world = consmarl.make("cleanup", map=MAP, num_agents=2, waste_limit=0.5)
    state = begin(world, (4, 2), (4, 4))
    state, _ = advance_in(world)(state, np.array([STAY, STAY]), chances(world, apple=0.0, waste=0.0))
    assert not state.apples.any()
    assert state.waste.sum() == 2


@pytest.mark.parametrize(("rule", "expected"), [(WasteRule.PER_CELL, 1.0), (WasteRule.PER_STEP, 0.5)])
def test_waste_appears_almost_always_in_the_release_and_half_the_time_in_the_paper(rule, expected):
    world = consmarl.make("cleanup", waste_rule=rule)
    clean = world.begin(world.generate_layout(jax.random.key(0)))._replace(waste=jnp.zeros(world.grid, bool))

    def has_waste(key):
        return world.step(key, clean, np.full(4, STAY))[0].waste.sum()

    counts = jax.vmap(has_waste)(jax.random.split(jax.random.key(2), 4000))
    assert set(counts.tolist()) <= {0, 1}
    assert float(counts.mean()) == pytest.approx(expected, abs=0.03)


def test_the_growth_rate_of_apples_depends_on_the_share_of_waste():
    world = consmarl.make("cleanup")
    state = world.reset(jax.random.key(0))
    state = state._replace(waste=jnp.zeros(world.grid, bool).at[1, 1:3].set(True))
    grown = jax.vmap(lambda key: world.step(key, state, np.full(4, STAY))[0].apples.sum())
    mean = float(grown(jax.random.split(jax.random.key(3), 4000)).mean())
    assert mean == pytest.approx(12 * 0.3 * (1 - 2 / 16 / 0.4), abs=0.1)


def test_waste_is_equally_likely_on_every_clean_river_cell():
    world = consmarl.make("cleanup")
    clean = world.reset(jax.random.key(0))._replace(waste=jnp.zeros(world.grid, bool))
    fouled = jax.vmap(lambda key: world.step(key, clean, np.full(4, STAY))[0].waste)
    counts = np.asarray(fouled(jax.random.split(jax.random.key(4), 8000)).sum(axis=0))[world.places.is_river]
    assert (np.abs(counts - 500) < 5 * np.sqrt(500)).all()


def test_an_agent_sees_itself_purple_and_others_in_their_own_colour():
    world = consmarl.make("cleanup")
    state = world.begin(world.layout_from({"agents": [[5, 4], [5, 5], [3, 6], [1, 6]]}))
    windows = np.asarray(world.observe(state)).reshape(4, 5, 5, 3)
    assert windows[1, 2, 2].tolist() == [159, 67, 255]
    assert windows[0, 2, 3].tolist() == [2, 81, 154]


def test_the_published_map_has_the_recorded_start_cells():
    state = consmarl.make("cleanup").reset(jax.random.key(5))
    assert state.agents.tolist() == [[8, 3], [5, 4], [3, 6], [1, 6]]


def test_maps_of_other_sizes_follow_the_published_pattern():
    world = consmarl.make("cleanup", grid=(6, 9), num_agents=6)
    assert world.map[1][:3] == "@HH"
    assert world.map[2][:3] == "@RR"
    assert world.map[2][-3:] == "BB@"
    assert len({tuple(cell) for cell in world.places.starts.tolist()}) == 6


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        (dict(map=("@@@", "@P", "@@@")), "rows of different lengths"),
        (dict(map=("@@@@", "@PX@", "@@@@"), num_agents=1), "letter 'X'"),
        (dict(map=("@@@@", "@P H", "@@@@"), num_agents=1), "closed by walls"),
        (dict(map=MAP, num_agents=3), "2 starts 'P', and 3 agents"),
        (dict(map=("@@@@", "@P @", "@@@@"), num_agents=1), "no river"),
        (dict(grid=(3, 5)), "too small"),
        (dict(num_agents=60), "ground for"),
        (dict(waste_rule="percell"), "did you mean 'per-cell'"),
        (dict(apple_probability=1.5), "between 0 and 1"),
        (dict(waste_limit=0), "above 0"),
        (dict(beam_length=0), "at least 1"),
        (dict(map=3), "rows of text"),
    ],
)
def test_impossible_maps_and_parameters_are_refused(parameters, sentence):
    with pytest.raises(UsageError, match=sentence):
        consmarl.make("cleanup", **parameters)
