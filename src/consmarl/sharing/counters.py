"""How often each agent met each observation: an exact hash table inside compiled code.

The table uses open addressing with buckets of eight, whose keys fill a cache line: a key goes into the first free
place of its bucket, or into another bucket if that is full. Keys are never removed. The size is fixed within a
chunk. Between chunks, `has_room_for` checks whether the table can take the most keys that a chunk can add, and if not,
`grown` enlarges it. If a table fills up nevertheless, `num_lost` counts the lost visits, and the loop refuses to
continue.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from consmarl.errors import UsageError

BUCKET = 8  # places, of 8 bytes each
MAX_LOAD = 0.6  # of the places; above this, too many buckets would be full


class CountTable(NamedTuple):
    """Counts by key."""

    keys: jax.Array  # uint32 [bucket, place, 2], zeros where free
    counts: jax.Array  # int32 [bucket, place]
    num_filled: jax.Array  # int32
    num_lost: jax.Array  # int32, visits that found no place

    @property
    def num_places(self) -> int:
        """Number of places for keys."""
        return self.counts.size


class _Claiming(NamedTuple):
    """The progress of placing keys."""

    num_tries: jax.Array
    is_pending: jax.Array  # bool [key]
    found: "Found"
    table_keys: jax.Array
    num_new: jax.Array


class Found(NamedTuple):
    """The positions of keys."""

    bucket: jax.Array  # int32 [key]
    place: jax.Array  # int32 [key]
    is_there: jax.Array  # bool [key]


def empty_table(num_places: int) -> CountTable:
    """Return an empty table with room for at least this many keys."""
    num_buckets = 1 << max((num_places - 1) // BUCKET, 1).bit_length()
    return CountTable(
        keys=jnp.zeros((num_buckets, BUCKET, 2), jnp.uint32),
        counts=jnp.zeros((num_buckets, BUCKET), jnp.int32),
        num_filled=jnp.zeros((), jnp.int32),
        num_lost=jnp.zeros((), jnp.int32),
    )


def lookup(table: CountTable, keys: jax.Array) -> jax.Array:
    """Return how often keys [..., 2] were counted."""
    flat = keys.reshape(-1, 2)
    found = _find(table.keys, flat)
    counts = jnp.where(found.is_there, table.counts[found.bucket, found.place], 0)
    return counts.reshape(keys.shape[:-1])


def count(table: CountTable, keys: jax.Array, amounts: jax.Array) -> tuple[CountTable, jax.Array]:
    """Add amounts [...] to the counts of keys [..., 2]; return the table and the new counts.

    A key with amount 0 is neither added nor looked up: 0 is returned for it.
    """
    flat, flat_amounts = keys.reshape(-1, 2), amounts.reshape(-1).astype(jnp.int32)
    is_wanted = flat_amounts > 0
    table_keys, found, num_new = _claim(table.keys, flat, is_wanted)
    added = jnp.where(found.is_there, flat_amounts, 0)
    counts = table.counts.at[found.bucket, found.place].add(added)
    following = CountTable(
        table_keys,
        counts,
        table.num_filled + num_new,
        table.num_lost + jnp.sum(jnp.where(is_wanted & ~found.is_there, flat_amounts, 0)),
    )
    totals = jnp.where(found.is_there, counts[found.bucket, found.place], 0)
    return following, totals.reshape(amounts.shape)


def has_room_for(table: CountTable, num_new: int) -> bool:
    """Return whether the table stays below `MAX_LOAD` with this many more keys (outside compiled code)."""
    return int(table.num_filled) + num_new <= MAX_LOAD * table.num_places


def grown(table: CountTable, num_new: int) -> CountTable:
    """Return a table with the same counts and room for this many more keys; sizes grow by factors of four."""
    return _refilled(table, empty_table(places_for(table.num_places, int(table.num_filled) + num_new)))


def places_for(num_places: int, num_keys: int) -> int:
    """Return the size that a table of `num_places` grows to for this many keys."""
    while num_keys > MAX_LOAD * num_places:
        num_places *= 4
    return num_places


def with_room(table: CountTable, num_visits: int) -> CountTable:
    """Return a table with room for this many more visits: the same or a larger one (outside compiled code)."""
    return table if has_room_for(table, num_visits) else grown(table, num_visits)


def report(table: CountTable) -> dict[str, jax.Array]:
    """Return how full a table is, and how many visits were lost."""
    return {
        "num_observations": table.num_filled,
        "num_lost": table.num_lost,
        "table_fill": table.num_filled / table.num_places,
    }


def facts(table: CountTable) -> dict[str, Any]:
    """Return the facts from which `sized` makes an empty table of this size."""
    return {"table_places": table.num_places}


def sized(table: CountTable, facts: Mapping[str, Any]) -> CountTable:
    """Return an empty table of the size given by `facts`, or the table if they do not give one."""
    return empty_table(facts["table_places"]) if "table_places" in facts else table


def check(table: CountTable) -> None:
    """Raise an error if visits were lost (outside compiled code)."""
    if num_lost := int(table.num_lost):
        raise UsageError(
            f"{num_lost} visits found no place in a table of {table.num_places}, so counts are no longer "
            "right: call with_room before longer chunks."
        )


@jax.jit
def _refilled(table: CountTable, larger: CountTable) -> CountTable:
    rows = jax.tree.map(lambda leaf: leaf.reshape(table.counts.shape[0], -1, *leaf.shape[2:]), table[:2])

    def add(larger: CountTable, row: tuple[jax.Array, jax.Array]) -> tuple[CountTable, None]:
        return count(larger, *row)[0], None

    filled, _ = jax.lax.scan(add, larger, rows)
    return filled._replace(num_lost=table.num_lost)


def _first_bucket(table_keys: jax.Array, keys: jax.Array) -> jax.Array:
    return (keys[:, 0] & jnp.uint32(table_keys.shape[0] - 1)).astype(jnp.int32)


def _next_bucket(table_keys: jax.Array, keys: jax.Array, buckets: jax.Array) -> jax.Array:
    """Advance by an odd stride derived from the key, which eventually visits every bucket."""
    last = table_keys.shape[0] - 1
    return (buckets + (keys[:, 1] | 1).astype(jnp.int32)) & last


def _find(table_keys: jax.Array, keys: jax.Array) -> Found:
    """Look up keys; a bucket with a free place ends the search."""
    num_buckets = table_keys.shape[0]

    def look(state: tuple[jax.Array, jax.Array, Found]) -> tuple[jax.Array, jax.Array, Found]:
        num_tries, _, found = state
        is_same, is_free = _inspect(table_keys, keys, found.bucket)
        is_there = jnp.any(is_same, axis=1)
        goes_on = ~is_there & ~jnp.any(is_free, axis=1)
        bucket = jnp.where(goes_on, _next_bucket(table_keys, keys, found.bucket), found.bucket)
        return num_tries + 1, goes_on, Found(bucket, jnp.argmax(is_same, axis=1).astype(jnp.int32), is_there)

    def is_searching(state: tuple[jax.Array, jax.Array, Found]) -> jax.Array:
        num_tries, goes_on, _ = state
        return jnp.any(goes_on) & (num_tries < num_buckets)

    nowhere = jnp.zeros(len(keys), bool)
    first = Found(_first_bucket(table_keys, keys), nowhere.astype(jnp.int32), nowhere)
    # most searches end in their first bucket; the loop is for the rest
    return jax.lax.while_loop(is_searching, look, look((jnp.zeros((), jnp.int32), ~nowhere, first)))[2]


def _claim(table_keys: jax.Array, keys: jax.Array, is_wanted: jax.Array) -> tuple[jax.Array, Found, jax.Array]:
    """Find places for keys, claiming free ones for new keys: (keys of the table, places, number of new keys).

    Keys that claim a place in the same bucket are served one by one. Equal keys end up sharing one place.
    """
    num_buckets, batch = table_keys.shape[0], len(keys)
    turns = jnp.arange(batch, dtype=jnp.int32)
    num_lanes = 4 * batch  # a small table decides which key is first at a bucket; a shared lane costs another round

    def claim(state: _Claiming) -> _Claiming:
        num_tries, is_pending, found, table_keys, num_new = state
        is_same, is_free = _inspect(table_keys, keys, found.bucket)
        is_known, has_free = jnp.any(is_same, axis=1), jnp.any(is_free, axis=1)
        is_claiming = is_pending & ~is_known & has_free
        lane = found.bucket % num_lanes
        first = jnp.full(num_lanes, batch, jnp.int32).at[lane].min(jnp.where(is_claiming, turns, batch))
        wins = is_claiming & (first[lane] == turns)
        place = jnp.where(is_known, jnp.argmax(is_same, axis=1), jnp.argmax(is_free, axis=1)).astype(jnp.int32)
        written = jnp.where(wins, found.bucket, num_buckets)  # beyond the end: not written
        table_keys = table_keys.at[written, place].set(keys, mode="drop")
        ends = is_pending & (is_known | wins)
        moves_on = is_pending & ~is_known & ~has_free
        following = Found(
            jnp.where(moves_on, _next_bucket(table_keys, keys, found.bucket), found.bucket),
            jnp.where(ends, place, found.place),
            found.is_there | ends,
        )
        return _Claiming(num_tries + 1, is_pending & ~ends, following, table_keys, num_new + jnp.sum(wins))

    def is_searching(state: _Claiming) -> jax.Array:
        return jnp.any(state.is_pending) & (state.num_tries < num_buckets + batch)

    nowhere = jnp.zeros(batch, bool)
    zero = jnp.zeros((), jnp.int32)
    first = Found(_first_bucket(table_keys, keys), nowhere.astype(jnp.int32), nowhere)
    last = jax.lax.while_loop(is_searching, claim, _Claiming(zero, is_wanted, first, table_keys, zero))
    return last.table_keys, last.found, last.num_new


def _inspect(table_keys: jax.Array, keys: jax.Array, buckets: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return whether each place of each key's bucket contains it, and whether it is free: [key, place]."""
    places = table_keys[buckets]
    return jnp.all(places == keys[:, None, :], axis=-1), jnp.all(places == 0, axis=-1)
