"""Counts by hashing: observations on the same side of all random hyperplanes count as one (Tang et al., 2017).

Observations are centred and divided by their scales, which are computed from the team's first `SETTLED` visits and then
fixed: changing scales would move the hyperplanes relative to earlier visits. Visits before that are not counted. Every
observation belongs to one cell, which is counted in the exact table; see `counters`.

Noise moves observations close to a hyperplane across it, into another cell. So a count also includes the cells behind
the closest hyperplanes, if they are within `TOLERANCE`.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from consmarl.environments.validation import whole_number
from consmarl.records import settle
from consmarl.sharing import counters
from consmarl.sharing.counters import CountTable
from consmarl.sharing.counts import Counting
from consmarl.sharing.fingerprints import fingerprint, of_agent
from consmarl.sharing.scales import Scales, deviations, having_seen, no_scales

MOST_BITS = 256
SETTLED = 128  # visits of the team
LARGEST = 5.0  # standard deviations from the mean; larger distances are clipped
TOLERANCE = 0.1  # standard deviations
NUM_CLOSEST = 3  # hyperplanes whose other sides a count may include
SEED = 20240220  # arbitrary, but fixed


class HashedCounts(NamedTuple):
    """Visits by agent and cell."""

    table: CountTable
    scales: Scales


class Hashed(NamedTuple):
    """The positions of observations relative to the hyperplanes."""

    bits: jax.Array  # uint8 [..., bit], 1 on the upper side of a hyperplane
    closest: jax.Array  # int32 [..., close], the closest hyperplanes
    is_close: jax.Array  # bool [..., close], whether they are within the tolerance


@dataclass(frozen=True)
class SimHashCounting(Counting):
    """Hashing by random hyperplanes.

    n of Eq. 1, 6 and 7 is the number of an agent's visits on the same side of all hyperplanes as this observation,
    ignoring hyperplanes that are very close to it.
    """

    hash_bits: int = 64
    """Hyperplanes that tell observations apart: more bits make smaller cells [ours: 64]."""

    def __post_init__(self) -> None:
        """Check the number of bits."""
        settle(self)
        whole_number("hash_bits", self.hash_bits, least=1, most=MOST_BITS)

    def init(self, num_places: int, num_agents: int, observation_size: int) -> HashedCounts:
        """Return an empty table."""
        del num_agents
        return HashedCounts(counters.empty_table(num_places), no_scales(observation_size))

    def marks(self, codes: jax.Array) -> jax.Array:
        """Return the observations themselves: their cells depend on the scales."""
        return codes.astype(jnp.float32)

    def count(
        self, state: HashedCounts, marks: jax.Array, seats: jax.Array, amounts: jax.Array
    ) -> tuple[HashedCounts, jax.Array]:
        """Add visits to their cells."""
        rows, is_visit = marks.reshape(-1, marks.shape[-1]), (amounts > 0).reshape(-1)
        is_settled = state.scales.num_seen >= SETTLED
        keys = of_agent(fingerprint(self.hashed(state.scales, marks).bits), seats)
        table, _ = counters.count(state.table, keys, jnp.where(is_settled, amounts, 0))
        following = HashedCounts(table, having_seen(state.scales, rows, is_visit, SETTLED))
        # with the scales from before this step: in the step that fixes them, nothing has been counted yet
        return following, jnp.where(amounts > 0, self._sum(table, state.scales, marks, seats), 0)

    def lookup(self, state: HashedCounts, marks: jax.Array, seats: jax.Array) -> jax.Array:
        """Return the sum of the counts of an observation's cell and of the cells very close to it."""
        return self._sum(state.table, state.scales, marks, seats)

    def _sum(self, table: CountTable, scales: Scales, marks: jax.Array, seats: jax.Array) -> jax.Array:
        cells, is_meant = self._cells(self.hashed(scales, marks))
        keys = of_agent(fingerprint(cells), jnp.broadcast_to(seats[..., None], is_meant.shape))
        counts = jnp.sum(jnp.where(is_meant, counters.lookup(table, keys), 0), axis=-1)
        return jnp.where(scales.num_seen >= SETTLED, counts, 0)

    def hashed(self, scales: Scales, codes: jax.Array) -> Hashed:
        """Return the positions of observations [..., code] relative to the hyperplanes."""
        leading = (1,) * (codes.ndim - 1)
        deviation, _ = deviations(scales)
        scaled = (codes - scales.mean.reshape(*leading, -1)) / deviation.reshape(*leading, -1)
        normals, offsets = hyperplanes(codes.shape[-1], self.hash_bits)
        far = jnp.matmul(jnp.clip(scaled, -LARGEST, LARGEST), normals, precision=jax.lax.Precision.HIGHEST)
        far -= offsets.reshape(*leading, -1)
        nearness, closest = jax.lax.top_k(-jnp.abs(far), min(NUM_CLOSEST, self.hash_bits))
        return Hashed((far > 0).astype(jnp.uint8), closest, nearness > -TOLERANCE)

    def _cells(self, hashed: Hashed) -> tuple[jax.Array, jax.Array]:
        """Return the cells behind every subset of the closest hyperplanes, [..., choice, bit], and which ones count."""
        num_close = hashed.closest.shape[-1]
        crosses = np.arange(1 << num_close)[:, None] >> np.arange(num_close) & 1 == 1  # [choice, close]
        crosses = crosses.reshape((1,) * (hashed.bits.ndim - 1) + crosses.shape)
        is_meant = jnp.all(~crosses | hashed.is_close[..., None, :], axis=-1)
        is_bit = jax.nn.one_hot(hashed.closest, self.hash_bits, dtype=jnp.uint8)  # [..., close, bit]
        flips = jnp.sum(is_bit[..., None, :, :] * crosses[..., None], axis=-2, dtype=jnp.uint8)
        return hashed.bits[..., None, :] ^ flips, is_meant

    def report(self, state: HashedCounts) -> dict[str, jax.Array]:
        """Return how many cells all agents have met, how many visits were lost, and how full the table is."""
        return counters.report(state.table)

    def facts(self, state: HashedCounts) -> dict[str, Any]:
        """Return the size of the table."""
        return counters.facts(state.table)

    def sized(self, state: HashedCounts, facts: Mapping[str, Any]) -> HashedCounts:
        """Return an empty table of another size."""
        return state._replace(table=counters.sized(state.table, facts))

    def with_room(self, state: HashedCounts, num_visits: int) -> HashedCounts:
        """Enlarge the table if this many visits might fill it."""
        return state._replace(table=counters.with_room(state.table, num_visits))

    def check(self, state: HashedCounts) -> None:
        """Raise an error if visits were lost."""
        counters.check(state.table)


@functools.lru_cache
def hyperplanes(observation_size: int, num_bits: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return unit normals [code, bit] and distances from the mean [bit].

    Unlike SimHash's, they do not all go through the mean: the most common observations would lie on every one of them.
    """
    random = np.random.default_rng(SEED)
    normals = random.normal(size=(observation_size, num_bits))
    normals /= np.linalg.norm(normals, axis=0)
    return normals.astype(np.float32), random.normal(size=num_bits).astype(np.float32)
