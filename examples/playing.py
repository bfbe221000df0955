"""Code shared by the scripted players: a memory of the grid, and functions that play episodes and measure a team.

A player is any object with `act(observation)`; a new one is made for every agent in every episode. It gets only its
agent's own observations, so a team has to agree on everything before the episode starts.
"""

import argparse
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from searching import Cell, as_bits, best_path

import consmarl

STAY, DOWN, LEFT, UP, RIGHT = range(5)  # actions in Patient Gold Miner and in Find the Treasure


class Player(Protocol):
    """One agent in one episode."""

    def act(self, observation: NDArray[np.float32]) -> int:
        """Return the next action."""


class Ground:
    """One agent's memory of a grid: each cell as last seen, its own position, and the number of steps so far."""

    def __init__(self, world: Any) -> None:
        """Start an episode in an environment, with nothing seen yet."""
        self.world = world
        self.cells = np.full((*world.grid, 3), np.nan)  # the three channels of a cell; NaN until seen
        self.rows, self.columns = np.indices(world.grid)

    def look(self, observation: NDArray[np.float32]) -> None:
        """Store the three parts of an observation: position, time and all cells in view."""
        height, width = self.world.grid
        largest = np.array([height - 1, width - 1, self.world.episode_limit])
        row, column, self.num_steps = np.rint(observation[:3] * largest).astype(int).tolist()
        self.here = row, column
        window = observation[3:].reshape(*self.world.view, 3)
        top, left = row - self.world.view[0] // 2, column - self.world.view[1] // 2
        shown = window[max(-top, 0) : height - top, max(-left, 0) : width - left]
        self.cells[max(top, 0) :, max(left, 0) :][: shown.shape[0], : shown.shape[1]] = shown

    @property
    def steps_left(self) -> int:
        """The number of steps left in the episode."""
        return int(self.world.episode_limit) - self.num_steps

    @property
    def distances(self) -> NDArray[np.int_]:
        """The distance to every cell, in steps."""
        return abs(self.rows - self.here[0]) + abs(self.columns - self.here[1])

    def nearest(self, wanted: NDArray[np.bool_]) -> Cell | None:
        """Return the nearest of the cells marked in `wanted`; None if there is none."""
        if not wanted.any():
            return None
        row, column = np.unravel_index(np.where(wanted, self.distances, np.inf).argmin(), self.world.grid)
        return int(row), int(column)

    def plan_search(self, num_steps: int) -> list[Cell]:
        """Return a path that reveals unseen cells which can still be reached within `num_steps`; see `best_path`."""
        seen = [(row, column) for row, column in np.argwhere(~np.isnan(self.cells[..., 0])).tolist()]
        return list(best_path(self.here, as_bits(seen, self.world.grid), num_steps, self.world.grid, self.world.view))

    def towards(self, goal: Cell) -> int:
        """Return the action that moves towards the goal, along the axis with the larger distance first."""
        down, right = goal[0] - self.here[0], goal[1] - self.here[1]
        if abs(down) > abs(right):
            return DOWN if down > 0 else UP
        return RIGHT if right > 0 else LEFT if right < 0 else STAY


def play(env: Any, players: Sequence[Player], seed: int | None = None) -> float:
    """Play an episode and return the team's return; without a seed, it is the next episode after the last seed."""
    observations, _ = env.reset(seed=seed)
    team = dict(zip(env.agents, players, strict=True))
    team_return = 0.0
    while env.agents:
        actions = {agent: team[agent].act(observations[agent]) for agent in env.agents}
        observations, rewards, *_ = env.step(actions)
        team_return += sum(rewards.values())
    return team_return


def measure(
    env_id: str, new_player: Callable[[Any, int], Player], num_episodes: int, seed: int
) -> tuple[NDArray[np.float64], dict[str, float]]:
    """Return the team's return in every episode, and the means of the environment's counters per episode.

    `new_player` is called with the environment and the agent's number.
    """
    env = consmarl.parallel_env(env_id)
    returns: list[float] = []
    achieved: dict[str, float] = defaultdict(float)
    for episode in range(num_episodes):
        players = [new_player(env.world, index) for index in range(env.world.num_agents)]
        returns.append(play(env, players, seed if episode == 0 else None))
        for name, counts in env.counters().items():
            achieved[name] += float(np.sum(counts)) / num_episodes
    return np.array(returns), dict(achieved)


def main(new_player: Callable[[Any, int], Player], *env_ids: str) -> None:
    """Read the command line, play, and print the mean team return with its standard error."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--env", choices=env_ids, default=env_ids[0])
    parser.add_argument("--episodes", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.episodes < 2:
        parser.error("--episodes must be at least 2, or there is no standard error.")
    returns, achieved = measure(options.env, new_player, options.episodes, options.seed)
    error = returns.std(ddof=1) / np.sqrt(len(returns))
    print(f"{options.env}: team return {returns.mean():.2f} ± {error:.2f} (s.e., {len(returns)} episodes)")
    print("an episode's mean: " + ", ".join(f"{name} {count:.2f}" for name, count in achieved.items()))
