"""A bonus for exploring: a reward for every cell that an agent has not had in view before in this episode.

A searching agent learns little from a single step, so the difference between good and bad ways of searching is lost in
noise for a long time. The bonus makes it visible. It is used only for learning: reported returns do not include it.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from consmarl.learners.interface import EpisodeBatch


@dataclass(frozen=True)
class CoverageBonus:
    """A reward for every cell that comes into view for the first time in an episode."""

    weight: float = 0.0
    world: Any = None
    start_episode: int = 0  # it counts after this episode: before agents know the real rewards, it would distract them

    def added(self, batch: EpisodeBatch, num_episodes: jax.Array) -> EpisodeBatch:
        """Return a batch with the bonus added to its rewards, given the number of episodes played."""
        if not self.weight:
            return batch
        weight = self.weight * (num_episodes > self.start_episode)
        return batch._replace(rewards=batch.rewards + weight * newly_seen(self.world, batch.codes))


def newly_seen(world: Any, codes: jax.Array) -> jax.Array:
    """Return how many cells come into view for the first time in each step: codes [..., step + 1, code] → [..., step].

    Padding repeats an episode's last observation or is zero; its rewards do not enter the loss.
    """

    def step(has_seen: jax.Array, codes: jax.Array) -> tuple[jax.Array, jax.Array]:
        sees = world.places_in_view(codes)
        return has_seen | sees, jnp.sum(sees & ~has_seen, axis=-1, dtype=jnp.float32)

    # step by step, which is much faster than a cumulative maximum over all cells
    by_step = jnp.moveaxis(codes, -2, 0)
    return jnp.moveaxis(jax.lax.scan(step, world.places_in_view(by_step[0]), by_step[1:])[1], 0, -1)
