"""Jumanji's environments for several agents: `--env jumanji:NAME`, by the names that the package registers.

Observations differ in form, so each kind of environment has an entry in `KINDS` that says which parts are an agent's
own and which all agents see. A reward for the team as a whole is split evenly, so that the sum stays the same.
"""

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from consmarl.environments.actions import TeamActions, discrete
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

PREFIX = "jumanji:"


@dataclass(frozen=True)
class Kind:
    """A kind of environment: its observations, actions and settings."""

    own: tuple[str, ...]  # parts of an observation whose first axis is the agent
    actions: tuple[str, ...]
    everybodys: tuple[str, ...] = ()  # parts that all agents see
    generator: Mapping[str, Any] = field(default_factory=dict)  # settings of the layout generator, with their defaults


KINDS = {
    "LevelBasedForaging": Kind(
        ("agents_view",), ("stay", "up", "down", "left", "right", "load"),
        generator=dict(grid_size=8, fov=8, num_agents=2, num_food=2, max_agent_level=2, force_coop=True),
    ),
    "RobotWarehouse": Kind(
        ("agents_view",), ("stay", "forward", "turn left", "turn right", "load or unload"),
        generator=dict(
            shelf_rows=2, shelf_columns=3, column_height=8, num_agents=4, sensor_range=1, request_queue_size=8
        ),
    ),
    "Cleaner": Kind(
        ("agents_locations",), ("up", "right", "down", "left"), ("grid",),
        generator=dict(num_rows=10, num_cols=10, num_agents=3),
    ),
    "Connector": Kind(
        (), ("stay", "up", "right", "down", "left"), ("grid",), generator=dict(grid_size=10, num_agents=10)
    ),
}  # fmt: skip


def jumanji_world(id: str, /, **settings: Any) -> CompiledWorld:
    """Return the Jumanji environment with this id; `settings` are passed to it or to its layout generator."""
    registered = _package(id).registered_environments()
    name = id.removeprefix(PREFIX)
    usable = sorted(each for each in registered if _kind_of(each) in KINDS)
    if name not in registered:
        raise UsageError(f"jumanji has no environment {name!r}: {nearest(name, usable)}")
    if name not in usable:
        raise UsageError(
            f"{name} of jumanji is for one agent, or shows what cannot be told apart by agents: those for teams are "
            f"{', '.join(usable)}."
        )
    return world_of(JumanjiWorld, id, settings, version("jumanji"))


def _kind_of(name: str) -> str:
    return name.rpartition("-v")[0]


def _package(id: str) -> Any:
    try:
        with as_its_authors_meant():
            import jumanji
    except ImportError as error:
        raise UsageError(f"{id} needs Jumanji: pip install 'consmarl[jumanji]' ({str(error).rstrip('.')}).") from error
    return jumanji


@functools.lru_cache
def _made(id: str, settings: tuple[tuple[str, Any], ...]) -> "JumanjiGame":
    package, name = _package(id), id.removeprefix(PREFIX)
    kind, given = KINDS[_kind_of(name)], dict(settings)
    of_generator = {each: given.pop(each) for each in list(given) if each in kind.generator}
    if "grid_size" in of_generator and "fov" in kind.generator:
        of_generator.setdefault("fov", of_generator["grid_size"])  # the whole grid is in view, as by default
    if of_generator:
        # the class of the environment's default generator, with other settings
        usual = made(id, functools.partial(package.make, name), {})
        generator = getattr(usual, "_generator", None) or usual.generator
        given["generator"] = made(id, type(generator), {**kind.generator, **of_generator})
    return JumanjiGame(made(id, functools.partial(package.make, name), given), kind)


@dataclass(frozen=True)
class JumanjiWorld(CompiledWorld):
    """A Jumanji environment, as one of our environments."""

    @property
    def game(self) -> "JumanjiGame":
        """The package's environment."""
        return _made(self.id, self.settings)


class JumanjiGame(Game):
    """A Jumanji environment for several agents."""

    def __init__(self, env: Any, kind: Kind) -> None:
        """Read the environment's number of agents, actions and step limit."""
        self.env, self.kind = env, kind
        self.num_agents = int(env.num_agents)
        counts = np.asarray(env.action_spec.num_values).tolist()
        self.actions = TeamActions(tuple(map(discrete, counts)))
        self.action_names = kind.actions
        self.own_limit = int(env.time_limit)

    def reset(self, key: jax.Array) -> tuple[Any, Seen]:
        """Start an episode."""
        state, timestep = self.env.reset(key)
        return state, self._seen(timestep.observation)

    def step(self, key: jax.Array, state: Any, actions: jax.Array, num_steps: jax.Array) -> Stepped:
        """Perform one step; `key` is not needed, because the package keeps its random key in the state."""
        del key, num_steps
        state, timestep = self.env.step(state, actions.astype(jnp.int32))
        is_over = timestep.last()
        # a discount of 0 means that the task is over, any other that time ran out
        terminated = is_over & jnp.all(timestep.discount == 0)
        return Stepped(state, self._seen(timestep.observation), self._rewards(timestep.reward), is_over, terminated)

    def _rewards(self, reward: jax.Array) -> jax.Array:
        if jnp.ndim(reward):
            return reward
        return jnp.full(self.num_agents, reward / self.num_agents)

    def _seen(self, observation: Any) -> Seen:
        shared = [getattr(observation, name) for name in self.kind.everybodys]
        own = [getattr(observation, name) for name in self.kind.own]
        codes = [flattened([*(rows[agent] for rows in own), *shared]) for agent in range(self.num_agents)]
        return Seen(codes, [observation.action_mask[agent] for agent in range(self.num_agents)])

    def pictures(self, states: Sequence[Any]) -> Iterator[NDArray[np.uint8]] | None:
        """Yield pictures of states by Jumanji's own viewer; return None if it has none that suits."""
        from consmarl.environments.draw.packages import jumanji_pictures

        return jumanji_pictures(self.env, states)
