"""Frames show what they should, judged by the colours at known places."""

import jax
import numpy as np
import pytest
from tests.worlds import all_worlds

import consmarl
from consmarl.environments.draw import Status, draw_frame
from consmarl.environments.draw.agents import agent_colour
from consmarl.environments.draw.cleanup import APPLE, RIVER, WALL, WASTE
from consmarl.environments.draw.frame import MARGIN
from consmarl.environments.draw.gold_miner import GOLD, STONE
from consmarl.environments.draw.treasure import BOX_COLOURS, GEM

WORLDS = all_worlds()


def cell_of(frame, world, row, column):
    """Cut one cell out of a frame."""
    side = max(min(480 // max(world.grid), 56), 12)
    top, left = MARGIN + row * side, MARGIN + column * side
    return frame[top : top + side, left : left + side]


def shows(picture, colour, at_least=4):
    distance = np.abs(picture.astype(int) - np.array(colour[:3])).max(axis=-1)
    return (distance < 12).sum() >= at_least


@pytest.mark.parametrize("name", WORLDS)
def test_every_environment_draws_every_agent_in_its_cell(name):
    world = WORLDS[name]
    state = jax.jit(world.reset)(jax.random.key(0))
    frame = draw_frame(world, state, Status(returns=np.zeros(world.num_agents)))
    assert frame.dtype == np.uint8
    assert frame.ndim == 3
    for agent, (row, column) in enumerate(np.asarray(state.agents)):
        assert shows(cell_of(frame, world, row, column), agent_colour(agent))


def test_a_mine_shows_its_gold_and_each_agents_progress():
    world = consmarl.make("pgm-3ag")
    layout = {"agents": [[0, 0], [0, 4], [7, 8]], "golds": [[4, 4]], "stones": [[2, 2], [6, 6]]}
    state = world.begin(world.layout_from(layout))
    before = draw_frame(world, state, view_of=None)
    assert shows(cell_of(before, world, 4, 4), GOLD)
    assert shows(cell_of(before, world, 2, 2), STONE)
    assert not shows(cell_of(before, world, 4, 4), agent_colour(1))
    half_mined = state._replace(steps_mined=state.steps_mined.at[1, 0].set(4))
    assert shows(cell_of(draw_frame(world, half_mined, view_of=None), world, 4, 4), agent_colour(1))
    emptied = state._replace(gold_mined=np.ones((3, 1), bool))
    assert not shows(cell_of(draw_frame(world, emptied, view_of=None), world, 4, 4), GOLD)


def test_closed_open_and_full_boxes_look_different():
    world = consmarl.make("ft")
    state = world.begin(world.layout_from({
        "agents": [[7, 7]] * 4, "yellow": [[1, 1], [1, 3], [1, 5]],
        "red": [[3, 0], [3, 2], [3, 4], [5, 0], [5, 2], [5, 4]], "treasure": 0,
    }))  # fmt: skip
    closed = cell_of(draw_frame(world, state, view_of=None), world, 3, 0)
    opened_state = state._replace(opened=state.opened.at[3].set(True))
    opened = cell_of(draw_frame(world, opened_state, view_of=None), world, 3, 0)
    emptied_state = opened_state._replace(taken=state.taken.at[3].set(True))
    emptied = cell_of(draw_frame(world, emptied_state, view_of=None), world, 3, 0)
    assert shows(closed, BOX_COLOURS["red"], at_least=200)
    assert not shows(opened, BOX_COLOURS["red"], at_least=200)
    assert shows(opened, GEM)
    assert not shows(emptied, GEM)


def test_cleanup_shows_walls_river_waste_apples_and_beams():
    world = consmarl.make("cleanup")
    state = world.reset(jax.random.key(0))
    state = state._replace(apples=state.apples.at[2, 8].set(True))
    without = draw_frame(world, state, view_of=None)
    for (row, column), colour in {(0, 0): WALL, (2, 1): RIVER, (1, 1): WASTE, (2, 8): APPLE}.items():
        assert shows(cell_of(without, world, row, column), colour)
    fired = draw_frame(world, state._replace(beams=state.beams.at[5, 5].set(True)), view_of=None)
    assert not np.array_equal(cell_of(without, world, 5, 5), cell_of(fired, world, 5, 5))


def test_the_view_of_the_chosen_agent_is_outlined():
    world = consmarl.make("pgm-6ag")
    state = world.begin(world.layout_from({
        "agents": [[2, 2], [9, 9], [0, 11], [0, 10], [0, 9], [0, 8]],
        "golds": [[11, 0], [11, 1]], "stones": [[11, 2], [11, 3], [11, 4]],
    }))  # fmt: skip
    outline = {agent: cell_of(draw_frame(world, state, view_of=agent), world, 7, 7) for agent in (0, 1)}
    assert not shows(outline[0], agent_colour(1))
    assert shows(outline[1], agent_colour(1))


def test_agents_in_one_cell_are_drawn_side_by_side():
    world = consmarl.make("ft", num_agents=5)
    layout = {
        "agents": [[4, 4]] * 5, "yellow": [[0, 0], [0, 1], [0, 2]], "red": [[1, c] for c in range(6)], "treasure": 0,
    }  # fmt: skip
    cell = cell_of(draw_frame(world, world.begin(world.layout_from(layout))), world, 4, 4)
    assert all(shows(cell, agent_colour(agent)) for agent in range(5))


def test_frames_of_large_teams_fit_on_a_screen():
    world = consmarl.make("pgm-6ag", num_agents=100, grid=(24, 24))
    height, width, _ = draw_frame(world, world.reset(jax.random.key(0))).shape
    assert height < 900
    assert width < 1000


def test_render_draws_the_current_state():
    env = consmarl.parallel_env("pgm-3ag", render_mode="rgb_array")
    env.reset(seed=0)
    before = env.render()
    env.step(dict.fromkeys(env.agents, 1))
    after = env.render()
    assert before.shape == after.shape
    assert not np.array_equal(before, after)
