"""A bonus for seeing more: places that an agent has not had in view before in this episode count as a reward.

Whoever searches finds out little by each step, so what one way of searching is worth more than another is lost in noise
for long. The bonus makes that difference plain. It is learned from and never reported: returns are the environment's.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from consmarl.learners.interface import EpisodeBatch


@dataclass(frozen=True)
class CoverageBonus:
    """A reward for every place that comes into view for the first time in an episode."""

    weight: float = 0.0
    world: Any = None
    start_episode: int = 0  # after which it counts: agents who do not yet know what pays would be led away from it

    def added(self, batch: EpisodeBatch, num_episodes: jax.Array) -> EpisodeBatch:
        """Return a batch with the bonus in its rewards, so many episodes having been played."""
        if not self.weight:
            return batch
        weight = self.weight * (num_episodes > self.start_episode)
        return batch._replace(rewards=batch.rewards + weight * newly_seen(self.world, batch.codes))


def newly_seen(world: Any, codes: jax.Array) -> jax.Array:
    """Return how many places come into view with each step: codes [..., step + 1, code] → [..., step].

    Padding repeats an episode's last observation or is zero; its rewards carry no loss.
    """

    def step(has_seen: jax.Array, codes: jax.Array) -> tuple[jax.Array, jax.Array]:
        sees = world.places_in_view(codes)
        return has_seen | sees, jnp.sum(sees & ~has_seen, axis=-1, dtype=jnp.float32)

    # step by step, which takes a fraction of the time of a cumulative maximum over all places
    by_step = jnp.moveaxis(codes, -2, 0)
    return jnp.moveaxis(jax.lax.scan(step, world.places_in_view(by_step[0]), by_step[1:])[1], 0, -1)
