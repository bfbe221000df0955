"""Counts by a learned codebook: an observation counts as the most similar of the examples that the agent keeps.

Each agent has its own codebook. An observation that is further than `codebook_radius` from all examples becomes an
example itself, as long as there is room; all others belong to the closest. The codebook is a histogram whose cells
are learned, and the pseudo-count of such a density model (Bellemare et al., 2016) is the number of visits to a cell.
Counts sum all examples within the radius: there may be several, added before the scales were known.

Distance is the root mean square over the numbers that vary, each divided by its standard deviation so far. Examples are
stored unscaled, so that changing scales never change the observation an example represents.

Axes: `[agent, cell]`; visits are processed one by one.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from consmarl.environments.validation import Positive, Size
from consmarl.records import settle
from consmarl.sharing.counts import Counting, agents_of
from consmarl.sharing.scales import Scales, deviations, having_seen, no_scales

SETTLED = 100_000  # visits of an agent after which its scales are fixed


class Codebook(NamedTuple):
    """The examples of every agent."""

    examples: jax.Array  # float32 [agent, code, cell]: distances to all cells are computed side by side
    counts: jax.Array  # int32 [agent, cell]
    num_filled: jax.Array  # int32 [agent]
    scales: Scales  # [agent, …]


class Found(NamedTuple):
    """The cell that an observation belongs to."""

    cell: jax.Array  # int32, that of the closest example, or the next free one
    is_new: jax.Array  # bool, whether it becomes an example
    is_same: jax.Array  # bool [cell], which examples count as the same observation


@dataclass(frozen=True)
class CodebookCounting(Counting):
    """A learned codebook.

    n of Eq. 1, 6 and 7 is the number of an agent's visits that belong to examples within the radius of this
    observation. If there is no such example, n is 0 or, once the codebook is full, the visits to the closest example.
    """

    codebook_size: Size = 2048
    """Examples that each agent keeps, and so the number of situations it can tell apart [ours: 2,048]."""
    codebook_radius: Positive = 0.1
    """Distance, in standard deviations, up to which observations count as the same [ours: 0.1]."""

    def __post_init__(self) -> None:
        """Check the values."""
        settle(self)

    def init(self, num_places: int, num_agents: int, observation_size: int) -> Codebook:
        """Return empty codebooks."""
        del num_places
        empty = no_scales(observation_size)
        return Codebook(
            examples=jnp.zeros((num_agents, observation_size, self.codebook_size), jnp.float32),
            counts=jnp.zeros((num_agents, self.codebook_size), jnp.int32),
            num_filled=jnp.zeros(num_agents, jnp.int32),
            scales=jax.tree.map(lambda leaf: jnp.zeros((num_agents, *leaf.shape), leaf.dtype), empty),
        )

    def marks(self, codes: jax.Array) -> jax.Array:
        """Return the observations themselves."""
        return codes.astype(jnp.float32)

    def count(
        self, state: Codebook, marks: jax.Array, seats: jax.Array, amounts: jax.Array
    ) -> tuple[Codebook, jax.Array]:
        """Add visits, in their order."""
        rows = (agents_of(seats).reshape(-1), marks.reshape(-1, marks.shape[-1]), amounts.reshape(-1))
        following, counts = jax.lax.scan(self._visited, state, rows)
        return following, counts.reshape(amounts.shape)

    def lookup(self, state: Codebook, marks: jax.Array, seats: jax.Array) -> jax.Array:
        """Return the visits to all examples within the radius."""

        def of_one(row: tuple[jax.Array, jax.Array]) -> jax.Array:
            agent, code = row
            found = self._found(state, agent, code, _of(state.scales, agent))
            return jnp.sum(jnp.where(found.is_same, state.counts[agent], 0))

        counts = jax.lax.map(of_one, (agents_of(seats).reshape(-1), marks.reshape(-1, marks.shape[-1])))
        return counts.reshape(seats.shape)

    def _visited(self, state: Codebook, row: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[Codebook, jax.Array]:
        """Add one visit, and return the state and the count after it."""
        agent, code, amount = row
        amount = amount.astype(jnp.int32)
        scales = having_seen(_of(state.scales, agent), code[None], amount[None] > 0, SETTLED)
        found = self._found(state, agent, code, scales)
        adds = found.is_new & (amount > 0)
        following = Codebook(
            examples=state.examples.at[agent, :, found.cell].set(
                jnp.where(adds, code, state.examples[agent, :, found.cell])
            ),
            counts=state.counts.at[agent, found.cell].add(amount),
            num_filled=state.num_filled.at[agent].add(adds),
            scales=jax.tree.map(lambda leaf, new: leaf.at[agent].set(new), state.scales, scales),
        )
        before = jnp.sum(jnp.where(found.is_same, state.counts[agent], 0))
        return following, jnp.where(amount > 0, before + amount, 0)

    def _found(self, state: Codebook, agent: jax.Array, code: jax.Array, scales: Scales) -> Found:
        """Compare an observation with an agent's examples."""
        deviation, num_varying = deviations(scales)
        weights = 1 / (jnp.square(deviation) * num_varying)
        squares = jnp.square(state.examples[agent] - code[:, None])
        distances = jnp.dot(weights, squares, precision=jax.lax.Precision.HIGHEST)  # faster than a sum
        num_filled, cells = state.num_filled[agent], jnp.arange(self.codebook_size)
        distances = jnp.where(cells < num_filled, distances, jnp.inf)
        closest = jnp.argmin(distances)
        is_near = distances <= self.codebook_radius**2
        is_new = ~jnp.any(is_near) & (num_filled < self.codebook_size)
        # with a full codebook, an observation near no example belongs to the closest
        is_same = is_near | ((cells == closest) & ~is_new)
        return Found(jnp.where(is_new, num_filled, closest), is_new, is_same)

    def with_newcomers(self, state: Codebook, is_new: jax.Array) -> Codebook:
        """Empty the codebooks of newcomers."""

        def emptied(leaf: jax.Array) -> jax.Array:
            return jnp.where(is_new.reshape((-1,) + (1,) * (leaf.ndim - 1)), jnp.zeros((), leaf.dtype), leaf)

        return jax.tree.map(emptied, state)

    def report(self, state: Codebook) -> dict[str, jax.Array]:
        """Return the number of examples of all agents, and how full their codebooks are."""
        num_examples = jnp.sum(state.num_filled)
        return {"num_observations": num_examples, "table_fill": num_examples / state.counts.size}


def _of(scales: Scales, agent: jax.Array) -> Scales:
    return jax.tree.map(lambda leaf: leaf[agent], scales)
