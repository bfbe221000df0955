"""Ways to count how often an agent met an observation, by name: n of Eq. 1, 6 and 7.

A way to count is a frozen record of pure functions; what it has counted is its state. The exact table is the paper's.
Another one, such as pseudo-counts where observations are never met twice, is a class of its own: see
`register_counting`.

Axes: `[..., code]` for observations, `[...]` for counts.
"""

import abc
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax

from consmarl.errors import UsageError
from consmarl.registry import Registry, check_record, home_of
from consmarl.sharing.counters import CountTable, count, empty_table, grown, has_room_for, lookup
from consmarl.sharing.fingerprints import fingerprint, of_agent


class Counting(abc.ABC):
    """A way to count visits."""

    @abc.abstractmethod
    def init(self, num_places: int) -> Any:
        """Return the state before anything was met, with room for about so many observations at first."""

    @abc.abstractmethod
    def marks(self, codes: jax.Array) -> jax.Array:
        """Return what observations [..., code] are counted by: [..., mark]."""

    @abc.abstractmethod
    def count(self, state: Any, marks: jax.Array, seats: jax.Array, amounts: jax.Array) -> tuple[Any, jax.Array]:
        """Add visits [...] of agents, by their seats [...], to what has these marks; return the counts after that."""

    @abc.abstractmethod
    def lookup(self, state: Any, marks: jax.Array, seats: jax.Array) -> jax.Array:
        """Return how often agents met what has these marks: [...]."""

    def report(self, state: Any) -> dict[str, jax.Array]:
        """Return what is worth reporting, with the names of `ExactCounting.report`."""
        del state
        return {}

    def facts(self, state: Any) -> dict[str, Any]:
        """Return what has to be known of a state before it can be read back: sizes that change in a run."""
        del state
        return {}

    def sized(self, state: Any, facts: Mapping[str, Any]) -> Any:
        """Return a first state of the size that `facts` tell."""
        del facts
        return state

    def with_room(self, state: Any, num_visits: int) -> Any:
        """Return the state with room for so many further visits (outside compiled code)."""
        del num_visits
        return state

    def check(self, state: Any) -> None:  # noqa: B027
        """Raise an error if counts are no longer right (outside compiled code)."""


@dataclass(frozen=True)
class ExactCounting(Counting):
    """An exact table (the paper)."""

    def init(self, num_places: int) -> CountTable:
        """Return an empty table."""
        return empty_table(num_places)

    def marks(self, codes: jax.Array) -> jax.Array:
        """Return fingerprints: [..., 2]."""
        return fingerprint(codes)

    def count(
        self, state: CountTable, marks: jax.Array, seats: jax.Array, amounts: jax.Array
    ) -> tuple[CountTable, jax.Array]:
        """Add visits to the table."""
        return count(state, of_agent(marks, seats), amounts)

    def lookup(self, state: CountTable, marks: jax.Array, seats: jax.Array) -> jax.Array:
        """Look keys up."""
        return lookup(state, of_agent(marks, seats))

    def report(self, state: CountTable) -> dict[str, jax.Array]:
        """Return how full the table is, and what found no place."""
        return {
            "num_observations": state.num_filled,
            "num_lost": state.num_lost,
            "table_fill": state.num_filled / state.num_places,
        }

    def facts(self, state: CountTable) -> dict[str, Any]:
        """Return the size of the table."""
        return {"table_places": state.num_places}

    def sized(self, state: CountTable, facts: Mapping[str, Any]) -> CountTable:
        """Return an empty table of another size."""
        return empty_table(facts["table_places"]) if "table_places" in facts else state

    def with_room(self, state: CountTable, num_visits: int) -> CountTable:
        """Enlarge the table where so many visits might fill it."""
        return state if has_room_for(state, num_visits) else grown(state, num_visits)

    def check(self, state: CountTable) -> None:
        """Raise an error if visits were lost."""
        if num_lost := int(state.num_lost):
            raise UsageError(
                f"{num_lost} visits found no place in a table of {state.num_places}, so counts are no longer "
                "right: call with_room before longer chunks."
            )


COUNTINGS: Registry[type[Counting]] = Registry("way to count")


def register_counting(name: str, kind: type[Counting]) -> None:
    """Make a way to count known by a name, `--share.counting NAME`.

    `kind` is a frozen dataclass derived from `Counting` whose fields all have defaults.
    """
    check_record(f"the way to count {name!r}", kind, Counting)
    COUNTINGS.add(name, kind, home_of(kind))


register_counting("exact", ExactCounting)
