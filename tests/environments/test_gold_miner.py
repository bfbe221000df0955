"""Patient Gold Miner on a fixed map, with steps worked out by hand from the rules."""

import jax
import numpy as np
import pytest

import consmarl

STAY, DOWN, LEFT, UP, RIGHT = range(5)


@pytest.fixture
def world():
    return consmarl.make("pgm-6ag", grid=(3, 4), num_agents=2, num_mines=1, num_piles=1, mining_steps=2,
                         stones_per_pile=2, view=(3, 3), episode_limit=10)  # fmt: skip


def start(world, agents=((0, 0), (2, 3)), golds=((0, 1),), stones=((2, 3),)):
    return world.begin(world.layout_from({"agents": agents, "golds": golds, "stones": stones}))


def rewards_of(world, state, *steps):
    rows = []
    for actions in steps:
        state, outcome = world.step(jax.random.key(0), state, np.array(actions))
        rows.append(outcome.rewards)
    return state, np.array(rows)


def test_gold_is_received_once_in_the_step_after_the_last_mining_step(world):
    _, rewards = rewards_of(world, start(world), (RIGHT, UP), (STAY, UP), (STAY, UP), (STAY, UP))
    np.testing.assert_allclose(rewards[:, 0], [-1.2, -1.2, 29.8, -0.2], rtol=1e-6)


def test_mining_progress_is_kept_when_an_agent_leaves_the_mine(world):
    steps = [(RIGHT, UP), (DOWN, UP), (UP, UP), (STAY, UP)]
    _, rewards = rewards_of(world, start(world), *steps)
    np.testing.assert_allclose(rewards[:, 0], [-1.2, -0.2, -1.2, 29.8], rtol=1e-6)


def test_stones_run_out_separately_for_each_agent(world):
    state = start(world, agents=((2, 3), (2, 3)))
    _, rewards = rewards_of(world, state, (STAY, UP), (STAY, DOWN), (STAY, STAY), (STAY, STAY))
    np.testing.assert_allclose(rewards[:, 0], [0.1, 0.1, -0.2, -0.2], atol=1e-6)
    np.testing.assert_allclose(rewards[:, 1], [-0.2, 0.1, 0.1, -0.2], atol=1e-6)


def test_agents_can_share_a_mine_and_the_episode_ends_when_all_have_gold(world):
    state = start(world, agents=((0, 1), (0, 1)))
    for expected in (False, False, True):
        state, outcome = world.step(jax.random.key(0), state, np.array([STAY, STAY]))
        assert bool(outcome.terminated) is expected
        assert not outcome.truncated
    assert world.counters(state).per_agent["gold_mined"].tolist() == [[1], [1]]


def test_moves_stop_at_the_border(world):
    state, _ = rewards_of(world, start(world), (LEFT, DOWN), (UP, RIGHT))
    assert state.agents.tolist() == [[0, 0], [2, 3]]


def test_observations_match_those_worked_out_by_hand(world):
    codes = np.asarray(world.observe(start(world)))
    window = codes[0, 3:].reshape(3, 3, 3)
    assert codes[0, :3].tolist() == [0, 0, 0]
    expected = np.zeros((3, 3, 3), int)
    expected[1, 1] = (1, 0, 0)  # itself
    expected[1, 2] = (0, 1, 0)  # the mine to its right
    np.testing.assert_array_equal(window, expected)
    assert codes[1, :3].tolist() == [2, 3, 0]
    assert codes[1, 3:].reshape(3, 3, 3)[1, 1].tolist() == [1, 0, 1]  # on the pile
    np.testing.assert_allclose(codes[1, :3] * world.observation_scale[:3], [1, 1, 0])


def test_an_exhausted_mine_is_no_longer_observed(world):
    state = start(world, agents=((0, 1), (0, 1)))
    state, _ = rewards_of(world, state, *[(STAY, STAY)] * 3)
    assert np.asarray(world.observe(state))[0, 3:].reshape(3, 3, 3)[1, 1].tolist() == [2, 0, 0]


def test_without_mines_an_episode_lasts_to_its_limit():
    world = consmarl.make("pgm-3ag", num_mines=0, episode_limit=2)
    state = world.reset(jax.random.key(0))
    for truncated in (False, True):
        state, outcome = world.step(jax.random.key(0), state, np.zeros(3, int))
        assert (bool(outcome.terminated), bool(outcome.truncated)) == (False, truncated)
