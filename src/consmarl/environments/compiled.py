"""JAX environments from other packages, adapted to our `Environment` interface for the compiled loop.

A `Game` adapts a package's functions to arrays, and `CompiledWorld` turns a `Game` into an `Environment`. Observations
are flattened to float32 and stored unscaled. Shorter observations are padded with zeros, and agents with fewer actions
than others get additional forbidden ones.

Axes: `[agent]`, `[agent, code]`, `[agent, action]`.
"""

import abc
import contextlib
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from consmarl.environments import validation
from consmarl.environments.actions import TeamActions, checked_bins
from consmarl.environments.interface import Counters, Environment, Outcome
from consmarl.errors import UsageError, shown
from consmarl.metrics import Metric

MOST_SEEN = 10_000  # numbers in one agent's observation; anything larger is a picture
WORD = re.compile(r"[\w.+|-]*")  # permitted text settings: never a path, whether from a user or from a file

Setting = bool | int | float | str | tuple[Any, ...]


class Seen(NamedTuple):
    """The agents' observations and action masks."""

    codes: list[jax.Array]  # float32 [code], one per agent
    allowed: list[jax.Array] | None  # bool [action], one per agent; None if the package has no masks


class Stepped(NamedTuple):
    """The result of one step of a package's environment."""

    state: Any  # the package's
    seen: Seen
    rewards: jax.Array  # float32 [agent]
    is_over: jax.Array  # bool
    terminated: jax.Array  # bool, whether it ended because the task was over


class Game(abc.ABC):
    """An environment of another package, with its inputs and outputs as arrays."""

    num_agents: int
    actions: TeamActions
    action_names: tuple[str, ...] | None = None  # None if the package does not name them
    own_limit: int | None = None  # steps after which the package itself ends an episode

    @cached_property
    def seen_at_first(self) -> Seen:
        """The shapes and types of observations and masks."""
        with as_its_authors_meant():
            seen: Seen = jax.eval_shape(self.reset, jax.ShapeDtypeStruct((2,), jnp.uint32))[1]
        return seen

    @abc.abstractmethod
    def reset(self, key: jax.Array) -> tuple[Any, Seen]:
        """Start an episode and return its state and observations; the key is uint32 [2], which all packages accept."""

    @abc.abstractmethod
    def step(self, key: jax.Array, state: Any, actions: jax.Array, num_steps: jax.Array) -> Stepped:
        """Perform one step; `num_steps` steps came before it."""

    def pictures(self, states: Sequence[Any]) -> Iterator[NDArray[np.uint8]] | None:
        """Yield the package's pictures of states, uint8 [row, column, RGB]; return None if it cannot draw them."""
        del states
        return None


class CompiledState(NamedTuple):
    """A package's state, with the agents' observations and masks."""

    inner: Any  # the package's state
    codes: jax.Array  # float32 [agent, code]
    allowed: Any  # bool [agent, action]; () if no action is ever forbidden
    num_steps: jax.Array  # int32


@dataclass(frozen=True)
class CompiledWorld(Environment[CompiledState, CompiledState, jax.Array]):
    """An environment of another package, defined by id, settings and the package's version; see `world_of`."""

    id: str
    settings: tuple[tuple[str, Setting], ...]
    version: str  # another version of the package needs another compiled program
    limit: int | None = None  # our own limit on the number of steps
    bins: int | None = None  # number of bins for each dimension of continuous actions; None for the default

    family: ClassVar[str] = "other packages"

    def __post_init__(self) -> None:
        """Refuse environments that cannot be learned in."""
        game = self.game
        game.actions.check(self.id, self.bins)
        if game.seen_at_first.allowed is not None and any(each.shape is not None for each in game.actions.of_agents):
            raise UsageError(f"{self.id} forbids actions that are not Discrete, and masks are read for Discrete ones.")
        if self.observation_size > MOST_SEEN:
            raise UsageError(
                f"{self.id} shows every agent {self.observation_size:,} numbers, which are pictures rather than "
                f"features, and there is no network for pictures here: choose one with at most {MOST_SEEN:,}."
            )
        if self.limit is None and game.own_limit is None:
            raise UsageError(f"{self.id} does not say how long its episodes last: say it with --set episode_limit=100.")

    @property
    @abc.abstractmethod
    def game(self) -> Game:
        """The package's environment for this id and these settings; equal instances share one."""

    @property
    def num_agents(self) -> int:  # type: ignore[override]
        """Number of agents."""
        return self.game.num_agents

    @property
    def episode_limit(self) -> int:  # type: ignore[override]
        """The largest number of steps in an episode."""
        both = [each for each in (self.limit, self.game.own_limit) if each is not None]
        return min(both)

    @property
    def action_names(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names of the actions: the package's, or numbers."""
        return self.game.action_names or self.game.actions.names[0]

    @property
    def num_branches(self) -> int:
        """Number of dimensions of an action."""
        return self.game.actions.num_branches

    @property
    def choice_names(self) -> tuple[tuple[str, ...], ...]:
        """Names of the choices in every dimension of an action."""
        return self.game.actions.names if self.num_branches > 1 else (self.action_names,)

    @cached_property
    def observation_size(self) -> int:
        """The length of the longest observation."""
        return max(each.shape[0] for each in self.game.seen_at_first.codes)

    @cached_property
    def observation_scale(self) -> NDArray[np.float32]:
        """Ones: observations are floats."""
        return np.ones(self.observation_size, np.float32)

    @property
    def observation_limit(self) -> NDArray[np.int64]:
        """Zeros: observations are floats, not codes, and have no largest value."""
        return np.zeros(self.observation_size, np.int64)

    @cached_property
    def observation_dtype(self) -> np.dtype[Any]:
        """float32, regardless of the package's own type."""
        return np.dtype(np.float32)

    @cached_property
    def masks_actions(self) -> bool:
        """Whether the package has masks, or the number of choices differs between agents or dimensions."""
        return self.game.seen_at_first.allowed is not None or not bool(self.game.actions.exists.all())

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """An empty tuple: there are no counters."""
        return ()

    def generate_layout(self, key: jax.Array) -> CompiledState:
        """Start an episode in the package and return its first state."""
        with as_its_authors_meant():
            inner, seen = self.game.reset(jax.random.key_data(key))
        return self._state(inner, seen, jnp.zeros((), jnp.int32))

    def begin(self, layout: CompiledState) -> CompiledState:
        """Return the layout, which already is the first state."""
        return layout

    def draw(self, key: jax.Array) -> jax.Array:
        """Return the raw key with which the package draws its random numbers."""
        return jax.random.key_data(key)

    def advance(self, state: CompiledState, actions: jax.Array, draws: jax.Array) -> tuple[CompiledState, Outcome]:
        """Perform one step in the package."""
        with as_its_authors_meant():
            stepped = self.game.step(draws, state.inner, actions, state.num_steps)
        num_steps = state.num_steps + 1
        is_late = num_steps >= self.episode_limit
        outcome = Outcome(
            rewards=stepped.rewards.astype(jnp.float32),
            terminated=stepped.terminated,
            truncated=(stepped.is_over | is_late) & ~stepped.terminated,
        )
        return self._state(stepped.state, stepped.seen, num_steps), outcome

    def observe(self, state: CompiledState) -> jax.Array:
        """Return every agent's observation: float32 [agent, code]."""
        return state.codes

    def allowed_actions(self, state: CompiledState) -> jax.Array:
        """Return every agent's allowed actions: bool [agent, …, action]."""
        return state.allowed if self.masks_actions else super().allowed_actions(state)

    def counters(self, state: CompiledState) -> Counters:
        """Return no counters."""
        del state
        return Counters({}, {})

    def _state(self, inner: Any, seen: Seen, num_steps: jax.Array) -> CompiledState:
        codes = jnp.stack([_filled(each.astype(jnp.float32), self.observation_size) for each in seen.codes])
        allowed: Any = ()
        if self.masks_actions:
            allowed = self._allowed(seen)
        return CompiledState(jax.tree.map(_settled, inner), codes, allowed, num_steps)

    def _allowed(self, seen: Seen) -> jax.Array:
        if self.num_branches > 1:
            return jnp.asarray(self.game.actions.exists)
        own = seen.allowed or [jnp.ones(each.counts[0], bool) for each in self.game.actions.of_agents]
        return jnp.stack([_filled(each.astype(bool), self.num_actions) for each in own])


def _filled(row: jax.Array, length: int) -> jax.Array:
    """Pad a row with zeros; in a mask, they forbid the extra actions."""
    return jnp.concatenate([row, jnp.zeros(length - len(row), row.dtype)])


def _settled(leaf: Any) -> jax.Array:
    """Return an array whose type is not weak, so that the type is the same in every step of a compiled loop."""
    array = jnp.asarray(leaf)
    return jax.lax.convert_element_type(array, array.dtype)


def flattened(observation: Any) -> jax.Array:
    """Return all numbers of an observation, any pytree of arrays, in one row: float32 [code]."""
    rows = [jnp.ravel(leaf).astype(jnp.float32) for leaf in jax.tree.leaves(observation)]
    return jnp.concatenate(rows)


@contextlib.contextmanager
def as_its_authors_meant() -> Iterator[None]:
    """Run another package's code with NumPy's rank promotion allowed and its warnings suppressed."""
    with warnings.catch_warnings(), jax.numpy_rank_promotion("allow"):
        warnings.simplefilter("ignore")
        yield


def checked_settings(id: str, settings: Mapping[str, Any]) -> tuple[tuple[str, Setting], ...]:
    """Return settings sorted by name; only numbers and words pass, so that a file cannot name paths or programs."""
    for name, value in settings.items():
        if not _is_plain(value):
            raise UsageError(f"{id} takes numbers and words as settings, and {name} is {shown(value)}.")
    return tuple(sorted(settings.items()))


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_plain, value))
    return isinstance(value, bool | int | float) or (isinstance(value, str) and WORD.fullmatch(value) is not None)


def world_of(kind: type[CompiledWorld], id: str, settings: Mapping[str, Any], version: str) -> CompiledWorld:
    """Return an environment of another package; `episode_limit` and `action_bins` are ours and not passed to it."""
    own = dict(settings)
    bins = checked_bins(own.pop("action_bins", None))
    limit = own.pop("episode_limit", None)
    if limit is not None:
        limit = validation.whole_number("episode_limit", limit, least=1)
    return kind(str(id), checked_settings(id, own), version, limit, bins)


def made(id: str, make: Callable[..., Any], settings: Mapping[str, Any]) -> Any:
    """Return the environment that a package's `make` builds; its errors about settings become a `UsageError`."""
    try:
        with as_its_authors_meant():
            return make(**settings)
    except (TypeError, ValueError, AssertionError, KeyError, AttributeError, ImportError) as error:
        reason = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        raise UsageError(f"{id} cannot be made with {dict(settings)}: {reason}.") from error
