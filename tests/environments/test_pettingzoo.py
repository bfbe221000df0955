"""Our environments behind PettingZoo's interface: its own API tests, reproducible episodes, and misuse."""

import pickle

import numpy as np
import pytest
from pettingzoo.test import parallel_api_test, parallel_seed_test

import consmarl
from consmarl.environments import pettingzoo as adapter
from consmarl.errors import UsageError


def random_episodes(env, rng, num_episodes, seed=None):
    """Play episodes and return everything that `reset` and `step` returned, in order."""
    seen = []
    for episode in range(num_episodes):
        seen.append(env.reset(seed=seed if episode == 0 else None))
        while env.agents:
            seen.append(env.step({agent: int(rng.integers(env.world.num_actions)) for agent in env.agents}))
    return seen


def flattened(thing):
    if isinstance(thing, dict):
        return [(key, flattened(value)) for key, value in thing.items()]
    if isinstance(thing, list | tuple):
        return [flattened(each) for each in thing]
    return np.asarray(thing).tolist()


@pytest.mark.parametrize("id", consmarl.world_ids())
def test_pettingzoos_own_api_tests_pass(id):
    parallel_api_test(consmarl.parallel_env(id), num_cycles=120)
    parallel_seed_test(lambda: consmarl.parallel_env(id))


@pytest.mark.parametrize("id", consmarl.world_ids())
def test_the_same_seed_gives_the_same_episodes(id):
    once, again, other = (
        flattened(random_episodes(consmarl.parallel_env(id), np.random.default_rng(0), 3, seed=seed))
        for seed in (11, 11, 12)
    )
    assert once == again
    assert once != other or id == "cleanup"  # in Cleanup, random play is hardly ever affected by chance


@pytest.mark.parametrize("id", ["pgm-3ag", "ft"])
def test_successive_episodes_after_one_seed_differ(id):
    env = consmarl.parallel_env(id)
    first, second = (flattened(env.reset(seed=seed)[0]) for seed in (5, None))
    assert first != second


def test_seeding_a_used_environment_gives_the_same_episodes_as_a_new_one():
    used = consmarl.parallel_env("pgm-3ag")
    random_episodes(used, np.random.default_rng(1), 2, seed=1)
    new = consmarl.parallel_env("pgm-3ag")
    runs = [flattened(random_episodes(env, np.random.default_rng(2), 2, seed=9)) for env in (used, new)]
    assert runs[0] == runs[1]


@pytest.mark.parametrize("id", consmarl.world_ids())
def test_observations_and_states_lie_in_their_spaces(id):
    env = consmarl.parallel_env(id)
    for returned in random_episodes(env, np.random.default_rng(3), 1, seed=2):
        for agent, observation in returned[0].items():
            assert observation.dtype == np.float32
            assert observation in env.observation_space(agent)
    assert env.state() in env.state_space
    assert env.state().shape == (env.world.num_agents * env.world.observation_size,)
    assert env.metadata["name"] == id


def test_rewards_sum_to_the_team_reward_and_the_last_step_has_the_counters():
    env = consmarl.parallel_env("pgm-3ag")
    steps = random_episodes(env, np.random.default_rng(4), 1, seed=3)[1:]
    for _, rewards, terminated, truncated, infos in steps:
        assert infos["agent_0"]["team_reward"] == pytest.approx(sum(rewards.values()), abs=1e-5)
        is_last = terminated["agent_0"] or truncated["agent_0"]
        assert ("gold_mined" in infos["agent_0"]) == is_last
    assert infos["agent_2"]["stones_taken"].shape == (2,)
    assert env.counters()["stones_taken"].shape == (3, 2)


def test_mining_all_gold_terminates_and_the_step_limit_truncates():
    env = consmarl.parallel_env("pgm-3ag", mining_steps=1, episode_limit=4)
    layout = {"agents": [[0, 0]] * 3, "golds": [[0, 0]], "stones": [[4, 4], [5, 5]]}
    ends = {}
    for name, action in (("mine", 0), ("walk", 1)):
        env.reset(options={"layout": layout})
        while env.agents:
            _, _, terminated, truncated, _ = env.step(dict.fromkeys(env.agents, action))
        ends[name] = (terminated["agent_0"], truncated["agent_0"])
    assert ends == {"mine": (True, False), "walk": (False, True)}


def test_equal_environments_share_one_compilation():
    adapter._step.clear_cache()
    for _ in range(3):
        random_episodes(consmarl.parallel_env("pgm-3ag"), np.random.default_rng(0), 2, seed=0)
    assert adapter._step._cache_size() == 1


def test_a_pickled_environment_continues_identically():
    env = consmarl.parallel_env("ft")
    env.reset(seed=4)
    twin = pickle.loads(pickle.dumps(env))
    runs = [flattened(random_episodes(each, np.random.default_rng(6), 2)) for each in (env, twin)]
    assert runs[0] == runs[1]


@pytest.mark.parametrize(
    ("actions", "sentence"),
    [
        ({"agent_0": 0, "agent_1": 0}, "actions lacks 'agent_2'"),
        ({"agent_0": 0, "agent_1": 0, "agent_2": 0, "agent_7": 0}, "no part 'agent_7'"),
        (
            {"agent_0": 0, "agent_1": 0, "agent_2": 5},
            "agent_2 cannot do 5: actions are whole numbers from 0 to 4",
        ),
        ({"agent_0": 0, "agent_1": 0, "agent_2": 1.5}, "cannot do 1.5"),
    ],
)
def test_invalid_actions_are_refused_and_change_nothing(actions, sentence):
    env = consmarl.parallel_env("pgm-3ag")
    env.reset(seed=0)
    before = env.state()
    with pytest.raises(UsageError, match=sentence):
        env.step(actions)
    np.testing.assert_array_equal(env.state(), before)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda env: env.step({}), "call reset\\(\\) before step"),
        (lambda env: env.state(), "call reset\\(\\) first"),
        (lambda env: env.reset(seed=-1), "seed must be a whole number"),
        (lambda env: env.reset(options={"layouts": {}}), "no option 'layouts': did you mean 'layout'"),
        (lambda env: env.reset(options={"draws": {}}), "takes no recorded draws"),
    ],
)
def test_calls_before_reset_and_invalid_arguments_are_refused(call, sentence):
    with pytest.raises(UsageError, match=sentence):
        call(consmarl.parallel_env("pgm-3ag"))


def test_stepping_after_the_end_of_an_episode_is_refused():
    env = consmarl.parallel_env("pgm-3ag")
    random_episodes(env, np.random.default_rng(0), 1)
    with pytest.raises(UsageError, match="call reset"):
        env.step({})


def test_recorded_draws_of_the_wrong_shape_are_refused():
    env = consmarl.parallel_env("cleanup")
    with pytest.raises(UsageError, match="'order' of shape \\(50, 4\\)"):
        env.reset(options={"draws": {"order": np.zeros((3, 4)), "spawned": np.zeros((3, 10, 10))}})


def test_an_unknown_render_mode_is_refused():
    with pytest.raises(UsageError, match="no render_mode 'rgb': did you mean 'rgb_array'"):
        consmarl.parallel_env("ft", render_mode="rgb")


def test_rendering_without_a_mode_warns_as_gymnasium_does():
    env = consmarl.parallel_env("ft")
    env.reset(seed=0)
    with pytest.warns(UserWarning, match="render_mode='rgb_array'"):
        assert env.render() is None
