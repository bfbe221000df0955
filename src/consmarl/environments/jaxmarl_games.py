"""JaxMARL's environments: `--env jaxmarl:NAME`, by the names that the package registers."""

import contextlib
import functools
import io
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from consmarl.environments.actions import AgentActions, TeamActions, discrete, divided, several_discrete
from consmarl.environments.compiled import (
    CompiledWorld,
    Game,
    Seen,
    Stepped,
    as_its_authors_meant,
    flattened,
    made,
    world_of,
)
from consmarl.errors import UsageError, nearest

PREFIX = "jaxmarl:"


def jaxmarl_world(id: str, /, **settings: Any) -> CompiledWorld:
    """Return the JaxMARL environment with this id.

    `settings` are passed to it, except for `episode_limit` and `action_bins`, which are ours. A `scenario` of SMAX and
    a `layout` of Overcooked are given by name.
    """
    package = _package(id)
    name = id.removeprefix(PREFIX)
    if name not in package.registered_envs:
        raise UsageError(f"jaxmarl has no environment {name!r}: {nearest(name, package.registered_envs)}")
    return world_of(JaxMARLWorld, id, settings, version("jaxmarl"))


def _package(id: str) -> Any:
    try:
        with as_its_authors_meant(), _in_silence():
            import jaxmarl.registration
    except ImportError as error:
        raise UsageError(f"{id} needs JaxMARL: pip install 'consmarl[jaxmarl]' ({str(error).rstrip('.')}).") from error
    return jaxmarl.registration


@contextlib.contextmanager
def _in_silence() -> Iterator[None]:
    """Suppress output while the package is imported, and undo its replacement of the standard streams."""
    there = sys.stdout, sys.stderr, sys.__stdout__
    sys.stdout = sys.__stdout__ = io.StringIO()  # type: ignore[misc, assignment]
    try:
        yield
    finally:
        sys.stdout, sys.stderr, sys.__stdout__ = there  # type: ignore[misc]


@functools.lru_cache
def _made(id: str, settings: tuple[tuple[str, Any], ...], bins: int | None) -> "JaxMARLGame":
    package, given = _package(id), dict(settings)
    name = id.removeprefix(PREFIX)
    if isinstance(given.get("scenario"), str):
        from jaxmarl.environments.smax import map_name_to_scenario

        scenario = given["scenario"]
        given["scenario"] = made(id, lambda: map_name_to_scenario(scenario), {})
    if name == "overcooked" and isinstance(given.get("layout"), str):
        from jaxmarl.environments.overcooked import overcooked_layouts

        if given["layout"] not in overcooked_layouts:
            raise UsageError(
                f"overcooked has no layout {given['layout']!r}: {nearest(given['layout'], overcooked_layouts)}"
            )
        given["layout"] = overcooked_layouts[given["layout"]]
    return JaxMARLGame(id, made(id, functools.partial(package.make, name), given), bins)


@dataclass(frozen=True)
class JaxMARLWorld(CompiledWorld):
    """A JaxMARL environment, as one of our environments."""

    @property
    def game(self) -> "JaxMARLGame":
        """The package's environment."""
        return _made(self.id, self.settings, self.bins)


class JaxMARLGame(Game):
    """A JaxMARL environment."""

    def __init__(self, id: str, env: Any, bins: int | None = None) -> None:
        """Read the environment's agents, actions, step limit and mask function."""
        self.env = env
        self.agents = list(env.agents)
        self.num_agents = len(self.agents)
        self.actions = TeamActions(tuple(_actions(id, env.action_space(agent), bins) for agent in self.agents))
        self.own_limit = _own_limit(env)
        self._masks = _mask_function(env)

    def reset(self, key: jax.Array) -> tuple[Any, Seen]:
        """Start an episode."""
        observations, state = self.env.reset(key)
        return state, self._seen(observations, state)

    def step(self, key: jax.Array, state: Any, actions: jax.Array, num_steps: jax.Array) -> Stepped:
        """Perform one step, without the package's automatic reset."""
        chosen = {
            agent: _taken(own, actions[index])
            for index, (agent, own) in enumerate(zip(self.agents, self.actions.of_agents, strict=True))
        }
        observations, state, rewards, dones, _ = self.env.step_env(key, state, chosen)
        is_over = jnp.asarray(dones["__all__"], bool).reshape(())
        # the package does not distinguish the end of a task from its time limit
        is_late = num_steps + 1 >= self.own_limit if self.own_limit else False
        gained = jnp.stack([jnp.asarray(rewards[agent], jnp.float32).reshape(()) for agent in self.agents])
        return Stepped(state, self._seen(observations, state), gained, is_over, is_over & ~jnp.asarray(is_late))

    def _seen(self, observations: Any, state: Any) -> Seen:
        codes = [flattened(observations[agent]) for agent in self.agents]
        if self._masks is None:
            return Seen(codes, None)
        masks = self._masks(state)
        return Seen(codes, [jnp.ravel(masks[agent]) > 0 for agent in self.agents])

    def pictures(self, states: Sequence[Any]) -> Iterator[NDArray[np.uint8]] | None:
        """Yield pictures of states if JaxMARL has a visualiser for them; else return None."""
        from consmarl.environments.draw.packages import jaxmarl_pictures

        return jaxmarl_pictures(self.env, states)


def _actions(id: str, space: Any, bins: int | None) -> AgentActions:
    """Return the actions in a space, which is one of JaxMARL's own classes."""
    kind = type(space).__name__
    if kind == "Discrete":
        return discrete(int(space.n))
    if kind == "MultiDiscrete":
        return several_discrete(np.asarray(space.num_categories), dtype=np.int32)
    if kind == "Box":
        return divided(id, space.low, space.high, tuple(space.shape), np.dtype(space.dtype), bins)
    raise UsageError(f"{id} is acted on by a {kind}: only Discrete, MultiDiscrete and Box actions can be learned.")


def _taken(own: AgentActions, chosen: jax.Array) -> jax.Array:
    """Return the environment's action for an agent's choice, or choices [branch]."""
    if own.shape is None:
        return chosen
    num_dimensions = len(own.counts)
    values = jnp.asarray(own.table)[jnp.arange(num_dimensions), jnp.atleast_1d(chosen)[:num_dimensions]]
    return values.reshape(own.shape)


def _own_limit(env: Any) -> int | None:
    """Return the number of steps after which the package ends an episode; None if it does not say."""
    most = getattr(env, "max_steps", None)
    if most is None:
        return None
    # MPE checks the limit before it increments its step count, so its episodes are one step longer than stated
    is_one_late = type(env).__module__.startswith("jaxmarl.environments.mpe")
    return int(most) + is_one_late


def _mask_function(env: Any) -> Any:
    """Return the environment's function state → masks; None if it has none."""
    from jaxmarl.environments.multi_agent_env import MultiAgentEnv

    if type(env).get_avail_actions is not MultiAgentEnv.get_avail_actions:
        return env.get_avail_actions
    return getattr(env, "get_legal_moves", None)  # Hanabi's
