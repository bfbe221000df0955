"""Third-party Python environments: PettingZoo's masks, agents with different spaces, and agents that come and go."""

import jax
import numpy as np
import pytest
from gymnasium import spaces
from pettingzoo import ParallelEnv

from consmarl.environments.foreign import ForeignWorld
from consmarl.environments.pettingzoo import WorldParallelEnv
from consmarl.errors import UsageError
from consmarl.learners.interface import TeamSpec
from consmarl.learners.iql import IQL
from consmarl.training.python_loop import PythonTrainer
from tests.training.handmade import Handmade
from tests.training.masked import ALLOWED, LIMIT, Turnstile


class Unlike(ParallelEnv):
    """`big` sees three numbers and has four actions; `small` sees one, has two, and is absent in steps 2 and 3."""

    metadata = {"name": "unlike"}  # noqa: RUF012
    max_cycles = 6

    def __init__(self, how="infos"):
        self.possible_agents, self.agents, self.how = ["big", "small"], [], how
        self.received, self.forbidden = [], []

    def _box(self, agent):
        return spaces.Box(-1, 9, (3 if agent == "big" else 1,), np.float32)

    def observation_space(self, agent):
        count = int(self.action_space(agent).n)
        told = {"observation": self._box(agent), "action_mask": spaces.MultiBinary(count)}
        return spaces.Dict(told) if self.how == "observation" else self._box(agent)

    def action_space(self, agent):
        return spaces.Discrete(4 if agent == "big" else 2, start=10)

    def _mask(self, agent):
        """`big` may not take the action numbered step mod 4; `small` has only one choice in even steps."""
        if agent == "big":
            return np.array([number != self.time % 4 for number in range(4)], np.int8)
        return np.array([1, self.time % 2], np.int8)

    def _seen(self):
        seen = {agent: np.full(self._box(agent).shape, self.time, np.float32) for agent in self.agents}
        masks = {agent: self._mask(agent) for agent in self.agents}
        if self.how == "observation":
            seen = {agent: {"observation": seen[agent], "action_mask": masks[agent]} for agent in seen}
        return seen, {agent: {"action_mask": masks[agent]} if self.how == "infos" else {} for agent in self.agents}

    def reset(self, seed=None, options=None):
        del seed, options
        self.time, self.agents = 0, list(self.possible_agents)
        return self._seen()

    def step(self, actions):
        self.received.append(actions)
        self.forbidden += [agent for agent, each in actions.items() if not self._mask(agent)[each - 10]]
        playing = self.agents
        self.time += 1
        is_late = self.time == self.max_cycles
        self.agents = ["big"] if self.time in (2, 3) else list(self.possible_agents)
        seen, infos = self._seen()
        self.agents = [] if is_late else self.agents
        return seen, dict.fromkeys(playing, 1.0), dict.fromkeys(playing, False), dict.fromkeys(playing, is_late), infos


@pytest.mark.parametrize("how", ["infos", "observation"])
def test_masks_are_read_in_pettingzoos_formats(how):
    world = ForeignWorld(Unlike(how))
    assert (world.num_actions, world.observation_size) == (4, 3)
    assert world.reset(0).tolist() == [[0, 0, 0], [0, 0, 0]]
    assert world.allowed.tolist() == [[False, True, True, True], [True, False, False, False]]
    step = world.step(np.array([1, 0], np.int32))
    assert step.codes.tolist() == [[1, 1, 1], [1, 0, 0]]
    assert step.allowed.tolist() == [[True, False, True, True], [True, True, False, False]]
    away = world.step(np.array([0, 1], np.int32))
    assert away.allowed[1].tolist() == [False] * 4
    assert away.codes[1].tolist() == [1, 0, 0]  # its last observation
    world.step(np.array([0, 3], np.int32))
    assert world.env.received[-1] == {"big": 10}  # an absent agent gets no action
    back = world.step(np.array([0, 0], np.int32))
    assert back.allowed[1].tolist() == [True, False, False, False]
    assert (back.rewards[0], back.rewards[1]) == (1.0, 0.0)


def test_masks_are_kept_at_the_time_limit():
    """If an episode ends by its time limit, a value may follow, so the last masks are kept."""
    world = ForeignWorld(Unlike())
    world.reset(0)
    for _ in range(6):
        step = world.step(np.array([3, 0], np.int32))
    assert (step.is_over, step.terminated) == (True, False)
    assert step.allowed.any(axis=1).tolist() == [True, True]


def test_an_agent_that_has_left_has_no_allowed_actions():
    world = ForeignWorld(Handmade(), episode_limit=5)
    world.reset(0)
    assert world.allowed.all()
    world.step(np.zeros(2, np.int32))
    assert world.step(np.zeros(2, np.int32)).allowed.any(axis=1).tolist() == [False, True]


def test_forbidden_actions_are_not_taken_while_learning():
    env = Unlike()
    world = ForeignWorld(env)
    trainer = PythonTrainer(world=world, learner=IQL(TeamSpec.of(world), hidden_size=4), batch_episodes=2,
                            replay_episodes=6, warmup_steps=0)  # fmt: skip
    state, report = trainer.run(trainer.init(0), 6)
    trainer.evaluate(trainer.learner.parameters(state.learner), jax.random.key(0), 2)
    assert len(env.received) == 6 * 8
    assert env.forbidden == []
    assert np.isfinite(report.learning["loss"]).all()
    stored = jax.device_get(state.replay.episodes)
    assert stored.allowed.shape == (2, 6, 7, 4)
    assert not stored.allowed[1, :, 2:4].any()
    assert (stored.actions[1, :, 2:4] == 0).all()


def test_masks_of_the_wrong_length_are_refused():
    env = Unlike()
    env._mask = lambda agent: np.ones(3, np.int8)  # noqa: ARG005
    with pytest.raises(UsageError, match=r"action_mask of big in custom is of int8\(3,\): it must be 4 zeros and ones"):
        ForeignWorld(env).reset(0)


def test_our_environments_provide_masks_in_pettingzoos_format():
    """Round trip: the adapter reads from the infos exactly the masks of our environment."""
    world = ForeignWorld(WorldParallelEnv(Turnstile()), episode_limit=LIMIT)
    world.reset(0)
    for step in range(LIMIT - 1):
        np.testing.assert_array_equal(world.allowed, ALLOWED[step])
        world.step(np.asarray(ALLOWED[step].argmax(axis=1), np.int32))
