"""A Python environment in which every step is known in advance."""

import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv


class Handmade(ParallelEnv):
    """Two agents that see the time and their number; `first` leaves after two steps, and `second` after the third."""

    metadata = {"name": "handmade"}  # noqa: RUF012

    def __init__(self, ends_by="termination"):
        self.possible_agents = ["first", "second"]
        self.agents = []
        self.ends_by = ends_by
        self.seeds, self.received = [], []

    def observation_space(self, agent):
        del agent
        return spaces.Box(-1, 9, (1, 2), np.float64)

    def action_space(self, agent):
        return spaces.Discrete(3, start=self.possible_agents.index(agent))

    def reset(self, seed=None, options=None):
        del options
        self.seeds.append(seed)
        self.agents, self.time = list(self.possible_agents), 0
        return self._observed(), {}

    def step(self, actions):
        self.received.append(actions)
        self.time += 1
        playing, leaving = self.agents, {2: "first", 3: "second"}.get(self.time)
        observed = self._observed()
        self.agents = [agent for agent in playing if agent != leaving]
        terminated = {
            agent: agent == leaving and (agent == "first" or self.ends_by == "termination") for agent in playing
        }
        truncated = {agent: agent == leaving and not terminated[agent] for agent in playing}
        return observed, dict.fromkeys(playing, 0.5 * self.time), terminated, truncated, {}

    def _observed(self):
        return {agent: np.array([[self.time, self.possible_agents.index(agent)]]) for agent in self.agents}
