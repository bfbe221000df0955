"""The interface of a way to count visits: n in Eq. 1, 6 and 7.

A way to count is a frozen dataclass of pure functions; its counts are its state, and its fields are its options.

Axes: `[..., code]` for observations, `[...]` for counts.
"""

import abc
from collections.abc import Mapping
from typing import Any

import jax

NEWCOMER = 2**20  # added to a newcomer's number to get its seat; larger than any number of agents


def agents_of(seats: jax.Array) -> jax.Array:
    """Return the agents' numbers, from 0, that belong to these seats."""
    return seats % NEWCOMER


class Counting(abc.ABC):
    """A way to count visits."""

    @abc.abstractmethod
    def init(self, num_places: int, num_agents: int, observation_size: int) -> Any:
        """Return the initial state, for observations of this length, with room for about `num_places` of them."""

    @abc.abstractmethod
    def marks(self, codes: jax.Array) -> jax.Array:
        """Return the marks that identify observations [..., code] in counts: [..., mark]."""

    @abc.abstractmethod
    def count(self, state: Any, marks: jax.Array, seats: jax.Array, amounts: jax.Array) -> tuple[Any, jax.Array]:
        """Add visits [...] of agents, by seat [...], to these marks; return the new state and counts [...]."""

    @abc.abstractmethod
    def lookup(self, state: Any, marks: jax.Array, seats: jax.Array) -> jax.Array:
        """Return how often agents met observations with these marks: [...]."""

    def report(self, state: Any) -> dict[str, jax.Array]:
        """Return metrics to report, with the names of `ExactCounting.report`."""
        del state
        return {}

    def facts(self, state: Any) -> dict[str, Any]:
        """Return facts needed to restore a state: sizes that change during a run."""
        del state
        return {}

    def sized(self, state: Any, facts: Mapping[str, Any]) -> Any:
        """Return an initial state of the size given by `facts`."""
        del facts
        return state

    def with_newcomers(self, state: Any, is_new: jax.Array) -> Any:
        """Return the state after agents, bool [agent], were replaced by others.

        If visits are counted by seat, nothing changes: newcomers have seats of their own.
        """
        del is_new
        return state

    def with_room(self, state: Any, num_visits: int) -> Any:
        """Return the state with room for this many more visits (outside compiled code)."""
        del num_visits
        return state

    def check(self, state: Any) -> None:  # noqa: B027
        """Raise an error if the counts are no longer correct (outside compiled code)."""
