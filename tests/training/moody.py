"""A seeded environment of varying length that can fail; in its own file, so that other processes can import it."""

import os
import signal
import time

import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv


class Moody(ParallelEnv):
    """Two agents see noise and the time; an episode lasts 3 to 6 steps, depending on its seed.

    Depending on `mood`, it fails, dies or sleeps in the third step; with seed 0, it never does.
    """

    metadata = {"name": "moody", "render_modes": ["rgb_array"]}  # noqa: RUF012
    max_cycles = 6

    def __init__(self, mood="calm", render_mode=None, side=40):
        self.mood, self.render_mode, self.side = mood, render_mode, side
        self.possible_agents, self.agents = ["red", "blue"], []

    def observation_space(self, agent):
        del agent
        return spaces.Box(-1, 9, (3,), np.float32)

    def action_space(self, agent):
        del agent
        return spaces.Discrete(3)

    def reset(self, seed=None, options=None):
        del options
        self.rng, self.seed, self.time = np.random.default_rng(seed), seed, 0
        self.length = 3 + int(self.rng.integers(4))
        self.agents, self.hits = list(self.possible_agents), dict.fromkeys(self.possible_agents, 0)
        return self._seen(), self._infos()

    def step(self, actions):
        self.time += 1
        if self.mood != "calm" and self.time == 3 and self.seed:
            self._be_moody()
        wanted = int(self.rng.integers(3))
        playing, rewards = self.agents, {}
        for agent in playing:
            rewards[agent] = float(actions[agent] == wanted) + float(self.rng.normal())
            self.hits[agent] += int(actions[agent] == wanted)
        seen, infos = self._seen(), self._infos()
        is_over = self.time == self.length
        self.agents = [] if is_over else playing
        ends = dict.fromkeys(playing, is_over)
        return seen, rewards, ends, dict.fromkeys(playing, False), infos

    def _be_moody(self):
        if self.mood == "fails":
            raise ValueError("I do not\nfeel like it.")
        if self.mood == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(60)

    def _seen(self):
        return {agent: np.append(self.rng.normal(size=2), self.time).astype(np.float32) for agent in self.agents}

    def _infos(self):
        told = {agent: {"hits": self.hits[agent], "name": agent} for agent in self.agents}
        return told | {"__common__": {"seed": self.seed, "<b>odd name</b>": np.float32(0.5), "loss": np.array(2)}}

    def render(self):
        picture = np.zeros((self.side, self.side, 3), np.uint8)
        picture[:, : self.side * self.time // self.max_cycles] = (200, 30, 30)
        return picture
