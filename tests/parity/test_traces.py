"""Our environments, through the public interface, against episodes recorded from the authors' environments."""

from pathlib import Path

import jax
import numpy as np
import pytest

import consmarl
from consmarl.environments.cleanup import WasteRule

DATA = Path(__file__).parent / "data"
NUM_EPISODES = 12
LAYOUT_PARTS = {
    "pgm-6ag": ("agents", "golds", "stones"),
    "pgm-3ag": ("agents", "golds", "stones"),
    "ft": ("agents", "yellow", "red", "treasure"),
    "ft-20": ("agents", "yellow", "red", "treasure"),
}
FINAL_COUNTERS = ("gold_mined", "stones_taken", "opened", "items_taken")


def stacked(by_agent):
    return np.stack(list(by_agent.values()))


@pytest.fixture(scope="module", params=LAYOUT_PARTS)
def recorded(request):
    with np.load(DATA / f"{request.param}.npz") as file:
        return request.param, dict(file)


@pytest.mark.parametrize("episode", range(NUM_EPISODES))
def test_every_step_equals_the_recorded_one(recorded, episode):
    id, trace = recorded
    env = consmarl.parallel_env(id)
    layout = {part: trace[part][episode] for part in LAYOUT_PARTS[id]}
    observations, _ = env.reset(options={"layout": layout})
    np.testing.assert_allclose(stacked(observations), trace["obs"][episode, 0], atol=1e-6)
    for step in range(trace["length"][episode]):
        actions = dict(zip(env.agents, trace["actions"][episode, step], strict=True))
        observations, rewards, terminated, truncated, infos = env.step(actions)
        np.testing.assert_allclose(stacked(observations), trace["obs"][episode, step + 1], atol=1e-6)
        np.testing.assert_allclose(stacked(rewards), trace["rewards"][episode, step], atol=1e-5)
        assert (terminated["agent_0"] or truncated["agent_0"]) == bool(trace["done"][episode, step])
    assert not env.agents
    for name in FINAL_COUNTERS:
        if name in trace:
            expected = trace[name][episode]  # [agent, item], or one row for the team
            for row, agent in zip(np.broadcast_to(expected, (len(infos), expected.shape[1])), infos, strict=True):
                np.testing.assert_array_equal(infos[agent][name], row)


def test_the_traces_contain_the_events_they_test(recorded):
    _, trace = recorded
    assert any(trace[name].any() for name in FINAL_COUNTERS if name in trace)
    assert trace["length"].min() >= 20


@pytest.fixture(scope="module")
def cleanup_trace():
    with np.load(DATA / "cleanup.npz") as file:
        return dict(file)


@pytest.mark.parametrize("episode", range(NUM_EPISODES))
def test_cleanup_reproduces_a_recorded_episode_given_its_random_draws(cleanup_trace, episode):
    trace = {name: rows[episode] for name, rows in cleanup_trace.items()}
    env = consmarl.parallel_env("cleanup")
    observations, _ = env.reset(options={"draws": {"order": trace["order"], "spawned": trace["spawned"]}})
    np.testing.assert_allclose(stacked(observations), trace["obs"][0] / 256, atol=1e-6)
    for step in range(50):
        observations, rewards, _, truncated, infos = env.step(
            dict(zip(env.agents, trace["actions"][step], strict=True))
        )
        np.testing.assert_allclose(stacked(observations), trace["obs"][step + 1] / 256, atol=1e-6)
        np.testing.assert_allclose(stacked(rewards), trace["rewards"][step], atol=1e-5)
        assert truncated["agent_0"] == (step == 49)
    eaten = sum(info["apples_eaten"] for info in infos.values())
    assert eaten == trace["rewards"][:, 0].sum()
    assert sum(info["waste_cleaned"] for info in infos.values()) == _waste_that_went(trace["map"], trace["spawned"])


def _waste_that_went(maps, spawned):
    appeared = (spawned[1:] == 3).sum()
    return (maps[0] == 3).sum() + appeared - (maps[-1] == 3).sum()


def test_cleanup_reproduces_the_recorded_map_and_positions(cleanup_trace):
    world = consmarl.make("cleanup")
    advance = jax.jit(world.advance)
    for episode in range(NUM_EPISODES):
        trace = {name: rows[episode] for name, rows in cleanup_trace.items()}
        draws = world.draws_from({"order": trace["order"], "spawned": trace["spawned"]})
        state = world.reset(jax.random.key(0))
        for step in range(50):
            state, _ = advance(state, trace["actions"][step], jax.tree.map(lambda rows, at=step: rows[at], draws))
            np.testing.assert_array_equal(state.agents, trace["pos"][step + 1])
            np.testing.assert_array_equal(state.waste, trace["map"][step + 1] == 3)
            np.testing.assert_array_equal(state.apples, trace["map"][step + 1] == 4)


def test_cleanup_uses_the_recorded_growth_probabilities(cleanup_trace):
    per_cell, per_step = (consmarl.make("cleanup", waste_rule=rule) for rule in WasteRule)
    before_spawning = (cleanup_trace["map"] == 3) & (cleanup_trace["spawned"] != 3)
    waste = before_spawning[:, 1:].reshape(-1, 10, 10)
    apples = jax.vmap(per_cell.apple_growth)(waste)
    np.testing.assert_allclose(apples, cleanup_trace["apple_prob"].reshape(-1), atol=1e-6)
    # the trace records the probability for one river cell, which the paper defines as that for one step
    np.testing.assert_allclose(jax.vmap(per_step.waste_growth)(waste), cleanup_trace["waste_prob"].reshape(-1))
    num_clean = 16 - waste.sum(axis=(1, 2))
    expected = np.where(cleanup_trace["waste_prob"].reshape(-1) > 0, 1 - 0.5**num_clean, 0)
    np.testing.assert_allclose(jax.vmap(per_cell.waste_growth)(waste), expected, atol=1e-6)
