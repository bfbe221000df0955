"""Gymnasium environments for teams, as PettingZoo `ParallelEnv`s.

Their observations and actions are tuples with one entry per agent, as in level-based foraging (package `lbforaging`)
and the multi-robot warehouse (`rware`).
"""

import inspect
from typing import Any, ClassVar, cast

import gymnasium
import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv

from consmarl.environments.importing import imported, refuse_standard_library
from consmarl.environments.infos import TEAM
from consmarl.errors import UsageError

LIMITS = ("max_episode_steps", "max_steps")  # names that packages use for the length of an episode


class TupleParallelEnv(ParallelEnv):  # type: ignore[misc]
    """A registered Gymnasium environment with tuple spaces, named MODULE:ID; importing the module registers it."""

    metadata: ClassVar[dict[str, Any]] = {"name": "gymnasium"}

    def __init__(self, name: str, /, **settings: Any) -> None:
        """Create the environment."""
        module, _, id = name.partition(":")
        refuse_standard_library(module)
        self._create(module, id, settings)

    def _create(self, module: str, id: str, settings: dict[str, Any], example: str = "") -> None:
        imported(module)
        if not id.startswith(example.partition("-")[0]) or id not in gymnasium.registry:
            instead = f"one it has is {example!r}" if example else "name one that it registers, gymnasium:MODULE:ID"
            raise UsageError(f"{module} has no environment {id!r}: {instead}.")
        self.render_mode = settings.get("render_mode")
        if (
            example and self.render_mode == "rgb_array"
        ):  # lbforaging and rware take the mode in `render`, and warn if they get it here
            settings = {name: value for name, value in settings.items() if name != "render_mode"}
        self.game = cast(Any, gymnasium.make(id, disable_env_checker=True, **settings))
        for space in (self.game.action_space, self.game.observation_space):
            if not isinstance(space, spaces.Tuple):
                raise UsageError(f"{id} has the space {space}, and no Tuple with an entry for each agent.")
        self.possible_agents = [f"player_{index}" for index in range(len(self.game.action_space))]
        self.agents: list[str] = []
        self.max_cycles = self._limit()

    def _limit(self) -> int | None:
        spec = self.game.spec
        told = [spec.max_episode_steps, *(spec.kwargs.get(name) for name in LIMITS)]
        return next((limit for limit in told if limit), None)

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """Return the space of an agent's observations."""
        return self.game.observation_space[self.possible_agents.index(agent)]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """Return the space of an agent's actions."""
        return self.game.action_space[self.possible_agents.index(agent)]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        """Start an episode, which depends only on `seed`."""
        self._forget()
        observations, info = self.game.reset(seed=seed, options=options)
        self.agents = list(self.possible_agents)
        return self._by_agent(observations), self._infos(info)

    def step(self, actions: dict[str, Any]) -> tuple[Any, Any, Any, Any, Any]:
        """Perform one step, in which all agents act at once."""
        everyone = self.agents
        observations, rewards, is_over, is_late, info = self.game.step([actions[agent] for agent in everyone])
        is_solved = self._is_solved(bool(is_over))
        if is_over or is_late:
            self.agents = []
        if np.ndim(rewards) == 0:  # one reward for the whole team
            rewards = np.full(len(everyone), rewards / len(everyone))
        return (
            self._by_agent(observations),
            self._by_agent(rewards),
            dict.fromkeys(everyone, is_solved),
            dict.fromkeys(everyone, (is_over or is_late) and not is_solved),
            self._infos(info),
        )

    def render(self) -> Any:
        """Return a picture; older packages take the render mode as an argument."""
        draw = self.game.unwrapped.render
        return draw(mode=self.render_mode) if "mode" in inspect.signature(draw).parameters else self.game.render()

    def close(self) -> None:
        """Close the wrapped environment."""
        self.game.close()

    def _forget(self) -> None:
        """Remove state of the last episode that the environment's own reset would leave behind."""

    def _is_solved(self, is_over: bool) -> bool:
        """Return whether the task itself is over, rather than only its time limit reached."""
        return is_over

    def _by_agent(self, values: Any) -> dict[str, Any]:
        return dict(zip(self.possible_agents, values, strict=True))

    def _infos(self, info: Any) -> dict[str, Any]:
        """Return the environment's single info dict as the team's entry."""
        return {agent: {} for agent in self.possible_agents} | {TEAM: info}


class ForagingParallelEnv(TupleParallelEnv):
    """Level-based foraging, package `lbforaging`."""

    def __init__(self, id: str, /, **settings: Any) -> None:
        """Create a registered environment, such as Foraging-8x8-2p-2f-v3."""
        self._create("lbforaging", id, settings, example="Foraging-8x8-2p-2f-v3")

    def _forget(self) -> None:
        for player in self.game.unwrapped.players:
            player.position = None  # otherwise the positions at the end of the last episode would stay blocked

    def _is_solved(self, is_over: bool) -> bool:
        del is_over  # the environment also reports its time limit as termination
        return not self.game.unwrapped.field.any()


class WarehouseParallelEnv(TupleParallelEnv):
    """The multi-robot warehouse, package `rware`."""

    def __init__(self, id: str, /, **settings: Any) -> None:
        """Create a registered environment, such as rware-tiny-2ag-v2."""
        self._create("rware", id, settings, example="rware-tiny-2ag-v2")

    def _is_solved(self, is_over: bool) -> bool:
        del is_over  # deliveries never end: the environment reports its time limit as termination
        return False
