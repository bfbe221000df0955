"""Counts of a team's visits outside compiled code: exact for any observations, or by another way to count numbers."""

import abc
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from consmarl.errors import UsageError
from consmarl.sharing.counting import EXACT, Counting
from consmarl.sharing.mechanism import Mechanism
from consmarl.sharing.visits import Visits

Observations = Sequence[ArrayLike] | NDArray[Any]  # one per agent
FIRST_PLACES = 1 << 12  # initial size of a table of counts, which grows


class Tally(abc.ABC):
    """Counts of how often each agent of a team has met observations."""

    @abc.abstractmethod
    def add(self, observations: Observations, is_there: NDArray[np.bool_]) -> NDArray[np.int32]:
        """Count the observations of agents that are present, and return their counts [agent]."""

    @abc.abstractmethod
    def counts(self, observation: ArrayLike) -> NDArray[np.int32]:
        """Return how often each agent met an observation: [agent]."""

    @abc.abstractmethod
    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return all counts as arrays, by name."""

    def check(self, observations: Observations) -> None:  # noqa: B027
        """Raise an error if these observations cannot be counted."""


class ExactTally(Tally):
    """Exact counts, by the observations' bytes."""

    def __init__(self, visits: list[Visits]) -> None:
        """Start with these counts, one for each agent."""
        self.visits = visits

    @classmethod
    def empty(cls, num_agents: int) -> Self:
        """Return empty counts."""
        return cls([Visits() for _ in range(num_agents)])

    def add(self, observations: Observations, is_there: NDArray[np.bool_]) -> NDArray[np.int32]:
        """Count each agent's own observation."""
        rows = zip(self.visits, observations, is_there, strict=True)
        return np.array([mine.add(each) if there else mine.count(each) for mine, each, there in rows], np.int32)

    def counts(self, observation: ArrayLike) -> NDArray[np.int32]:
        """Return every agent's count of the observation."""
        return np.array([mine.count(observation) for mine in self.visits], np.int32)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return every agent's counts."""
        return {
            f"{agent}.{part}": rows for agent, mine in enumerate(self.visits) for part, rows in mine.to_arrays().items()
        }

    @classmethod
    def from_arrays(cls, num_agents: int, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return counts from the arrays that `to_arrays` returned."""
        return cls(
            [
                Visits.from_arrays({part: arrays[f"{agent}.{part}"] for part in Visits.PARTS})
                for agent in range(num_agents)
            ]
        )

    @property
    def is_empty(self) -> bool:
        """Whether no agent has any visits."""
        return not any(len(mine.to_arrays()["counts"]) for mine in self.visits)


class CountingTally(Tally):
    """The compiled loop's way to count. Shorter observations are padded with zeros, as in the compiled loop."""

    ABOUT: ClassVar = "about"  # the array's name: [length of observations, whether they are floats]

    def __init__(self, mechanism: Mechanism, num_agents: int, is_float: bool) -> None:
        """Start empty; the mechanism knows the length of observations."""
        self._counter, self._size, self._is_float = mechanism.counter, mechanism.observation_size, is_float
        self._agents = jnp.arange(num_agents)
        self._state = self._counter.init(FIRST_PLACES, num_agents, self._size)

    def add(self, observations: Observations, is_there: NDArray[np.bool_]) -> NDArray[np.int32]:
        """Count all observations in one call."""
        state = self._counter.with_room(self._state, len(self._agents))
        amounts = is_there.astype(np.int32)
        self._state, counts = _counted(self._counter, state, self._rows(observations), self._agents, amounts)
        return np.asarray(counts)

    def counts(self, observation: ArrayLike) -> NDArray[np.int32]:
        """Return every agent's count of the observation."""
        rows = np.repeat(self._rows([observation]), len(self._agents), axis=0)
        return np.asarray(_looked_up(self._counter, self._state, rows, self._agents))

    def check(self, observations: Observations) -> None:
        """Refuse observations that are longer than the longest of the first step."""
        longest = max(np.size(each) for each in observations)
        if longest > self._size:
            raise UsageError(
                f"an observation has {longest} numbers, and in the first step none had more than {self._size}: "
                "fill up shorter ones with zeros."
            )

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the state, by the names of its leaves."""
        leaves = {name: np.asarray(leaf) for name, leaf in _named(self._state).items()}
        return {self.ABOUT: np.array([self._size, self._is_float])} | leaves

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Continue from the arrays that `to_arrays` returned."""
        known = _named(self._state)
        for name, leaf in known.items():
            if name not in arrays or not _is_like(arrays[name], leaf):
                raise UsageError(f"the state has no counts like these ({name}): it is of another way to count.")
        leaves = [jnp.asarray(arrays[name]) for name in known]
        self._state = jax.tree.unflatten(jax.tree.structure(self._state), leaves)

    def _rows(self, observations: Observations) -> NDArray[Any]:
        rows = np.zeros((len(observations), self._size), np.float32 if self._is_float else np.int32)
        for row, each in zip(rows, observations, strict=True):
            numbers = np.ravel(each)
            row[: len(numbers)] = numbers
        return rows


def fitting_tally(mechanism: Mechanism, num_agents: int, observations: Observations) -> Tally:
    """Return an empty tally for observations like these, of which there is one per agent."""
    arrays = [np.asarray(each) for each in observations]
    size, dtype = max(each.size for each in arrays), np.result_type(*arrays)
    return tally_for(mechanism, num_agents, size, is_float=bool(np.issubdtype(dtype, np.floating)))


def tally_for(mechanism: Mechanism, num_agents: int, size: int, *, is_float: bool) -> Tally:
    """Return an empty tally for observations of this length."""
    fitted = mechanism.for_observations(size, np.float32 if is_float else np.int32)
    if fitted.counting_kind == EXACT:
        return ExactTally.empty(num_agents)
    return CountingTally(fitted, num_agents, is_float)


def _is_like(there: NDArray[Any], leaf: Any) -> bool:
    """Return whether an array has the leaf's type and shape, except for the first axis, along which tables grow."""
    return there.ndim == leaf.ndim and there.shape[1:] == leaf.shape[1:] and bool(there.dtype == leaf.dtype)


def _named(state: Any) -> dict[str, Any]:
    return {jax.tree_util.keystr(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(state)}


@partial(jax.jit, static_argnums=0, donate_argnums=1)
def _counted(counter: Counting, state: Any, rows: Any, agents: Any, amounts: Any) -> tuple[Any, jax.Array]:
    return counter.count(state, counter.marks(rows), agents, amounts)


@partial(jax.jit, static_argnums=0)
def _looked_up(counter: Counting, state: Any, rows: Any, agents: Any) -> jax.Array:
    return counter.lookup(state, counter.marks(rows), agents)
