"""Environments that others wrote, as teams see them: any PettingZoo `ParallelEnv`.

They step in Python, one at a time. Observations are float32 and are stored as they are: their scale is 1. Agents that
see less or have fewer actions than others are filled up to the largest, with zeros and with forbidden actions.
Continuous actions are divided into bins, and those of several dimensions have a choice in each: see `actions`.
"""

import functools
import importlib
import inspect
import shlex
import sys
from types import FunctionType, ModuleType
from typing import Any, NamedTuple, cast

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from pettingzoo import ParallelEnv
from pettingzoo.utils.conversions import parallel_wrapper_fn

from consmarl.environments import validation
from consmarl.environments.actions import AgentActions, checked_bins, discrete, divided, several_discrete, team_actions
from consmarl.environments.trust import refuse_unconfirmed
from consmarl.errors import UsageError
from consmarl.metrics import Metric

PETTINGZOO, FORAGING = "pettingzoo:", "lbforaging:"
PREFIXES = (PETTINGZOO, FORAGING)
OBSERVATION_KINDS = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete)
OBSERVATION, ACTION_MASK = "observation", "action_mask"  # of a Dict that holds both, as PettingZoo has it


def is_foreign(id: str) -> bool:
    """Return whether an id names an environment that steps in Python."""
    return id.startswith(PREFIXES)


def confirmation(id: str) -> str:
    """Return what to add to a command on a run in this environment: " --env ID" for a third-party one, else nothing."""
    return f" --env {shlex.quote(id)}" if is_foreign(id) else ""


def foreign_world(id: str, /, **settings: Any) -> "ForeignWorld":
    """Return the environment named by an id: `pettingzoo:MODULE`, `pettingzoo:MODULE:FUNCTION`, `lbforaging:ID`.

    `settings` are passed to its factory, except for `episode_limit` and `action_bins`, which are ours. Nothing is
    imported for an id from a file unless the user has confirmed it.
    """
    refuse_unconfirmed(id)
    ours = (settings.pop("episode_limit", None), settings.pop("action_bins", None))
    if id.startswith(FORAGING):
        game = functools.partial(ForagingParallelEnv, id.removeprefix(FORAGING))
        return ForeignWorld(_made(id, game, settings), id, *ours)
    module_name, _, function = id.removeprefix(PETTINGZOO).partition(":")
    return ForeignWorld(_made(id, _factory(module_name, function or "parallel_env"), settings), id, *ours)


def _factory(module_name: str, function: str) -> Any:
    """Return the environment's factory: a `ParallelEnv`, or a function defined in the module itself."""
    if module_name.partition(".")[0] in sys.stdlib_module_names:
        raise UsageError(f"{module_name} is part of Python itself and holds no environment: name a module that does.")
    found = getattr(_imported(module_name), function, None)
    if not callable(found):
        raise UsageError(
            f"{module_name} has no function {function!r}: "
            f"name the one that makes the environment, {PETTINGZOO}{module_name}:FUNCTION."
        )
    if not _makes_environments(found, module_name):
        raise UsageError(
            f"{function} in {module_name} is neither a ParallelEnv nor a function that {module_name} itself defines: "
            f"name an environment's class, or a function where it is defined."
        )
    return found


def _makes_environments(found: Any, module_name: str) -> bool:
    """Return whether this may be called; anything that a module merely imported is refused.

    PettingZoo creates such functions for other modules: `parallel_env = parallel_wrapper_fn(env)`.
    """
    if inspect.isclass(found):
        return issubclass(found, ParallelEnv)
    if not isinstance(found, FunctionType):
        return False
    home = found.__module__ or ""
    return home.partition(".")[0] == module_name.partition(".")[0] or home == parallel_wrapper_fn.__module__


def _imported(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise UsageError(_what_to_install(name, error.name or name)) from error
    except (ImportError, ValueError, TypeError) as error:  # an empty name raises ValueError, a relative one TypeError
        raise UsageError(f"cannot import {name!r}: {str(error).rstrip('.')}.") from error


def _what_to_install(name: str, missing: str) -> str:
    if missing == name.split(".")[0]:
        return (
            f"there is no module {missing!r}: pip install {missing}, or set PYTHONPATH to the folder that it lies in."
        )
    if f"{name}.".startswith(f"{missing}."):
        package, _, module = missing.rpartition(".")
        return f"{package} is there, but has no module {module!r}: correct the name, or install another version."
    return f"{name} needs the module {missing!r}: pip install {missing}."


def _made(id: str, factory: Any, settings: dict[str, Any]) -> ParallelEnv:
    try:
        return factory(**settings)
    except TypeError as error:  # raised for a setting that the function does not have
        raise UsageError(f"{id} cannot be made with {settings}: {str(error).rstrip('.')}.") from error


class ForeignStep(NamedTuple):
    """The result of one step."""

    codes: NDArray[np.float32]  # [agent, code], observed after it
    rewards: NDArray[np.float32]  # [agent]
    is_over: bool
    terminated: bool  # it is over, and for every agent because its task was
    allowed: NDArray[np.bool_]  # [agent, …, action], what each may do next; nothing if it is not there


class ForeignWorld:
    """A `ParallelEnv` with an array interface, and the facts that learners and replay need.

    Agents may come and go: the rest play on, and one that is not there is not asked, may do nothing, has reward 0 and
    sees what it saw last. What is allowed is read off `infos[agent]["action_mask"]`, or off the observation where that
    is a Dict of `observation` and `action_mask`.
    """

    observation_dtype = np.dtype(np.float32)
    masks_actions = True  # nobody tells in advance whether agents leave or actions are forbidden
    metrics: tuple[Metric, ...] = ()  # it has no counters

    def __init__(
        self,
        env: ParallelEnv,
        id: str = "custom",
        episode_limit: int | None = None,
        action_bins: int | None = None,
    ) -> None:
        """Wrap `env`, whose episodes are cut at `episode_limit` steps, by default at its own limit.

        Continuous actions are divided into `action_bins` in every dimension.
        """
        self.env, self.id = env, id
        self.agents = _agents_of(env, id)
        self.num_agents = len(self.agents)
        shown = [env.observation_space(agent) for agent in self.agents]
        self._is_dict = [_holds_mask(space) for space in shown]
        self._observation_spaces = [space[OBSERVATION] if _holds_mask(space) else space for space in shown]
        self.observation_size = _largest_observation(id, self._observation_spaces)
        bins = checked_bins(action_bins)
        self.actions = team_actions(id, [_actions(id, env.action_space(agent), bins) for agent in self.agents], bins)
        self.num_actions, self.num_branches = self.actions.num_actions, self.actions.num_branches
        self.choice_names = self.actions.names
        self.episode_limit = _limit_of(env, id, episode_limit)
        self.observation_scale = np.ones(self.observation_size, np.float32)
        self._codes = np.zeros((self.num_agents, self.observation_size), np.float32)
        self._is_playing = np.zeros(self.num_agents, bool)
        self._has_terminated = np.zeros(self.num_agents, bool)
        self.allowed = np.zeros_like(self.actions.exists)  # [agent, …, action], what each may do now

    def reset(self, seed: int) -> NDArray[np.float32]:
        """Begin an episode; return what is seen at first, [agent, code]."""
        observations, infos = self.env.reset(seed=seed)
        self._is_playing = np.array([agent in self.env.agents for agent in self.agents])
        self._has_terminated = np.zeros(self.num_agents, bool)
        self._codes = self._seen(observations, np.zeros_like(self._codes))
        self.allowed = self._masks(observations, infos, self._is_playing)
        return self._codes

    def step(self, actions: NDArray[np.int32]) -> ForeignStep:
        """Let every agent that still plays act at once; `actions` [agent, …] count from 0."""
        was_playing = self._is_playing.copy()
        playing = np.flatnonzero(was_playing).tolist()
        chosen = {self.agents[index]: self.actions.action(index, actions[index]) for index in playing}
        observations, rewards, terminations, truncations, infos = self.env.step(chosen)
        gained = np.zeros(self.num_agents, np.float32)
        for index in playing:
            gained[index] = rewards.get(self.agents[index], 0.0)
        for index, agent in enumerate(self.agents):
            has_left = terminations.get(agent, False) or truncations.get(agent, False)
            self._has_terminated[index] = terminations.get(agent, self._has_terminated[index])
            self._is_playing[index] = agent in self.env.agents and not has_left
        self._codes = self._seen(observations, self._codes)
        is_over = not self._is_playing.any()
        # whoever was there at the end might have gone on: the value of that is asked for after a time limit
        self.allowed = self._masks(observations, infos, was_playing if is_over else self._is_playing)
        terminated = is_over and bool(self._has_terminated.all())
        return ForeignStep(self._codes, gained, is_over, terminated, self.allowed)

    def _masks(
        self, observations: dict[str, Any], infos: dict[str, Any], is_there: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        allowed = self.actions.exists & is_there.reshape((-1,) + (1,) * (self.actions.exists.ndim - 1))
        for index in np.flatnonzero(is_there).tolist():
            agent = self.agents[index]
            told = infos.get(agent, {}).get(ACTION_MASK)
            if self._is_dict[index] and agent in observations:
                told = observations[agent][ACTION_MASK]
            if told is not None:
                own = self.actions.own_choices(index)
                allowed[index][own] = self._checked_mask(agent, told, int(own.sum()))
        return allowed

    def _checked_mask(self, agent: str, told: Any, count: int) -> NDArray[np.bool_]:
        # of several dimensions, a mask is a tuple of one for each, as Gymnasium has it, or all of them in one row
        mask = np.concatenate(told) if isinstance(told, tuple) else np.asarray(told)
        if mask.shape != (count,) or not np.isin(mask, (0, 1)).all():
            raise UsageError(
                f"the action_mask of {agent} in {self.id} is of {mask.dtype}{mask.shape}: it must be {count} zeros and "
                "ones, one for each action."
            )
        return mask.astype(bool)

    def _seen(self, observations: dict[str, Any], before: NDArray[np.float32]) -> NDArray[np.float32]:
        codes = before.copy()
        for index, (agent, space) in enumerate(zip(self.agents, self._observation_spaces, strict=True)):
            if agent in observations:
                shown = observations[agent][OBSERVATION] if self._is_dict[index] else observations[agent]
                seen = np.asarray(spaces.flatten(space, shown))
                codes[index, : len(seen)] = seen
        return codes


def _holds_mask(space: Any) -> bool:
    """Whether an observation is a Dict of what is seen and of what is allowed."""
    return isinstance(space, spaces.Dict) and set(space.spaces) == {OBSERVATION, ACTION_MASK}


def _agents_of(env: Any, id: str) -> list[str]:
    if not isinstance(env, ParallelEnv):
        raise UsageError(
            f"{id} makes an object of {type(env).__name__}, where one of PettingZoo's ParallelEnv is needed."
        )
    agents = list(getattr(env, "possible_agents", ()))
    if not agents:
        raise UsageError(f"{id} does not say who may play: its possible_agents must list at least one agent.")
    return agents


def _largest_observation(id: str, each: list[Any]) -> int:
    for space in each:
        if not isinstance(space, OBSERVATION_KINDS):
            raise UsageError(
                f"{id} is observed as {space}: only Box, Discrete and MultiDiscrete can be learned from, or a Dict of "
                f"such an {OBSERVATION!r} and an {ACTION_MASK!r}."
            )
        if isinstance(space, spaces.Box) and space.dtype == np.uint8 and len(space.shape) > 1:
            raise UsageError(
                f"{id} is observed as pictures of shape {space.shape}, for which there is no network here: choose "
                "observations that are vectors, or wrap it in an environment that makes some."
            )
    return max(spaces.flatdim(space) for space in each)


def _actions(id: str, space: Any, bins: int | None) -> AgentActions:
    """Return the choices in a space, Gymnasium's."""
    if isinstance(space, spaces.Discrete):
        return discrete(int(space.n), int(space.start))
    if isinstance(space, spaces.MultiDiscrete):
        return several_discrete(space.nvec, space.start, space.dtype)
    if isinstance(space, spaces.Box):
        return divided(id, space.low, space.high, space.shape, space.dtype, bins)
    raise UsageError(f"{id} is acted on by {space}: only Discrete, MultiDiscrete and Box actions can be learned.")


def _limit_of(env: ParallelEnv, id: str, asked: int | None) -> int:
    inner = env.unwrapped
    own = getattr(inner, "max_cycles", None) or getattr(getattr(inner, "spec", None), "max_episode_steps", None)
    if asked is None and own is None:
        raise UsageError(f"{id} does not say how long its episodes last: say it with --set episode_limit=50.")
    return validation.whole_number("episode_limit", own if asked is None else asked, least=1)


class ForagingParallelEnv(ParallelEnv):  # type: ignore[misc]
    """Level-based foraging (package `lbforaging`), a Gymnasium environment of tuples, as a `ParallelEnv`."""

    def __init__(self, id: str, /, **settings: Any) -> None:
        """Create a registered environment, such as Foraging-8x8-2p-2f-v3."""
        _imported("lbforaging")  # importing it registers its environments
        if not id.startswith("Foraging") or id not in gymnasium.registry:
            raise UsageError(f"lbforaging has no environment {id!r}: one it has is 'Foraging-8x8-2p-2f-v3'.")
        self.game = cast(Any, gymnasium.make(id, disable_env_checker=True, **settings))
        self.possible_agents = [f"player_{index}" for index in range(len(self.game.action_space))]
        self.agents: list[str] = []
        self.max_cycles = self.game.spec.max_episode_steps or self.game.spec.kwargs["max_episode_steps"]

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """Return the space of an agent's observations."""
        return self.game.observation_space[self.possible_agents.index(agent)]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """Return the space of an agent's actions."""
        return self.game.action_space[self.possible_agents.index(agent)]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        """Start an episode, which depends only on `seed`."""
        for player in self.game.unwrapped.players:
            player.position = None  # otherwise the positions at the end of the last episode would stay blocked
        observations, info = self.game.reset(seed=seed, options=options)
        self.agents = list(self.possible_agents)
        return self._by_agent(observations), dict.fromkeys(self.agents, info)

    def step(self, actions: dict[str, int]) -> tuple[Any, Any, Any, Any, Any]:
        """Let every player act at once."""
        everyone = self.agents
        observations, rewards, is_over, is_late, info = self.game.step([actions[agent] for agent in everyone])
        is_eaten = not self.game.unwrapped.field.any()  # the game reports its time limit as termination, too
        if is_over or is_late:
            self.agents = []
        return (
            self._by_agent(observations),
            self._by_agent(rewards),
            dict.fromkeys(everyone, is_eaten),
            dict.fromkeys(everyone, (is_over or is_late) and not is_eaten),
            dict.fromkeys(everyone, info),
        )

    def close(self) -> None:
        """Close the game."""
        self.game.close()

    def _by_agent(self, values: Any) -> dict[str, Any]:
        return dict(zip(self.possible_agents, values, strict=True))
