"""Copies of an environment that steps in Python, side by side: each plays one episode, and whoever is done waits.

`Copies` step one after the other in this process; `pool.Pool` has the same methods and distributes them over processes.
Both tell what happened in rows of one type, one row per copy.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from consmarl.environments import infos
from consmarl.environments.foreign import ForeignWorld

Rows = NDArray[Any]  # structured, [env]


def row_type(world: ForeignWorld) -> np.dtype[Any]:
    """Return the type of what one copy tells after a reset or a step."""
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
    """Return the type of what one copy is told to do in a step."""
    return np.dtype((np.int32, world.allowed.shape[:-1]))


class SideBySide(Protocol):
    """Copies, wherever they are."""

    world: ForeignWorld  # what all of them are like
    num_envs: int

    def reset(self, seeds: Sequence[int]) -> Rows:
        """Begin an episode with each seed; copies for which there is none have nothing to play."""

    def step(self, actions: NDArray[Any]) -> Rows:
        """Step every copy whose episode goes on; `actions` [env, agent, …]."""

    def close(self) -> None:
        """Give back what they hold."""


class Copies:
    """Copies in this process."""

    def __init__(self, worlds: Sequence[ForeignWorld]) -> None:
        """Take worlds that are all alike."""
        self.world, self._worlds, self.num_envs = worlds[0], worlds, len(worlds)
        self._counted = self.world.counted
        self.rows: Rows = np.zeros(self.num_envs, row_type(self.world))

    def reset(self, seeds: Sequence[int]) -> Rows:
        """Begin an episode with each seed."""
        self.rows[:] = np.zeros((), self.rows.dtype)
        self.rows["is_over"] = True
        for row, world, seed in zip(self.rows, self._worlds, seeds, strict=False):
            row["codes"] = world.reset(seed)
            row["allowed"] = world.allowed
            row["is_over"] = False
            infos.note(world.told, self._counted, row["by_agent"], row["of_team"])
        return self.rows

    def step(self, actions: NDArray[Any]) -> Rows:
        """Step every copy whose episode goes on."""
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
