"""Invariants of every environment, for arbitrary actions."""

import hypothesis
import jax
import numpy as np
import pytest
from hypothesis import strategies as st
from tests.worlds import all_worlds

from consmarl.environments.cleanup import Cleanup
from consmarl.environments.gold_miner import GoldMiner
from consmarl.environments.playback import play
from consmarl.environments.treasure import FindTreasure

WORLDS = all_worlds()
compiled_play = jax.jit(play, static_argnums=0)


@st.composite
def episodes(draw, world):
    """Draw a seed, and each agent's actions as runs of one action, because mining and opening need agents to stay."""
    runs = st.lists(st.tuples(st.integers(0, world.num_actions - 1), st.integers(1, 12)), min_size=1, max_size=12)
    columns = []
    for agent_runs in draw(st.lists(runs, min_size=world.num_agents, max_size=world.num_agents)):
        steps = [action for action, length in agent_runs for _ in range(length)]
        columns.append(np.resize(steps, world.episode_limit))
    return draw(st.integers(0, 2**31)), np.stack(columns, axis=1).astype(np.int32)


def played(world, seed, actions):
    """Return the trajectory without padding, as NumPy arrays."""
    trajectory = jax.device_get(compiled_play(world, jax.random.key(seed), actions))
    length = trajectory.num_steps
    return length, trajectory._replace(
        states=jax.tree.map(lambda rows: rows[: length + 1], trajectory.states),
        codes=trajectory.codes[: length + 1],
        outcomes=jax.tree.map(lambda rows: rows[:length], trajectory.outcomes),
    )


def check_any_world(world, length, trajectory):
    cells, outcomes = trajectory.states.agents, trajectory.outcomes
    assert ((cells >= 0) & (cells < np.array(world.grid))).all()
    assert (np.abs(np.diff(cells, axis=0)).sum(axis=2) <= 1).all()
    assert trajectory.codes.dtype == world.observation_dtype
    assert (trajectory.codes <= world.observation_limit).all()
    assert outcomes.truncated.tolist() == [step == world.episode_limit for step in range(1, length + 1)]
    assert not outcomes.done[:-1].any()
    np.testing.assert_allclose(outcomes.team_reward, outcomes.rewards.sum(axis=1), atol=1e-5)


def check_gold_miner(world, length, trajectory):
    states, last = trajectory.states, trajectory.state(-1)
    assert (np.diff(states.gold_mined.astype(int), axis=0) >= 0).all()
    assert (last.steps_mined <= world.mining_steps).all()
    assert (last.stones_taken <= world.stones_per_pile).all()
    assert (last.steps_mined[last.gold_mined] == world.mining_steps).all()
    assert trajectory.outcomes.terminated[-1] == last.gold_mined.all()
    counted = (
        world.gold_reward * last.gold_mined.sum(axis=1)
        - world.mining_cost * last.steps_mined.sum(axis=1)
        + world.stone_reward * last.stones_taken.sum(axis=1)
        - world.step_cost * length
    )
    np.testing.assert_allclose(trajectory.outcomes.rewards.sum(axis=0), counted, atol=1e-3)


def check_treasure(world, length, trajectory):
    states, last = trajectory.states, trajectory.state(-1)
    assert (states.taken[1:] <= (states.opened & states.has_item)[:-1]).all()
    assert (np.diff(states.opened.astype(int), axis=0) >= 0).all()
    achieved = world.counters(last).team
    treasures_held = last.has_item.sum() - world.num_yellow
    assert treasures_held == (world.num_red > 0) + (world.num_green > 0)
    costs = sum(getattr(world, f"{kind}_cost") * achieved.get(f"{kind}_opened", 0) for kind in world.box_counts)
    items = world.coin_reward * achieved["coins_taken"] + world.treasure_reward * achieved["treasures_taken"]
    counted = items - costs - world.step_cost * length * world.num_agents
    np.testing.assert_allclose(trajectory.outcomes.team_reward.sum(), counted, atol=1e-3)


def check_cleanup(world, length, trajectory):
    states, last = trajectory.states, trajectory.state(-1)
    numbers = states.agents[..., 0] * world.grid[1] + states.agents[..., 1]
    assert all(len(set(row)) == world.num_agents for row in numbers.tolist())
    assert not world.places.is_wall[states.agents[..., 0], states.agents[..., 1]].any()
    assert not (states.waste & ~world.places.is_river).any()
    assert not (states.apples & ~world.places.is_field).any()
    steps = np.arange(length + 1)[:, None]
    assert not states.apples[steps, states.agents[..., 0], states.agents[..., 1]].any()
    num_waste = states.waste.sum(axis=(1, 2))
    appeared = np.diff(num_waste) + np.diff(states.waste_cleaned.sum(axis=1))
    assert set(appeared.tolist()) <= {0, 1}
    eaten = world.apple_reward * last.apples_eaten.sum()
    np.testing.assert_allclose(trajectory.outcomes.rewards.sum(axis=0), eaten, atol=1e-4)


CHECKS = {GoldMiner: check_gold_miner, FindTreasure: check_treasure, Cleanup: check_cleanup}


@pytest.mark.parametrize("name", WORLDS)
def test_invariants_hold_for_any_actions(name):
    world = WORLDS[name]

    @hypothesis.settings(max_examples=40, suppress_health_check=list(hypothesis.HealthCheck))
    @hypothesis.given(episodes(world))
    def holds(episode):
        length, trajectory = played(world, *episode)
        check_any_world(world, length, trajectory)
        CHECKS[type(world)](world, length, trajectory)

    holds()


@pytest.mark.parametrize("name", WORLDS)
def test_the_same_seed_gives_the_same_episode_and_another_seed_a_different_one(name):
    world = WORLDS[name]
    actions = np.random.default_rng(1).integers(0, world.num_actions, (world.episode_limit, world.num_agents))
    if isinstance(world, Cleanup):
        actions[:8] = 0  # go to the river: nothing is random until an agent cleans
        actions[8:] = np.where(actions[8:] < 3, 5, actions[8:])
    once, again, other = (jax.device_get(compiled_play(world, jax.random.key(seed), actions)) for seed in (3, 3, 4))
    assert all(np.array_equal(*pair) for pair in zip(jax.tree.leaves(once), jax.tree.leaves(again), strict=True))
    assert not all(np.array_equal(*pair) for pair in zip(jax.tree.leaves(once), jax.tree.leaves(other), strict=True))


def test_small_environments_reach_the_events_that_the_invariants_describe():
    """An invariant about gold means little if no random episode ever mines any."""
    rng = np.random.default_rng(0)

    def summed(name, field):
        world = WORLDS[name]
        total = 0
        for seed in range(20):
            actions = rng.integers(0, world.num_actions, (world.episode_limit, world.num_agents))
            total += int(np.sum(getattr(played(world, seed, actions)[1].state(-1), field)))
        return total

    assert summed("tiny-mine", "gold_mined") > 5
    assert summed("tiny-mine", "stones_taken") > 5
    assert summed("one-opener", "taken") > 5
    assert summed("crowded-cleanup", "apples_eaten") > 5
    assert summed("crowded-cleanup", "waste_cleaned") > 5
