"""The interface of an environment.

An environment is a frozen, hashable dataclass of parameters whose methods are pure functions on JAX arrays, so
it can be a static argument of `jit` and its methods can be `vmap`ped over keys, states and actions:

    layout = world.generate_layout(key)       # the initial positions (random)
    state = world.begin(layout)               # the initial state (deterministic)
    draws = world.draw(key)                   # the random numbers of one step
    state, outcome = world.advance(state, actions, draws)     # the dynamics (deterministic)

`reset` and `step` combine these pairs. Randomness and dynamics are separate, so that a fixed start and recorded draws
go through exactly the same code as random ones. After an outcome that ended the episode, the state has no
meaning: call `reset` or `begin` again.

An environment that sometimes forbids actions sets `masks_actions` and returns the mask of a state by `allowed_actions`.
A row without any allowed action means that the agent is absent: it takes action 0, whatever that does, and learns
nothing from the step.

If actions have several dimensions, `num_branches` is their number. Actions are then [agent, branch], one choice in
every dimension, and masks are [agent, branch, action].

Axes: `[agent]`, `[agent, code]`, `[agent, action]`; nothing is batched here.
"""

import abc
from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from consmarl.environments.actions import action_name, branch_axis
from consmarl.environments.symmetry import Symmetry
from consmarl.errors import UsageError
from consmarl.metrics import Metric

LayoutT = TypeVar("LayoutT")
StateT = TypeVar("StateT")
DrawsT = TypeVar("DrawsT")

MAX_CODE = np.iinfo(np.uint16).max


class Outcome(NamedTuple):
    """The result of one step."""

    rewards: jax.Array  # float32 [agent]
    terminated: jax.Array  # bool: the task itself is over
    truncated: jax.Array  # bool: the step limit is reached

    @property
    def team_reward(self) -> jax.Array:
        """The sum of all agents' rewards."""
        return self.rewards.sum(axis=-1)

    @property
    def done(self) -> jax.Array:
        """Whether the episode ended, for either reason."""
        return self.terminated | self.truncated


class Counters(NamedTuple):
    """The achievements of an episode so far, by name."""

    per_agent: dict[str, jax.Array]  # the first axis is the agent
    team: dict[str, jax.Array]


class Ground(NamedTuple):
    """A grid that agents walk on; their observations start with their row and column."""

    grid: tuple[int, int]  # (rows, columns)
    view: tuple[int, int]  # (rows, columns) of an agent's window


class Environment(abc.ABC, Generic[LayoutT, StateT, DrawsT]):
    """A cooperative environment with a fixed number of agents, discrete actions and a step limit.

    If agents differ in their number of actions or in the length of their observations, both are padded to the largest,
    and the extra actions are forbidden.
    """

    id: str
    num_agents: int
    episode_limit: int
    action_names: tuple[str, ...]

    # Properties that the rest of the program reads from an environment.
    family: ClassVar[str] = "other environments"  # the same for environments that differ only in size
    acts_as_one: ClassVar[bool] = False  # whether agents share weights and learn from the team's reward by default
    # settings that suit this environment, by preset: {"recommended": {"exploration": "epsilon-z-greedy"}}; they apply
    # to every method with action values that has the setting; with the prefix "if_sharing.", only to methods whose
    # agents share; with "if_taught.", only to those whose newcomers share with experienced teachers
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = MappingProxyType({})
    # its painter: a class derived from `draw.painter.Painter`, or its location as module:Class
    painter: ClassVar[str | type | None] = None

    @property
    def num_actions(self) -> int:
        """Number of actions per agent."""
        return len(self.action_names)

    @property
    def num_branches(self) -> int:
        """Number of dimensions of an action, with `num_actions` choices each; with 1, arrays have no branch axis."""
        return 1

    @property
    def choice_names(self) -> tuple[tuple[str, ...], ...]:
        """Names of the choices in every dimension of an action."""
        return (self.action_names,) * self.num_branches

    def name_of(self, chosen: NDArray[Any]) -> str:
        """Return the name of an action: a single choice or, with several dimensions, choices [branch]."""
        return action_name(self.choice_names, chosen)

    @property
    def masks_actions(self) -> bool:
        """Whether actions can be forbidden; if not, programs are compiled without masks."""
        return False

    def allowed_actions(self, state: StateT) -> jax.Array:
        """Return every agent's allowed actions: bool [agent, action]; none at all for an absent agent."""
        del state
        return jnp.ones((self.num_agents, *branch_axis(self.num_branches), self.num_actions), bool)

    @property
    @abc.abstractmethod
    def observation_scale(self) -> NDArray[np.float32]:
        """The constant vector with `observation = codes * scale`."""

    @property
    @abc.abstractmethod
    def observation_limit(self) -> NDArray[np.int64]:
        """The largest value that each code can take."""

    @property
    def observation_size(self) -> int:
        """The length of one agent's observation."""
        return len(self.observation_scale)

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """Transformations that leave the environment unchanged; none by default."""
        return ()

    @property
    def ground(self) -> Ground | None:
        """The grid, if observations contain an agent's position on one."""
        return None

    @property
    def num_places(self) -> int:
        """Number of places that can come into view; 0 if observations do not show which ones are in view."""
        return 0

    def places_in_view(self, codes: jax.Array) -> jax.Array:
        """Return which places observations show: codes [..., code] → bool [..., place]."""
        return jnp.zeros((*codes.shape[:-1], 0), bool)

    @cached_property
    def observation_dtype(self) -> np.dtype[Any]:
        """The smallest unsigned type that can hold every code."""
        return np.dtype(np.min_scalar_type(int(self.observation_limit.max())))

    @abc.abstractmethod
    def generate_layout(self, key: jax.Array) -> LayoutT:
        """Draw the initial positions."""

    def layout_from(self, description: Mapping[str, Any]) -> LayoutT:  # noqa: ARG002
        """Validate a given start and convert it to a layout."""
        raise UsageError(f"{self.id} begins at random: it does not take a layout that was written down.")

    @abc.abstractmethod
    def begin(self, layout: LayoutT) -> StateT:
        """Return the initial state of an episode on this layout."""

    @abc.abstractmethod
    def draw(self, key: jax.Array) -> DrawsT:
        """Draw the random numbers of one step."""

    def draws_from(self, recording: Mapping[str, Any]) -> DrawsT:  # noqa: ARG002
        """Validate recorded draws of a whole episode and stack them along a leading axis of steps."""
        raise UsageError(f"{self.id} draws nothing at random inside a step, so it takes no recorded draws.")

    @abc.abstractmethod
    def advance(self, state: StateT, actions: jax.Array, draws: DrawsT) -> tuple[StateT, Outcome]:
        """Perform one step with the given draws."""

    @abc.abstractmethod
    def observe(self, state: StateT) -> jax.Array:
        """Return every agent's observation as codes: unsigned [agent, code]."""

    @abc.abstractmethod
    def counters(self, state: StateT) -> Counters:
        """Return the achievements so far."""

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Declarations of its counters, in display order; by default derived from their names."""
        counted = jax.eval_shape(lambda: self.counters(self.reset(jax.random.key(0))))
        return tuple(Metric(name) for name in (*counted.per_agent, *counted.team))

    def reset(self, key: jax.Array) -> StateT:
        """Start an episode on a random layout."""
        return self.begin(self.generate_layout(key))

    def step(self, key: jax.Array, state: StateT, actions: jax.Array) -> tuple[StateT, Outcome]:
        """Perform one step with draws from `key`."""
        return self.advance(state, actions, self.draw(key))


AnyEnvironment = Environment[Any, Any, Any]
