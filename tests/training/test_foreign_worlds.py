"""Third-party environments: observations, actions and ends of episodes, and refusal of those that are unsuitable."""

import dataclasses
import os
import sys
import types

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from consmarl.environments.foreign import ForeignWorld, foreign_world
from consmarl.environments.tuples import ForagingParallelEnv
from consmarl.errors import UsageError
from consmarl.experiments.configuration.config import TrainConfig
from tests.training.handmade import Handmade


def test_in_foraging_the_start_depends_only_on_the_seed():
    pytest.importorskip("lbforaging")
    env = ForagingParallelEnv("Foraging-5x5-2p-1f-v3")
    starts = [np.stack(list(env.reset(seed=seed)[0].values())) for seed in (3, 4, 3)]
    np.testing.assert_array_equal(starts[0], starts[2])
    assert (starts[0] != starts[1]).any()


@pytest.mark.parametrize("is_eaten", [False, True], ids=["late", "eaten"])
def test_foraging_terminates_only_when_everything_is_eaten(is_eaten):
    pytest.importorskip("lbforaging")
    world = foreign_world("lbforaging:Foraging-5x5-2p-1f-v3")
    assert world.episode_limit == 50  # as the package registers it
    world.reset(0)
    for _ in range(49):
        assert not world.step(np.zeros(2, np.int32)).is_over
    if is_eaten:
        world.env.game.unwrapped.field[:] = 0
    step = world.step(np.zeros(2, np.int32))
    assert (step.is_over, step.terminated) == (True, is_eaten)


def test_our_own_environments_can_be_used_through_pettingzoo():
    world = foreign_world("pettingzoo:consmarl:parallel_env", id="pgm-3ag", episode_limit=25)
    assert (world.num_agents, world.num_actions, world.observation_size) == (3, 5, 48)
    assert world.observation_scale.tolist() == [1.0] * 48


class Choosing(Handmade):
    """The same environment, with the given spaces."""

    max_cycles = 7

    def __init__(self, observed=None, acted=None):
        super().__init__()
        self.observed = observed or [spaces.Discrete(3)] * 2
        self.acted = acted or [spaces.Discrete(2)] * 2

    def observation_space(self, agent):
        return self.observed[self.possible_agents.index(agent)]

    def action_space(self, agent):
        return self.acted[self.possible_agents.index(agent)]


def test_discrete_observations_are_one_hot_encoded():
    world = ForeignWorld(Choosing([spaces.MultiDiscrete([3, 2])] * 2))
    assert (world.observation_size, world.num_actions, world.episode_limit) == (5, 2, 7)
    world.env._observed = lambda: {"first": np.array([2, 0]), "second": np.array([0, 1])}
    assert world.reset(0).tolist() == [[0, 0, 1, 1, 0], [1, 0, 0, 0, 1]]


def test_dict_and_tuple_observations_are_flattened():
    inner = spaces.Tuple((spaces.Discrete(3), spaces.Box(-1, 1, (2,), np.float32)))
    both = spaces.Dict({"place": inner, "switch": spaces.MultiBinary(1)})
    world = ForeignWorld(Choosing([both, spaces.Discrete(3)]))
    assert world.observation_size == 6
    seen = {"place": (1, np.array([0.5, -0.5], np.float32)), "switch": np.array([1])}
    world.env._observed = lambda: {"first": seen, "second": 2}
    assert world.reset(0).tolist() == [[0, 1, 0, 0.5, -0.5, 1], [0, 0, 1, 0, 0, 0]]


def test_a_mask_may_be_part_of_a_dict_observation():
    told = {"place": spaces.Discrete(2), "switch": spaces.Discrete(2), "action_mask": spaces.MultiBinary(2)}
    world = ForeignWorld(Choosing([spaces.Dict(told)] * 2))
    assert world.observation_size == 4
    seen = {"place": 0, "switch": 1, "action_mask": np.array([0, 1], np.int8)}
    world.env._observed = lambda: {"first": seen, "second": seen}
    assert world.reset(0).tolist() == [[1, 0, 0, 1]] * 2
    assert world.allowed.tolist() == [[False, True]] * 2


def nothing():
    raise AssertionError("a function that a module has merely imported must not be called")


class Nobody(Handmade):
    def __init__(self):
        super().__init__()
        self.possible_agents = []


@pytest.fixture
def handmade(monkeypatch, tmp_path):
    """Modules to import: one with hand-made environments, and two whose import fails."""
    module = types.ModuleType("handmade")
    module.endless, module.nobody, module.constant, module.dict, module.system = Handmade, Nobody, 5, dict, os.system
    module.elsewhere = nothing
    module.nothing = lambda: {}
    module.boxes = lambda: Choosing(acted=[spaces.Box(0, np.inf, (2,))] * 2)
    module.dicts = lambda: Choosing([spaces.Dict({"items": spaces.Sequence(spaces.Discrete(2))})] * 2)
    module.framed = lambda: Choosing([spaces.Dict({"camera": spaces.Box(0, 255, (8, 8, 3), np.uint8)})] * 2)
    module.pictures = lambda: Choosing([spaces.Box(0, 255, (8, 8, 3), np.uint8)] * 2)
    module.many_moves = lambda: Choosing(acted=[spaces.Discrete(257)] * 2)
    for name in ("nothing", "boxes", "dicts", "framed", "pictures", "many_moves"):
        getattr(module, name).__module__ = "handmade"  # as if its file had defined them
    monkeypatch.setitem(sys.modules, "handmade", module)
    (tmp_path / "needy.py").write_text("import absent_thing\n")
    (tmp_path / "outdated.py").write_text("from json import absent_thing\n")
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.parametrize(
    ("id", "said"),
    [
        ("pettingzoo:absent", r"no module 'absent': pip install absent, or set PYTHONPATH"),
        ("pettingzoo:numpy.absent", r"numpy is there, but has no module 'absent'"),
        ("pettingzoo:.absent", r"cannot import '.absent'"),
        ("pettingzoo:needy", r"needy needs the module 'absent_thing': pip install absent_thing"),
        ("pettingzoo:outdated", r"cannot import 'outdated': cannot import name 'absent_thing'"),
        ("pettingzoo:", r"cannot import ''"),
        ("pettingzoo:handmade", r"handmade has no function 'parallel_env': .* pettingzoo:handmade:FUNCTION"),
        ("pettingzoo:handmade:constant", r"has no function 'constant'"),
        ("pettingzoo:handmade:nothing", r"makes an object of dict, where one of PettingZoo's ParallelEnv is needed"),
        ("pettingzoo:handmade:dict", r"dict in handmade is neither a ParallelEnv nor a function that handmade itself"),
        ("pettingzoo:handmade:system", r"system in handmade is neither"),
        ("pettingzoo:handmade:elsewhere", r"elsewhere in handmade is neither .* where it is defined"),
        ("pettingzoo:os:system", r"os is part of Python itself"),
        ("pettingzoo:os.path:join", r"os.path is part of Python itself"),
        ("pettingzoo:subprocess:call", r"subprocess is part of Python itself"),
        ("pettingzoo:builtins:exec", r"builtins is part of Python itself"),
        ("pettingzoo:handmade:nobody", r"does not say who may play"),
        ("pettingzoo:handmade:endless", r"does not say how long its episodes last: .* --set episode_limit=50"),
        ("pettingzoo:handmade:boxes", r"is acted on by a Box without finite ends"),
        ("pettingzoo:handmade:dicts", r"is observed as Sequence.*: only Box, .* and Dict and Tuple of them"),
        ("pettingzoo:handmade:framed", r"is observed as pictures of shape \(8, 8, 3\)"),
        ("pettingzoo:handmade:pictures", r"is observed as pictures of shape \(8, 8, 3\)"),
        ("pettingzoo:handmade:many_moves", r"has 257 actions: at most 256"),
    ],
)
@pytest.mark.usefixtures("handmade")
def test_unsuitable_environments_are_refused_in_one_sentence(id, said):
    with pytest.raises(UsageError, match=said) as error:
        TrainConfig(env=id).trainer()
    assert_is_a_sentence(error)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (("speed=3",), r"cannot be made with \{'speed': 3\}: .*unexpected keyword argument 'speed'"),
        (("episode_limit=0",), r"episode_limit must be a whole number of at least 1, not 0"),
    ],
)
@pytest.mark.usefixtures("handmade")
def test_invalid_settings_are_refused_in_one_sentence(settings, said):
    with pytest.raises(UsageError, match=said) as error:
        TrainConfig(env="pettingzoo:handmade:endless", set=settings).trainer()
    assert_is_a_sentence(error)


def test_missing_or_unknown_foraging_environments_are_reported(monkeypatch):
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "lbforaging", None)
        with pytest.raises(UsageError, match=r"no module 'lbforaging': pip install lbforaging") as error:
            foreign_world("lbforaging:Foraging-8x8-2p-2f-v3")
        assert_is_a_sentence(error)
    pytest.importorskip("lbforaging")
    for id in ("Foraging-8x8", "CartPole-v1"):
        with pytest.raises(UsageError, match=f"lbforaging has no environment '{id}'") as error:
            foreign_world(f"lbforaging:{id}")
        assert_is_a_sentence(error)


def test_python_environments_run_one_at_a_time_by_default():
    id = "pettingzoo:anything"
    assert TrainConfig(env=id).round_episodes == 1
    assert TrainConfig(env=id, num_envs=4).round_episodes == 4
    assert TrainConfig(preset="paper").round_episodes == 4
    with pytest.raises(UsageError, match=r"steps in Python, on one device: devices must be 1, not 2") as error:
        TrainConfig(env=id, devices=2)
    assert_is_a_sentence(error)
    config = dataclasses.replace(TrainConfig(env=id, num_envs=4), seed=3)
    assert TrainConfig.from_json(config.to_json()) == config


def test_the_warehouse_never_terminates():
    pytest.importorskip("rware")
    world = foreign_world("rware:rware-tiny-2ag-v2", max_steps=3)
    assert (world.num_agents, world.num_actions, world.observation_size, world.episode_limit) == (2, 5, 71, 3)
    starts = [world.reset(seed).copy() for seed in (3, 4, 3)]
    np.testing.assert_array_equal(starts[0], starts[2])
    assert (starts[0] != starts[1]).any()
    steps = [world.step(np.zeros(2, np.int32)) for _ in range(3)]
    assert [(step.is_over, step.terminated) for step in steps] == [(False, False)] * 2 + [(True, False)]


class Pair(gymnasium.Env):
    """A Gymnasium environment with tuples of spaces, and one reward for the team."""

    action_space = spaces.Tuple((spaces.Discrete(2), spaces.Discrete(3)))
    observation_space = spaces.Tuple((spaces.Discrete(2), spaces.Box(0, 1, (3,))))

    def reset(self, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self.time = 0
        return (1, np.zeros(3)), {"sum": 0}

    def step(self, actions):
        self.time += 1
        return (0, np.ones(3)), 1.0, self.time == 2, False, {"sum": sum(actions)}


def test_gymnasium_environments_with_tuple_spaces_can_be_used():
    gymnasium.register("consmarl-test-pair-v0", entry_point=Pair, max_episode_steps=5)
    try:
        world = foreign_world("gymnasium:tests.training.handmade:consmarl-test-pair-v0")
        assert (world.num_agents, world.num_actions, world.observation_size, world.episode_limit) == (2, 3, 3, 5)
        assert world.reset(0).tolist() == [[0, 1, 0], [0, 0, 0]]
        assert world.step(np.array([1, 2], np.int32)).rewards.tolist() == [0.5, 0.5]
        last = world.step(np.array([1, 1], np.int32))
        assert (last.is_over, last.terminated, last.told.team) == (True, True, {"sum": 2.0})
        assert [each.name for each in world.metrics] == ["info_sum"]
    finally:
        del gymnasium.registry["consmarl-test-pair-v0"]


@pytest.mark.parametrize(
    ("id", "said"),
    [
        ("gymnasium:gymnasium:CartPole-v1", r"CartPole-v1 has the space Discrete\(2\), and no Tuple"),
        ("gymnasium:gymnasium:Nothing-v1", r"gymnasium has no environment 'Nothing-v1': name one that it registers"),
        ("gymnasium:os:CartPole-v1", r"os is part of Python itself"),
        ("gymnasium:", r"cannot import ''"),
        ("rware:CartPole-v1", r"rware has no environment 'CartPole-v1': one it has is 'rware-tiny-2ag-v2'"),
    ],
)
def test_unsuitable_gymnasium_environments_are_refused_in_one_sentence(id, said):
    pytest.importorskip("rware")
    with pytest.raises(UsageError, match=said) as error:
        foreign_world(id)
    assert_is_a_sentence(error)


def assert_is_a_sentence(error):
    text = str(error.value)
    assert text.endswith(".")
    assert not text.endswith("..")
    assert "\n" not in text
