"""Third-party environments that step in Python: any PettingZoo `ParallelEnv`, with an array interface.

Each steps one at a time. Observations are float32 and stored unscaled. Shorter observations are padded with zeros, and
agents with fewer actions than others get additional forbidden ones. Continuous actions are divided into bins, and
actions with several dimensions have one choice in each: see `actions`.
"""

import functools
import shlex
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from pettingzoo import ParallelEnv

from consmarl.environments import validation
from consmarl.environments.actions import (
    AgentActions,
    action_name,
    checked_bins,
    discrete,
    divided,
    several_discrete,
    team_actions,
)
from consmarl.environments.importing import PETTINGZOO, factory
from consmarl.environments.infos import NOTHING, Counted, Told, counted_in, told_in
from consmarl.environments.observed import ACTION_MASK, holds_mask, largest_observation, without_mask
from consmarl.environments.trust import refuse_unconfirmed
from consmarl.environments.tuples import ForagingParallelEnv, TupleParallelEnv, WarehouseParallelEnv
from consmarl.errors import UsageError
from consmarl.metrics import Metric

TUPLES = {"lbforaging:": ForagingParallelEnv, "rware:": WarehouseParallelEnv, "gymnasium:": TupleParallelEnv}
PREFIXES = (PETTINGZOO, *TUPLES)
STEPS_TRIED = 100  # random steps, to find out which numbers an environment reports in its infos


def is_foreign(id: str) -> bool:
    """Return whether an id names an environment that steps in Python."""
    return id.startswith(PREFIXES)


def confirmation(id: str) -> str:
    """Return the option that a command on such a run needs: " --env ID" for a third-party environment, else ""."""
    return f" --env {shlex.quote(id)}" if is_foreign(id) else ""


class Recipe(NamedTuple):
    """Id and settings, from which an environment can be created again in this or another process."""

    id: str
    settings: dict[str, Any]


def foreign_world(id: str, /, **settings: Any) -> "ForeignWorld":
    """Return the environment named by an id.

    Ids are `pettingzoo:MODULE`, `pettingzoo:MODULE:FUNCTION`, `lbforaging:ID`, `rware:ID` or `gymnasium:MODULE:ID`.
    `settings` are passed to its factory, except for `episode_limit` and `action_bins`, which are ours. For an id from a
    file, nothing is imported unless the user has confirmed it.
    """
    refuse_unconfirmed(id)
    recipe = Recipe(str(id), dict(settings))
    ours = (settings.pop("episode_limit", None), settings.pop("action_bins", None))
    make = functools.partial(_made, id, _factory_of(id), settings)
    return ForeignWorld(make(), id, *ours, make=make, recipe=recipe)


def _factory_of(id: str) -> Callable[..., ParallelEnv]:
    for prefix, kind in TUPLES.items():
        if id.startswith(prefix):
            return functools.partial(kind, id.removeprefix(prefix))
    module_name, _, function = id.removeprefix(PETTINGZOO).partition(":")
    return factory(module_name, function or "parallel_env")


def _made(id: str, making: Callable[..., ParallelEnv], settings: dict[str, Any]) -> ParallelEnv:
    try:
        return making(**settings)
    except TypeError as error:  # raised for a setting that the function does not have
        raise UsageError(f"{id} cannot be made with {settings}: {str(error).rstrip('.')}.") from error


class ForeignStep(NamedTuple):
    """The result of one step."""

    codes: NDArray[np.float32]  # [agent, code], observed after it
    rewards: NDArray[np.float32]  # [agent]
    is_over: bool
    terminated: bool  # the episode is over, and every agent has terminated rather than been truncated
    allowed: NDArray[np.bool_]  # [agent, …, action], allowed next; nothing for an absent agent
    told: Told  # numbers in its infos


class ForeignWorld:
    """A `ParallelEnv` with an array interface and the properties that learners and replay need.

    Agents may come and go. The rest play on; an absent agent does not act, has no allowed actions and reward 0, and
    keeps its last observation. Masks are read from `infos[agent]["action_mask"]`, or from the observation if that is a
    Dict of `observation` and `action_mask`.
    """

    observation_dtype = np.dtype(np.float32)
    masks_actions = True  # it is not known in advance whether agents leave or actions are forbidden

    def __init__(
        self,
        env: ParallelEnv,
        id: str = "custom",
        episode_limit: int | None = None,
        action_bins: int | None = None,
        *,
        make: Callable[[], ParallelEnv] | None = None,
        recipe: Recipe | None = None,
    ) -> None:
        """Wrap `env`, whose episodes are cut at `episode_limit` steps, by default at its own limit.

        Continuous actions are divided into `action_bins` in every dimension. `make` creates another environment like
        it, needed for several episodes side by side and for counters; `recipe` does the same in another process.
        """
        self.env, self.id, self.recipe, self._make = env, id, recipe, make
        self.agents = _agents_of(env, id)
        self.num_agents = len(self.agents)
        shown = [env.observation_space(agent) for agent in self.agents]
        self._is_dict = [holds_mask(space) for space in shown]
        self._observation_spaces = [without_mask(space) for space in shown]
        self.observation_size = largest_observation(id, self._observation_spaces)
        self._bins = checked_bins(action_bins)
        own_actions = [_actions(id, env.action_space(agent), self._bins) for agent in self.agents]
        self.actions = team_actions(id, own_actions, self._bins)
        self.num_actions, self.num_branches = self.actions.num_actions, self.actions.num_branches
        self.choice_names = self.actions.names
        self.episode_limit = _limit_of(env, id, episode_limit)
        self.observation_scale = np.ones(self.observation_size, np.float32)
        self._codes = np.zeros((self.num_agents, self.observation_size), np.float32)
        self._is_playing = np.zeros(self.num_agents, bool)
        self._has_terminated = np.zeros(self.num_agents, bool)
        self.allowed = np.zeros_like(self.actions.exists)  # [agent, …, action], allowed now
        self.told = told_in({}, self.agents)  # numbers in the last infos

    @property
    def action_names(self) -> tuple[str, ...]:
        """Names of the choices in the first dimension; numbers if an action is a single choice."""
        return self.choice_names[0]

    def name_of(self, chosen: NDArray[Any]) -> str:
        """Return the name of an action."""
        return action_name(self.choice_names, chosen)

    def reset(self, seed: int) -> NDArray[np.float32]:
        """Start an episode and return the first observations, [agent, code]."""
        observations, infos = self.env.reset(seed=seed)
        self._is_playing = np.array([agent in self.env.agents for agent in self.agents])
        self._has_terminated = np.zeros(self.num_agents, bool)
        self._codes = self._seen(observations, np.zeros_like(self._codes))
        self.allowed = self._masks(observations, infos, self._is_playing)
        self.told = told_in(infos, self.agents)
        return self._codes

    def step(self, actions: NDArray[np.int32]) -> ForeignStep:
        """Perform one step for all agents that are still playing; `actions` [agent, …] count from 0."""
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
        # agents present at the end keep their masks: after a time limit, the value of going on is needed
        self.allowed = self._masks(observations, infos, was_playing if is_over else self._is_playing)
        terminated = is_over and bool(self._has_terminated.all())
        self.told = told_in(infos, self.agents)
        return ForeignStep(self._codes, gained, is_over, terminated, self.allowed, self.told)

    def random_actions(self, rng: np.random.Generator) -> NDArray[np.int32]:
        """Draw one of the allowed actions for every agent; 0 for an absent one."""
        chances = rng.random(self.allowed.shape)
        return np.where(self.allowed, chances, -1.0).argmax(axis=-1).astype(np.int32)

    def another(self) -> "ForeignWorld":
        """Return a new, independent instance of this environment."""
        if self._make is None:
            raise UsageError(
                f"{self.id} cannot be made again, which several episodes side by side need: say how by "
                "ForeignWorld(env, make=FUNCTION)."
            )
        limits = (self.episode_limit, self._bins)
        return ForeignWorld(self._make(), self.id, *limits, make=self._make, recipe=self.recipe)

    @functools.cached_property
    def counted(self) -> Counted:
        """The numbers in `infos` that are kept: those that a second instance reports when played at random."""
        return NOTHING if self._make is None else counted_in(self.another()._told_at_random())

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Declarations of the counters."""
        return self.counted.metrics

    def _told_at_random(self) -> Iterator[Told]:
        rng = np.random.default_rng(0)
        self.reset(0)
        yield self.told
        for _ in range(min(STEPS_TRIED, self.episode_limit)):
            step = self.step(self.random_actions(rng))
            yield step.told
            if step.is_over:
                break
        self.env.close()

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
        # with several dimensions, a mask is a tuple with one mask each, as in Gymnasium, or all of them in one row
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
                shown = without_mask(observations[agent]) if self._is_dict[index] else observations[agent]
                seen = np.asarray(spaces.flatten(space, shown))
                codes[index, : len(seen)] = seen
        return codes


def _agents_of(env: Any, id: str) -> list[str]:
    if not isinstance(env, ParallelEnv):
        raise UsageError(
            f"{id} makes an object of {type(env).__name__}, where one of PettingZoo's ParallelEnv is needed."
        )
    agents = list(getattr(env, "possible_agents", ()))
    if not agents:
        raise UsageError(f"{id} does not say who may play: its possible_agents must list at least one agent.")
    return agents


def _actions(id: str, space: Any, bins: int | None) -> AgentActions:
    """Return the actions in a Gymnasium space."""
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
