"""Ways to count how often an agent met an observation, by name: n in Eq. 1, 6 and 7.

A way to count is a frozen dataclass of pure functions; its counts are its state. The exact table is the paper's.
Others, such as pseudo-counts where observations are never met twice, are separate classes: see
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
        """Return the initial state, with room for about this many observations."""

    @abc.abstractmethod
    def marks(self, codes: jax.Array) -> jax.Array:
        """Return the marks that identify observations [..., code] in counts: [..., mark]."""

    @abc.abstractmethod
    def count(self, state: Any, marks: jax.Array, seats: jax.Array, amounts: jax.Array) -> tuple[Any, jax.Array]:
        """Add visits [...] of agents, by seat [...], to these marks; return the new counts."""

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

    def with_room(self, state: Any, num_visits: int) -> Any:
        """Return the state with room for this many more visits (outside compiled code)."""
        del num_visits
        return state

    def check(self, state: Any) -> None:  # noqa: B027
        """Raise an error if the counts are no longer correct (outside compiled code)."""


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
        """Look up the counts."""
        return lookup(state, of_agent(marks, seats))

    def report(self, state: CountTable) -> dict[str, jax.Array]:
        """Return how full the table is, and how many visits were lost."""
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
        """Enlarge the table if this many visits might fill it."""
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
    """Register a way to count under a name, for `--share.counting NAME`.

    `kind` is a frozen dataclass derived from `Counting` whose fields all have defaults.
    """
    check_record(f"the way to count {name!r}", kind, Counting)
    COUNTINGS.add(name, kind, home_of(kind))


register_counting("exact", ExactCounting)
