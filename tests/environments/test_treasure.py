"""Find the Treasure on a fixed map, with steps worked out by hand from the rules."""

import functools

import jax
import numpy as np
import pytest

import consmarl

STAY, DOWN, LEFT, UP, RIGHT, OPEN, PICK = range(7)
LAYOUT = {
    "agents": [[0, 0], [0, 0], [1, 1], [3, 3]],
    "yellow": [[0, 0], [5, 5], [6, 6]],
    "red": [[1, 1], [2, 2], [2, 3], [2, 4], [2, 5], [3, 3]],
    "treasure": 5,
}


@pytest.fixture
def world():
    return consmarl.make("ft")


@functools.cache
def step_in(world):
    return jax.jit(world.step)


@functools.cache
def observe_in(world):
    return jax.jit(world.observe)


def play(world, layout, *steps):
    state, rewards = world.begin(world.layout_from(layout)), []
    for actions in steps:
        state, outcome = step_in(world)(jax.random.key(0), state, np.array(actions))
        rewards.append(float(outcome.team_reward))
    return state, rewards


def test_two_agents_open_a_box_and_one_picks_up_its_contents_a_step_later(world):
    state, rewards = play(world, LAYOUT, (OPEN, OPEN, OPEN, STAY), (PICK, STAY, STAY, STAY), (PICK, PICK, STAY, STAY))
    np.testing.assert_allclose(rewards, [-1.04, 1.96, -0.04], atol=1e-5)
    assert np.flatnonzero(state.opened).tolist() == [0]  # the red box had one opener only


def test_treasure_cannot_be_taken_in_the_step_that_uncovers_it(world):
    layout = LAYOUT | {"agents": [[3, 3], [3, 3], [3, 3], [0, 7]]}
    state, rewards = play(world, layout, (OPEN, OPEN, PICK, STAY), (OPEN, OPEN, PICK, STAY))
    np.testing.assert_allclose(rewards, [-2.04, 14.96], atol=1e-5)
    assert world.counters(state).team["treasures_taken"] == 1


def test_opening_a_box_costs_the_team_once_however_many_agents_open_it(world):
    layout = LAYOUT | {"agents": [[1, 1]] * 4}
    _, rewards = play(world, layout, (OPEN,) * 4, (OPEN,) * 4, (PICK,) * 4)
    np.testing.assert_allclose(rewards, [-2.04, -0.04, -0.04], atol=1e-5)


def test_closed_boxes_show_their_colour_and_open_ones_their_contents(world):
    layout = LAYOUT | {"agents": [[3, 3]] * 4}
    before, _ = play(world, layout)
    after, _ = play(world, layout, (OPEN,) * 4)

    def middle(state):
        return (np.asarray(observe_in(world)(state))[0] * world.observation_scale)[3:].reshape(5, 5, 3)[2, 2].tolist()

    assert middle(before) == [1.0, 1.0, 0.0]
    assert middle(after) == [1.0, 0.0, 1.0]


def test_green_boxes_hold_a_second_treasure():
    world = consmarl.make("ft-multi")
    green = [[7, column] for column in range(6)]
    layout = LAYOUT | {"agents": [[7, 2]] * 4, "green": green, "green_treasure": 2}
    state, rewards = play(world, layout, (OPEN,) * 4, (PICK,) * 4)
    np.testing.assert_allclose(rewards, [-2.04, 14.96], atol=1e-5)
    assert world.counters(state).team["green_opened"] == 1
    closed = np.asarray(observe_in(world)(world.begin(world.layout_from(layout))))[0] * world.observation_scale
    assert closed[3:].reshape(5, 5, 3)[2, 2].tolist() == [1.0, 0.75, 0.0]


def test_an_episode_ends_only_at_its_step_limit(world):
    state = jax.jit(world.reset)(jax.random.key(0))
    for number in range(1, 51):
        state, outcome = step_in(world)(jax.random.key(0), state, np.zeros(4, int))
        assert (bool(outcome.terminated), bool(outcome.truncated)) == (False, number == 50)


def test_the_treasure_is_equally_likely_in_every_red_box(world):
    layouts = jax.vmap(world.generate_layout)(jax.random.split(jax.random.key(1), 6000))
    counts = np.bincount(layouts.treasure, minlength=6)
    assert counts.shape == (6,)
    assert (np.abs(counts - 1000) < 5 * np.sqrt(1000 * 5 / 6)).all()
