"""The interface between the training loop and any learner.

A learner is a frozen, hashable dataclass of settings whose methods are pure. It acts for the whole team at once, which
suits methods with communication as well as independent ones. Its state is any pytree, so it can hold mixers, critics
and further networks. It receives whole episodes of all agents, so agents can also learn from each other's episodes.
Learners without replay set `is_on_policy` and receive the episodes just played. Decisions of a team for a whole
episode, such as the strategy that it follows, are stored with the episode as its `notes`.

Axes: `[agent, env, …]` when acting, `[agent, episode, step, …]` when learning. If actions have several dimensions
(`TeamSpec.num_branches`), actions have a last axis of branches; scores and masks have one before their action axis.
"""

import abc
import enum
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from consmarl.environments.interface import Ground
from consmarl.errors import UsageError
from consmarl.metrics import Metric
from consmarl.records import settle

ParametersT = TypeVar("ParametersT")
StateT = TypeVar("StateT")
MemoryT = TypeVar("MemoryT")

Metrics = dict[str, jax.Array]


class HasTeam(Protocol):
    """Any environment that a team can learn in."""

    @property
    def num_agents(self) -> int:
        """Number of agents."""

    @property
    def num_actions(self) -> int:
        """Number of actions of each agent."""

    @property
    def observation_scale(self) -> NDArray[np.float32]:
        """Factors that turn codes into observations."""


@dataclass(frozen=True)
class TeamSpec:
    """The properties of an environment that a learner needs."""

    num_agents: int
    num_actions: int
    observation_scale: tuple[float, ...]
    ground: Ground | None = None  # if observations contain an agent's position
    num_branches: int = 1  # dimensions of an action, each with `num_actions` choices

    def __post_init__(self) -> None:
        """Convert values to their types."""
        settle(self)

    @classmethod
    def of(cls, world: HasTeam) -> "TeamSpec":
        """Read the specification from an environment."""
        scale = tuple(world.observation_scale.tolist())
        ground, num_branches = getattr(world, "ground", None), getattr(world, "num_branches", 1)
        return cls(world.num_agents, world.num_actions, scale, ground, num_branches)

    @property
    def observation_size(self) -> int:
        """The length of one agent's observation."""
        return len(self.observation_scale)

    def observations(self, codes: jax.Array) -> jax.Array:
        """Turn codes into observations."""
        scale = np.array(self.observation_scale, np.float32)
        return codes.astype(jnp.float32) * scale.reshape((1,) * (codes.ndim - 1) + (-1,))


class EpisodeBatch(NamedTuple):
    """Whole episodes of a team; rows from `num_steps` on are padding."""

    codes: jax.Array  # unsigned [agent, episode, step + 1, code]
    actions: jax.Array  # uint8 [agent, episode, step]
    rewards: jax.Array  # float32 [agent, episode, step]
    num_steps: jax.Array  # int32 [episode]
    terminated: jax.Array  # bool [episode]: whether the task was over, rather than the time
    epsilon: jax.Array  # float32 [episode, step], used for choosing actions
    notes: Any = ()  # [episode, …], data that the learner stores with an episode
    # bool [agent, episode, step + 1, action], all False where the agent was absent; None if nothing is ever forbidden
    allowed: Any = None


BY_AGENT = ("codes", "actions", "rewards", "allowed")  # these have agents before episodes


def map_episodes(function: Callable[..., Any], *batches: EpisodeBatch) -> EpisodeBatch:
    """Apply a function of (index of the episode axis, a leaf of each batch) to all leaves."""
    return EpisodeBatch(
        *(
            jax.tree.map(functools.partial(function, int(name in BY_AGENT)), *(getattr(each, name) for each in batches))
            for name in EpisodeBatch._fields
        )
    )


class Scores(enum.Enum):
    """The meaning of the actions' scores."""

    VALUES = "values"  # action values, on which teammates can give advice
    LOGITS = "logits"  # logits of a policy to sample from


class Learner(abc.ABC, Generic[ParametersT, StateT, MemoryT]):
    """A method of learning."""

    spec: TeamSpec
    is_on_policy: bool = False
    handles_masks: ClassVar[bool] = False  # whether `update` uses `EpisodeBatch.allowed`
    handles_branches: ClassVar[bool] = False  # whether it can act and learn if actions have several dimensions
    scores: Scores = Scores.VALUES
    metrics: ClassVar[tuple[Metric, ...]] = ()  # the metrics that `update` returns, in display order

    def __post_init__(self) -> None:
        """Convert settings given as strings or dicts to their types."""
        settle(self)

    @abc.abstractmethod
    def init(self, key: jax.Array) -> StateT:
        """Return the initial state: weights, targets, optimiser, counts."""

    @abc.abstractmethod
    def parameters(self, state: StateT) -> ParametersT:
        """Return the parameters for acting during training."""

    def evaluated_parameters(self, state: StateT) -> ParametersT:
        """Return the parameters for evaluation and export."""
        return self.parameters(state)

    @abc.abstractmethod
    def begin(self, parameters: ParametersT, key: jax.Array, codes: jax.Array) -> MemoryT:
        """Return the team's memory at the start of episodes with first observations `codes`."""

    @abc.abstractmethod
    def act(
        self, parameters: ParametersT, memory: MemoryT, codes: jax.Array, last_actions: jax.Array, key: jax.Array
    ) -> tuple[MemoryT, jax.Array]:
        """Return the memory after this step and every action's score [agent, env, action]; higher is better."""

    @abc.abstractmethod
    def update(self, state: StateT, batch: EpisodeBatch, key: jax.Array) -> tuple[StateT, Metrics]:
        """Learn from a batch once; return the new state and metrics."""

    def having_learned(self, state: StateT, parameters: ParametersT) -> StateT:
        """Return an initial state whose agents act with parameters that were learned elsewhere."""
        del state, parameters
        raise UsageError("this method cannot begin with networks that were learned elsewhere.")

    def with_agents(self, state: StateT, other: StateT, is_other: NDArray[np.bool_]) -> StateT:
        """Return a state in which some agents, bool [agent], have the networks of another state."""
        del state, other, is_other
        raise UsageError("this method has no networks of the agents' own, so none of them can be replaced.")

    def notes(self, memory: MemoryT) -> Any:
        """Return the data to store with the episodes that ended with this memory: [env, …]."""
        del memory
        return ()


AnyLearner = Learner[Any, Any, Any]
