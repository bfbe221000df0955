"""Copies of an environment that steps in Python, run side by side: each plays one episode, then waits for the rest.

`Copies` steps them one by one in this process; `pool.Pool` has the same methods and distributes them over processes.
Both return structured arrays with one row per copy.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from consmarl.environments import infos
from consmarl.environments.foreign import ForeignWorld

Rows = NDArray[Any]  # structured, [env]


def row_type(world: ForeignWorld) -> np.dtype[Any]:
    """Return the type of one copy's row: observations, rewards, masks, counters and flags after a reset or a step."""
    team, counted = world.num_agents, world.counted
    fields = [
        ("codes", np.float32, (team, world.observation_size)),
        ("rewards", np.float32, (team,)),
        ("allowed", np.bool_, world.allowed.shape),
        ("by_agent", np.float64, (team, len(counted.by_agent))),
        ("of_team", np.float64, (len(counted.team),)),
        ("is_over", np.bool_, ()),
        ("terminated", np.bool_, ()),
    ]
    return np.dtype(fields, align=True)


def action_type(world: ForeignWorld) -> np.dtype[Any]:
    """Return the type of one copy's actions in a step."""
    return np.dtype((np.int32, world.allowed.shape[:-1]))


class SideBySide(Protocol):
    """Copies of an environment, in this process or in others."""

    world: ForeignWorld  # one of the copies, for their common properties
    num_envs: int

    def reset(self, seeds: Sequence[int]) -> Rows:
        """Start an episode with each seed; copies without a seed stay idle."""

    def step(self, actions: NDArray[Any]) -> Rows:
        """Step every copy whose episode is not over; `actions` are [env, agent, …]."""

    def close(self) -> None:
        """Close the environments and release their resources."""


class Copies:
    """Copies in this process."""

    def __init__(self, worlds: Sequence[ForeignWorld]) -> None:
        """Take copies of one environment."""
        self.world, self._worlds, self.num_envs = worlds[0], worlds, len(worlds)
        self._counted = self.world.counted
        self.rows: Rows = np.zeros(self.num_envs, row_type(self.world))

    def reset(self, seeds: Sequence[int]) -> Rows:
        """Start an episode with each seed."""
        self.rows[:] = np.zeros((), self.rows.dtype)
        self.rows["is_over"] = True
        for row, world, seed in zip(self.rows, self._worlds, seeds, strict=False):
            row["codes"] = world.reset(seed)
            row["allowed"] = world.allowed
            row["is_over"] = False
            infos.note(world.told, self._counted, row["by_agent"], row["of_team"])
        return self.rows

    def step(self, actions: NDArray[Any]) -> Rows:
        """Step every copy whose episode is not over."""
        for row, world, chosen in zip(self.rows, self._worlds, actions, strict=True):
            if row["is_over"]:
                row["rewards"] = 0.0
                continue
            step = world.step(chosen)
            row["codes"], row["rewards"], row["allowed"] = step.codes, step.rewards, step.allowed
            row["is_over"], row["terminated"] = step.is_over, step.terminated
            infos.note(step.told, self._counted, row["by_agent"], row["of_team"])
        return self.rows

    def close(self) -> None:
        """Close the environments."""
        for world in self._worlds:
            world.env.close()
