"""Compiled environments of other packages behave exactly as in those packages, and run like ours."""

import importlib.util
import json
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import consmarl
from consmarl.cli import main
from consmarl.environments.compiled import as_its_authors_meant
from consmarl.environments.masks import choices, draw_allowed
from consmarl.errors import UsageError
from consmarl.experiments.configuration.config import TrainConfig
from consmarl.experiments.exchanges import episode_path, read_episode
from consmarl.training.programs import description

JAXMARL = pytest.mark.skipif(importlib.util.find_spec("jaxmarl") is None, reason="jaxmarl is not installed")
JUMANJI = pytest.mark.skipif(importlib.util.find_spec("jumanji") is None, reason="jumanji is not installed")

# id, settings, and what the package documents: agents, actions, episode limit, whether actions are masked
PLAYED = [
    pytest.param("jaxmarl:MPE_simple_spread_v3", {}, (3, 5, 26, False), marks=JAXMARL),  # one more than documented
    pytest.param("jaxmarl:switch_riddle", {"num_agents": 4}, (4, 3, 10, False), marks=JAXMARL),
    pytest.param("jaxmarl:MPE_simple_speaker_listener_v4", {}, (2, 5, 26, True), marks=JAXMARL),  # its agents differ
    pytest.param("jaxmarl:HeuristicEnemySMAX", {"scenario": "3m"}, (3, 8, 100, True), marks=JAXMARL),
    pytest.param("jumanji:LevelBasedForaging-v0", {"grid_size": 6, "time_limit": 30}, (2, 6, 30, True), marks=JUMANJI),
    pytest.param("jumanji:RobotWarehouse-v0", {"num_agents": 2, "time_limit": 30}, (2, 5, 30, True), marks=JUMANJI),
]


def ours(world, key, num_steps):
    """Play at random through our interface; return observations, allowed actions, actions and outcomes."""

    def step(state, key):
        key_choose, key_step = jax.random.split(key)
        allowed = world.allowed_actions(state)
        actions = draw_allowed(key_choose, choices(allowed))
        following, outcome = world.step(key_step, state, actions)
        return following, (world.observe(state), allowed, actions, outcome)

    key_reset, key_steps = jax.random.split(key)
    state = world.reset(key_reset)
    return jax.lax.scan(step, state, jax.random.split(key_steps, num_steps))[1]


def jaxmarl_theirs(world, key, actions):
    env = world.game.env

    def step(carry, now):
        observed, state = carry
        key_step, chosen = now
        _, key_step = jax.random.split(key_step)
        by_agent = {agent: chosen[index] for index, agent in enumerate(env.agents)}
        masks = env.get_avail_actions(state) if world.masks_actions and "SMAX" in world.id else {}
        following, state, rewards, dones, _ = env.step_env(jax.random.key_data(key_step), state, by_agent)
        return (following, state), (observed, masks, rewards, dones["__all__"])

    key_reset, key_steps = jax.random.split(key)
    first = env.reset(jax.random.key_data(key_reset))
    seen, masks, rewards, is_over = jax.lax.scan(step, first, (jax.random.split(key_steps, len(actions)), actions))[1]
    return (
        [seen[agent] for agent in env.agents],
        [masks.get(agent) for agent in env.agents],
        [rewards[agent] for agent in env.agents],
        is_over,
    )


def jumanji_theirs(world, key, actions):
    env = world.game.env

    def step(carry, chosen):
        state, observed = carry
        state, timestep = env.step(state, chosen)
        return (state, timestep.observation), (observed, timestep.reward, timestep.last())

    state, timestep = env.reset(jax.random.key_data(jax.random.split(key)[0]))
    seen, rewards, is_over = jax.lax.scan(step, (state, timestep.observation), actions)[1]
    agents = range(world.num_agents)
    by_agent = rewards if rewards.ndim > 1 else jnp.stack([rewards / world.num_agents] * world.num_agents, axis=1)
    return ([seen.agents_view[:, agent] for agent in agents], [seen.action_mask[:, agent] for agent in agents],
            [by_agent[:, agent] for agent in agents], is_over)  # fmt: skip


@pytest.mark.parametrize(("id", "settings", "facts"), PLAYED)
def test_an_episode_matches_the_packages_own(id, settings, facts):
    """Play the same keys and actions through our interface and through the package's own."""
    world = consmarl.make(id, **settings)
    assert (world.num_agents, world.num_actions, world.episode_limit, world.masks_actions) == facts
    key, num_steps = jax.random.key(3), min(world.episode_limit, 30)
    codes, allowed, actions, outcomes = jax.jit(lambda key: ours(world, key, num_steps))(key)
    theirs = jaxmarl_theirs if id.startswith("jaxmarl") else jumanji_theirs
    with as_its_authors_meant():
        seen, masks, rewards, is_over = jax.jit(lambda key: theirs(world, key, actions))(key)
    over = np.asarray(is_over)
    length = int(over.argmax()) + 1 if over.any() else num_steps
    np.testing.assert_array_equal(np.asarray(outcomes.done)[:length], over[:length])
    for agent in range(world.num_agents):
        flat = np.asarray(seen[agent][:length], np.float32).reshape(length, -1)
        np.testing.assert_allclose(codes[:length, agent, : flat.shape[1]], flat, atol=1e-6)
        assert (np.asarray(codes)[:length, agent, flat.shape[1] :] == 0).all()
        np.testing.assert_allclose(outcomes.rewards[:length, agent], rewards[agent][:length], atol=1e-6)
        (count,) = world.game.actions.of_agents[agent].counts
        expected = np.ones((length, count)) if masks[agent] is None else np.asarray(masks[agent])[:length]
        np.testing.assert_array_equal(np.asarray(allowed)[:length, agent, :count], expected > 0)
        assert not np.asarray(allowed)[:length, agent, count:].any()


@JAXMARL
def test_jaxmarls_continuous_actions_have_several_dimensions():
    world = consmarl.make("jaxmarl:MPE_simple_spread_v3", action_type="Continuous", action_bins=3)
    assert (world.num_branches, world.num_actions, world.masks_actions) == (5, 3, False)
    assert world.choice_names == (("0", "0.5", "1"),) * 5
    assert world.name_of(np.array([0, 1, 2, 0, 0])) == "0, 0.5, 1, 0, 0"
    # listeners push in five dimensions, and speakers talk in three
    unlike = consmarl.make("jaxmarl:MPE_simple_speaker_listener_v4", action_type="Continuous", action_bins=3)
    assert unlike.masks_actions


@JAXMARL
def test_a_continuous_episode_matches_the_packages_own():
    world = consmarl.make("jaxmarl:MPE_simple_spread_v3", action_type="Continuous")
    key = jax.random.key(3)
    codes, _, actions, outcomes = jax.jit(lambda key: ours(world, key, 6))(key)
    assert actions.shape == (6, 3, 5)
    with as_its_authors_meant():  # a Box from 0 to 1: its five bins are 0.25 apart
        seen, _, rewards, _ = jax.jit(lambda key: jaxmarl_theirs(world, key, actions * 0.25))(key)
    for agent in range(3):
        np.testing.assert_allclose(codes[:, agent], seen[agent], atol=1e-6)
        np.testing.assert_allclose(outcomes.rewards[:, agent], rewards[agent], atol=1e-6)


SMALL = ("--hidden-size", "4", "--batch-episodes", "2", "--replay-episodes", "16", "--warmup-steps", "0",
         "--evaluation-episodes", "2", "--final-episodes", "2", "--no-tensorboard")  # fmt: skip


def rows(run):
    found = [json.loads(line) for line in (Path(run) / "metrics.jsonl").read_text().splitlines()]
    return [{name: value for name, value in row.items() if name != "seconds"} for row in found]


@JUMANJI
def test_a_run_can_be_trained_resumed_recorded_viewed_and_watched(tmp_path, capsys):
    run, again = tmp_path / "run", tmp_path / "again"
    words = ["train", "--env", "jumanji:LevelBasedForaging-v0", "--set", "grid_size=5", "num_food=1", "time_limit=8",
             "--method", "cons", "--episodes", "16", "--num-envs", "2", "--report-every", "8",
             "--checkpoint-every", "8", "--share.start-episode", "0", "--record", "5", *SMALL]  # fmt: skip
    assert main([*words, "--out", str(run)]) == 0
    assert f"consmarl watch {run}" in capsys.readouterr().out
    assert main([*words, "--out", str(again)]) == 0
    for file in ("result.json", "policy.safetensors", "checkpoints/checkpoint-000000016"):
        for path in sorted(again.glob(f"{file}*")):
            path.unlink() if path.is_file() else [each.unlink() for each in path.iterdir()] and path.rmdir()
    assert main(["resume", str(again)]) == 0
    assert rows(again) == rows(run)
    assert main(["evaluate", str(run), "--episodes", "2", "--consult", "cons"]) == 0
    recorded = read_episode(episode_path(run, 5))
    assert recorded.steps["allowed"].shape == (recorded.num_steps, 2, 6)
    assert main(["view", str(run), "--staged", "1"]) == 0
    assert main(["watch", str(run), "--out", str(tmp_path / "own.gif")]) == 0
    assert (tmp_path / "own.gif").stat().st_size > 1000


@JAXMARL
def test_float_observations_without_masks_work_too(tmp_path):
    run = tmp_path / "run"
    words = ["train", "--env", "jaxmarl:switch_riddle", "--method", "cons", "--episodes", "8", "--num-envs", "2",
             "--share.start-episode", "0", *SMALL, "--out", str(run)]  # fmt: skip
    assert main(words) == 0
    assert rows(run)[-1]["episode"] == 8
    assert consmarl.watch(policy=run, out=tmp_path / "ring.gif").stat().st_size > 1000
    assert consmarl.watch("jaxmarl:switch_riddle", out=tmp_path / "random.gif").stat().st_size > 1000


@pytest.mark.parametrize(
    ("id", "settings", "said"),
    [
        pytest.param("jaxmarl:SMACS", {}, r"jaxmarl has no environment 'SMACS': .*SMAX", marks=JAXMARL),
        pytest.param("jaxmarl:switch_riddle", {"action_bins": 3}, "no continuous actions to divide", marks=JAXMARL),
        pytest.param("jumanji:LevelBasedForaging-v0", {"action_bins": 3}, "no continuous actions", marks=JUMANJI),
        pytest.param("jaxmarl:SMAX", {"scenario": "4m"}, "cannot be made", marks=JAXMARL),
        pytest.param("jaxmarl:switch_riddle", {"num_agents": 2}, "minimum number of agents .* is 3", marks=JAXMARL),
        pytest.param("jaxmarl:switch_riddle", {"speed": 2}, "unexpected keyword argument 'speed'", marks=JAXMARL),
        pytest.param("jaxmarl:switch_riddle", {"episode_limit": 0}, "episode_limit must be", marks=JAXMARL),
        pytest.param("jaxmarl:switch_riddle", {"num_agents": "/etc/passwd"}, "takes numbers and words", marks=JAXMARL),
        pytest.param("jaxmarl:coin_game", {}, r"how long its episodes last: .* episode_limit=100", marks=JAXMARL),
        pytest.param("jumanji:LevelBasedForaging-v9", {}, "'LevelBasedForaging-v0'", marks=JUMANJI),
        pytest.param("jumanji:Snake-v1", {}, r"Snake-v1 .* is for one agent, .* RobotWarehouse-v0", marks=JUMANJI),
        pytest.param("jumanji:LevelBasedForaging-v0", {"num_food": 0}, "cannot be made", marks=JUMANJI),
    ],
)  # fmt: skip
def test_unusable_environments_and_settings_are_refused_in_one_sentence(id, settings, said):
    with pytest.raises(UsageError, match=said) as error:
        consmarl.make(id, **settings)
    text = str(error.value)
    assert text.endswith((".", "?"))  # "?" after a suggested name
    assert "\n" not in text


@JAXMARL
def test_a_programs_description_contains_the_packages_version():
    world = consmarl.make("jaxmarl:switch_riddle")
    assert re.search(r"version='\d+\.\d+", description(world))
    assert world == consmarl.make("jaxmarl:switch_riddle")
    assert hash(world) == hash(consmarl.make("jaxmarl:switch_riddle"))


def test_the_error_for_a_missing_package_says_how_to_install_it(monkeypatch):
    for package, id in (("jaxmarl", "jaxmarl:switch_riddle"), ("jumanji", "jumanji:LevelBasedForaging-v0")):
        with monkeypatch.context() as patched:
            patched.setitem(__import__("sys").modules, package, None)
            patched.setitem(__import__("sys").modules, f"{package}.registration", None)
            with pytest.raises(UsageError, match=rf"pip install 'consmarl\[{package}\]'"):
                consmarl.make(id)


@JAXMARL
def test_a_configuration_file_may_name_only_registered_environments():
    named = TrainConfig.from_json(json.dumps({"env": "jaxmarl:switch_riddle", "episodes": 8}))
    assert named.trainer().world.num_agents == 3
    for env in ("jaxmarl:os", "jaxmarl:jaxmarl.registration:make", "jumanji:os:system", "jaxmarl:../switch_riddle"):
        with pytest.raises(UsageError, match=r"has no environment|needs Jumanji"):
            TrainConfig.from_json(json.dumps({"env": env, "episodes": 8})).trainer()
