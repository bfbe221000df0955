"""Ways to count how often an agent has met an observation, by name: n in Eq. 1, 6 and 7.

The exact table is the paper's. `simhash` and `codebook` are for observations that are never met twice;
docs/decisions/0016-counting-what-is-never-met-twice.md compares them. `register_counting` adds others.

Axes: `[..., code]` for observations, `[...]` for counts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from consmarl.errors import UsageError, nearest
from consmarl.options import OptionField, check_options, joined, option_names
from consmarl.registry import Registry, check_record, home_of
from consmarl.sharing import counters
from consmarl.sharing.codebook import CodebookCounting
from consmarl.sharing.counters import CountTable
from consmarl.sharing.counts import Counting as Counting
from consmarl.sharing.fingerprints import fingerprint, of_agent
from consmarl.sharing.simhash import SimHashCounting


@dataclass(frozen=True)
class ExactCounting(Counting):
    """An exact table (the paper): n is how often an agent met exactly this observation."""

    def init(self, num_places: int, num_agents: int, observation_size: int) -> CountTable:
        """Return an empty table."""
        del num_agents, observation_size
        return counters.empty_table(num_places)

    def marks(self, codes: jax.Array) -> jax.Array:
        """Return fingerprints: [..., 2]."""
        return fingerprint(codes)

    def count(
        self, state: CountTable, marks: jax.Array, seats: jax.Array, amounts: jax.Array
    ) -> tuple[CountTable, jax.Array]:
        """Add visits to the table."""
        return counters.count(state, of_agent(marks, seats), amounts)

    def lookup(self, state: CountTable, marks: jax.Array, seats: jax.Array) -> jax.Array:
        """Look up the counts."""
        return counters.lookup(state, of_agent(marks, seats))

    def report(self, state: CountTable) -> dict[str, jax.Array]:
        """Return how full the table is, and how many visits were lost."""
        return counters.report(state)

    def facts(self, state: CountTable) -> dict[str, Any]:
        """Return the size of the table."""
        return counters.facts(state)

    def sized(self, state: CountTable, facts: Mapping[str, Any]) -> CountTable:
        """Return an empty table of another size."""
        return counters.sized(state, facts)

    def with_room(self, state: CountTable, num_visits: int) -> CountTable:
        """Enlarge the table if this many visits might fill it."""
        return counters.with_room(state, num_visits)

    def check(self, state: CountTable) -> None:
        """Raise an error if visits were lost."""
        counters.check(state)


EXACT = "exact"
COUNTINGS: Registry[type[Counting]] = Registry("way to count")


def register_counting(name: str, kind: type[Counting]) -> None:
    """Register a way to count under a name, for `--share.counting NAME`.

    `kind` is a frozen dataclass derived from `Counting` whose fields all have defaults. They become options
    `--share.NAME`, described by the strings below them.
    """
    what = f"the way to count {name!r}"
    check_record(what, kind, Counting)
    check_options(what, kind)
    joined({each: other for each, other in COUNTINGS.items() if each != name} | {name: kind})
    COUNTINGS.add(name, kind, home_of(kind))


def counting_options() -> dict[str, OptionField]:
    """Return the options of all ways to count."""
    return joined(COUNTINGS)


def way_to_count(name: str, options: Mapping[str, Any]) -> Counting:
    """Return a way to count by its name and options."""
    kind = COUNTINGS.find(name)
    for option in options:
        if option not in option_names(kind):
            owners = counting_options()[option].owners if option in counting_options() else ()
            if owners:
                raise UsageError(f"{option} is an option of the way to count {' and '.join(owners)}, not of {name}.")
            raise UsageError(f"the way to count {name} has no option {option!r}: {nearest(option, option_names(kind))}")
    return kind(**options)


def usual_counting(dtype: Any) -> str:
    """Return the default way to count observations of this type; the same floats are hardly ever met twice."""
    return "codebook" if jnp.issubdtype(dtype, jnp.floating) else EXACT


register_counting(EXACT, ExactCounting)
register_counting("simhash", SimHashCounting)
register_counting("codebook", CodebookCounting)
