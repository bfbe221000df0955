"""Environments of other packages that are written in JAX, as worlds of the compiled loop.

A package is a `Game`: what its functions take and give, brought into arrays. `CompiledWorld` makes one of our worlds of
it. Observations are float32, flattened, and stored as they are: their scale is 1. Agents that see less or have fewer
actions than others are filled up to the largest, with zeros and with forbidden actions.

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

MOST_SEEN = 10_000  # numbers in one agent's observation: what is larger are pictures
WORD = re.compile(r"[\w.+|-]*")  # of a setting: no path, whoever wrote it

Setting = bool | int | float | str | tuple[Any, ...]


class Seen(NamedTuple):
    """What agents see and may do."""

    codes: list[jax.Array]  # float32 [code], of every agent
    allowed: list[jax.Array] | None  # bool [action], of every agent; None where the package has no masks


class Stepped(NamedTuple):
    """What one step of a package's environment brought."""

    state: Any  # the package's
    seen: Seen
    rewards: jax.Array  # float32 [agent]
    is_over: jax.Array  # bool
    terminated: jax.Array  # bool, because the task was over


class Game(abc.ABC):
    """An environment of another package."""

    num_agents: int
    actions: TeamActions
    action_names: tuple[str, ...] | None = None  # where the package tells them
    own_limit: int | None = None  # steps after which it ends an episode itself

    @cached_property
    def seen_at_first(self) -> Seen:
        """The shapes of what agents see and may do."""
        with as_its_authors_meant():
            seen: Seen = jax.eval_shape(self.reset, jax.ShapeDtypeStruct((2,), jnp.uint32))[1]
        return seen

    @abc.abstractmethod
    def reset(self, key: jax.Array) -> tuple[Any, Seen]:
        """Begin an episode; a key is uint32 [2], which every package takes."""

    @abc.abstractmethod
    def step(self, key: jax.Array, state: Any, actions: jax.Array, num_steps: jax.Array) -> Stepped:
        """Carry out a step, `num_steps` having come before it."""

    def pictures(self, states: Sequence[Any]) -> Iterator[NDArray[np.uint8]] | None:
        """Draw states as the package does, uint8 [row, column, RGB]; None where it does not."""
        del states
        return None


class CompiledState(NamedTuple):
    """A package's state, and what agents see and may do in it."""

    inner: Any
    codes: jax.Array  # float32 [agent, code]
    allowed: Any  # bool [agent, action]; () where nothing is forbidden
    num_steps: jax.Array  # int32


@dataclass(frozen=True)
class CompiledWorld(Environment[CompiledState, CompiledState, jax.Array]):
    """A world of another package, told by its id, its settings and the package's version; see `world_of`."""

    id: str
    settings: tuple[tuple[str, Setting], ...]
    version: str  # another version of the package makes another program
    limit: int | None = None  # ours, on the number of steps
    bins: int | None = None  # ours, into which continuous actions are divided; None for the usual number

    family: ClassVar[str] = "other packages"

    def __post_init__(self) -> None:
        """Find out at once whether it can be learned in."""
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
        """What the package makes of id and settings; made once, however many worlds are equal to this one."""

    @property
    def num_agents(self) -> int:  # type: ignore[override]
        """How many agents there are."""
        return self.game.num_agents

    @property
    def episode_limit(self) -> int:  # type: ignore[override]
        """The largest number of steps in an episode."""
        both = [each for each in (self.limit, self.game.own_limit) if each is not None]
        return min(both)

    @property
    def action_names(self) -> tuple[str, ...]:  # type: ignore[override]
        """What actions are called: as the package does, or by numbers."""
        return self.game.action_names or self.game.actions.names[0]

    @property
    def num_branches(self) -> int:
        """How many dimensions an action has."""
        return self.game.actions.num_branches

    @property
    def choice_names(self) -> tuple[tuple[str, ...], ...]:
        """What choices are called in every dimension of an action."""
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
        """Zeros: floats are no codes, and have no largest one."""
        return np.zeros(self.observation_size, np.int64)

    @cached_property
    def observation_dtype(self) -> np.dtype[Any]:
        """Floats, whatever the package calls them."""
        return np.dtype(np.float32)

    @cached_property
    def masks_actions(self) -> bool:
        """Whether the package has masks, or agents or dimensions have different numbers of choices."""
        return self.game.seen_at_first.allowed is not None or not bool(self.game.actions.exists.all())

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """It has no counters."""
        return ()

    def generate_layout(self, key: jax.Array) -> CompiledState:
        """Let the package begin an episode."""
        with as_its_authors_meant():
            inner, seen = self.game.reset(jax.random.key_data(key))
        return self._state(inner, seen, jnp.zeros((), jnp.int32))

    def begin(self, layout: CompiledState) -> CompiledState:
        """Return the first state, which is all that the package tells of a start."""
        return layout

    def draw(self, key: jax.Array) -> jax.Array:
        """Return a key for the package to draw with."""
        return jax.random.key_data(key)

    def advance(self, state: CompiledState, actions: jax.Array, draws: jax.Array) -> tuple[CompiledState, Outcome]:
        """Let the package carry out a step."""
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
        """Return what every agent sees: float32 [agent, code]."""
        return state.codes

    def allowed_actions(self, state: CompiledState) -> jax.Array:
        """Return what every agent may do."""
        return state.allowed if self.masks_actions else super().allowed_actions(state)

    def counters(self, state: CompiledState) -> Counters:
        """Nothing is counted."""
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
    """Fill up with zeros, which forbid where they say what is allowed."""
    return jnp.concatenate([row, jnp.zeros(length - len(row), row.dtype)])


def _settled(leaf: Any) -> jax.Array:
    """Return an array of the very same type in every step, as a loop in compiled code needs it."""
    array = jnp.asarray(leaf)
    return jax.lax.convert_element_type(array, array.dtype)


def flattened(observation: Any) -> jax.Array:
    """Return all numbers of an observation in one row, whatever it is made of."""
    rows = [jnp.ravel(leaf).astype(jnp.float32) for leaf in jax.tree.leaves(observation)]
    return jnp.concatenate(rows)


@contextlib.contextmanager
def as_its_authors_meant() -> Iterator[None]:
    """Let others' code broadcast as NumPy does, and keep what it warns its own authors of to itself."""
    with warnings.catch_warnings(), jax.numpy_rank_promotion("allow"):
        warnings.simplefilter("ignore")
        yield


def checked_settings(id: str, settings: Mapping[str, Any]) -> tuple[tuple[str, Setting], ...]:
    """Return settings in order, all of them numbers and words: those of a file must not name paths or programs."""
    for name, value in settings.items():
        if not _is_plain(value):
            raise UsageError(f"{id} takes numbers and words as settings, and {name} is {shown(value)}.")
    return tuple(sorted(settings.items()))


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_plain, value))
    return isinstance(value, bool | int | float) or (isinstance(value, str) and WORD.fullmatch(value) is not None)


def world_of(kind: type[CompiledWorld], id: str, settings: Mapping[str, Any], version: str) -> CompiledWorld:
    """Return a world of another package; `episode_limit` and `action_bins` among its settings are ours."""
    own = dict(settings)
    bins = checked_bins(own.pop("action_bins", None))
    limit = own.pop("episode_limit", None)
    if limit is not None:
        limit = validation.whole_number("episode_limit", limit, least=1)
    return kind(str(id), checked_settings(id, own), version, limit, bins)


def made(id: str, make: Callable[..., Any], settings: Mapping[str, Any]) -> Any:
    """Let a package make an environment; what it has against the settings becomes a sentence."""
    try:
        with as_its_authors_meant():
            return make(**settings)
    except (TypeError, ValueError, AssertionError, KeyError, AttributeError, ImportError) as error:
        reason = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        raise UsageError(f"{id} cannot be made with {dict(settings)}: {reason}.") from error
