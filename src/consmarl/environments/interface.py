"""What a world must offer.

A world is a frozen, hashable record of its parameters whose methods are pure functions on JAX arrays, so
it can be a static argument of `jit` and its methods can be `vmap`ped over keys, states and actions:

    layout = world.generate_layout(key)       # where everything starts (random)
    state = world.begin(layout)               # the first state (not random)
    draws = world.draw(key)                   # the chances of one step (random)
    state, outcome = world.advance(state, actions, draws)     # the dynamics (not random)

`reset` and `step` join the pairs. Chance and dynamics are apart so that a fixed start and recorded chances
go through exactly the code that random ones do. After an outcome that ended the episode a state has no
meaning: begin anew.

An environment in which some actions are sometimes forbidden says so by `masks_actions`, and by `allowed_actions` in
every state. A row without any allowed action means that the agent is absent: it takes action 0, whatever that does, and
learns nothing from the step.

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

from consmarl.environments.symmetry import Symmetry
from consmarl.errors import UsageError
from consmarl.metrics import Metric

LayoutT = TypeVar("LayoutT")
StateT = TypeVar("StateT")
DrawsT = TypeVar("DrawsT")

MAX_CODE = np.iinfo(np.uint16).max


class Outcome(NamedTuple):
    """What one step brought."""

    rewards: jax.Array  # float32 [agent]
    terminated: jax.Array  # bool: the task itself is over
    truncated: jax.Array  # bool: the step limit is reached

    @property
    def team_reward(self) -> jax.Array:
        """The sum of all agents' rewards."""
        return self.rewards.sum(axis=-1)

    @property
    def done(self) -> jax.Array:
        """Whether the episode ended, for whichever reason."""
        return self.terminated | self.truncated


class Counters(NamedTuple):
    """What has been achieved in an episode so far, by name."""

    per_agent: dict[str, jax.Array]  # the first axis is the agent
    team: dict[str, jax.Array]


class Ground(NamedTuple):
    """A grid that agents walk on, whose observations begin with their row and column."""

    grid: tuple[int, int]  # (rows, columns)
    view: tuple[int, int]  # (rows, columns) of an agent's window


class Environment(abc.ABC, Generic[LayoutT, StateT, DrawsT]):
    """A cooperative world with a fixed number of agents, discrete actions and a step limit.

    Agents with fewer actions or shorter observations than others have both filled up, and the extra actions forbidden.
    """

    id: str
    num_agents: int
    episode_limit: int
    action_names: tuple[str, ...]

    # What follows are facts that the rest of the program reads off a world.
    family: ClassVar[str] = "other environments"  # worlds that differ in size alone have the same
    acts_as_one: ClassVar[bool] = False  # whether agents share weights and learn from the team's reward by default
    # settings that suit this world, by preset: {"recommended": {"exploration": "epsilon-z-greedy"}}; they reach
    # whichever method has values of actions, and has the setting
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = MappingProxyType({})
    # who draws it: a class derived from `draw.painter.Painter`, or where to find one, as module:Class
    painter: ClassVar[str | type | None] = None

    @property
    def num_actions(self) -> int:
        """How many actions an agent has."""
        return len(self.action_names)

    @property
    def masks_actions(self) -> bool:
        """Whether actions can be forbidden; where they cannot, programs know nothing of masks."""
        return False

    def allowed_actions(self, state: StateT) -> jax.Array:
        """Return what every agent may do: bool [agent, action]; nothing at all for an agent that is absent."""
        del state
        return jnp.ones((self.num_agents, self.num_actions), bool)

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
        """Ways to turn it around that leave it the same; none unless it says so."""
        return ()

    @property
    def ground(self) -> Ground | None:
        """The grid, where observations tell an agent's place on one."""
        return None

    @property
    def num_places(self) -> int:
        """How many places there are to look at; 0 where observations do not tell which are in view."""
        return 0

    def places_in_view(self, codes: jax.Array) -> jax.Array:
        """Return which places observations show: codes [..., code] → bool [..., place]."""
        return jnp.zeros((*codes.shape[:-1], 0), bool)

    @cached_property
    def observation_dtype(self) -> np.dtype[Any]:
        """The smallest unsigned type that holds every code."""
        return np.dtype(np.min_scalar_type(int(self.observation_limit.max())))

    @abc.abstractmethod
    def generate_layout(self, key: jax.Array) -> LayoutT:
        """Draw where everything starts."""

    def layout_from(self, description: Mapping[str, Any]) -> LayoutT:  # noqa: ARG002
        """Check a start that somebody wrote down and turn it into a layout."""
        raise UsageError(f"{self.id} begins at random: it does not take a layout that was written down.")

    @abc.abstractmethod
    def begin(self, layout: LayoutT) -> StateT:
        """Return the first state of an episode on this layout."""

    @abc.abstractmethod
    def draw(self, key: jax.Array) -> DrawsT:
        """Draw the chances of one step."""

    def draws_from(self, recording: Mapping[str, Any]) -> DrawsT:  # noqa: ARG002
        """Check recorded chances of a whole episode and stack them along a first axis of steps."""
        raise UsageError(f"{self.id} draws nothing at random inside a step, so it takes no recorded draws.")

    @abc.abstractmethod
    def advance(self, state: StateT, actions: jax.Array, draws: DrawsT) -> tuple[StateT, Outcome]:
        """Carry out one step under the given chances."""

    @abc.abstractmethod
    def observe(self, state: StateT) -> jax.Array:
        """Return what every agent sees, as codes: unsigned [agent, code]."""

    @abc.abstractmethod
    def counters(self, state: StateT) -> Counters:
        """Return what has been achieved so far."""

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """What its counters are, in the order in which a reader wants them; by default what their names tell."""
        counted = jax.eval_shape(lambda: self.counters(self.reset(jax.random.key(0))))
        return tuple(Metric(name) for name in (*counted.per_agent, *counted.team))

    def reset(self, key: jax.Array) -> StateT:
        """Begin an episode on a random layout."""
        return self.begin(self.generate_layout(key))

    def step(self, key: jax.Array, state: StateT, actions: jax.Array) -> tuple[StateT, Outcome]:
        """Carry out one step with chances from `key`."""
        return self.advance(state, actions, self.draw(key))


AnyEnvironment = Environment[Any, Any, Any]
