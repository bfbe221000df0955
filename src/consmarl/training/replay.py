"""Replay of whole episodes, as integer codes.

The buffer is a ring of `capacity` episodes, in which the newest replace the oldest. The agent axis comes first, so that
each agent's episodes are contiguous and can be on a device of their own.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from consmarl.environments.actions import branch_axis
from consmarl.learners.interface import EpisodeBatch, map_episodes


class ReplayState(NamedTuple):
    """The ring buffer."""

    episodes: EpisodeBatch  # [agent, slot, …] and [slot, …]
    num_added: jax.Array  # int32, episodes ever added


@dataclass(frozen=True)
class Replay:
    """The sizes of the ring buffer; `capacity` is a multiple of the number of episodes added at once.

    `notes` are the shapes of the learner's notes on one episode: `jax.ShapeDtypeStruct`s with an axis of one episode.
    """

    num_agents: int
    episode_limit: int
    observation_size: int
    code_dtype: np.dtype[Any]
    capacity: int = 10_000
    notes: Any = ()
    num_masked: int = 0  # number of actions with masks; 0 if actions are never forbidden
    num_branches: int = 1  # dimensions of an action

    def init(self) -> ReplayState:
        """Return an empty buffer."""
        agents, slots, steps = self.num_agents, self.capacity, self.episode_limit
        branches = branch_axis(self.num_branches)
        masks = (agents, slots, steps + 1, *branches, self.num_masked)
        return ReplayState(
            EpisodeBatch(
                codes=jnp.zeros((agents, slots, steps + 1, self.observation_size), self.code_dtype),
                actions=jnp.zeros((agents, slots, steps, *branches), jnp.uint8),
                rewards=jnp.zeros((agents, slots, steps), jnp.float32),
                num_steps=jnp.zeros(slots, jnp.int32),
                terminated=jnp.zeros(slots, bool),
                epsilon=jnp.zeros((slots, steps), jnp.float32),
                notes=jax.tree.map(lambda note: jnp.zeros((slots, *note.shape[1:]), note.dtype), self.notes),
                allowed=jnp.zeros(masks, bool) if self.num_masked else None,
            ),
            num_added=jnp.zeros((), jnp.int32),
        )

    def add(self, state: ReplayState, episodes: EpisodeBatch) -> ReplayState:
        """Add episodes, replacing the oldest ones once the buffer is full."""
        slot = state.num_added % self.capacity

        def put(axis: int, ring: jax.Array, new: jax.Array) -> jax.Array:
            return jax.lax.dynamic_update_slice_in_dim(ring, new.astype(ring.dtype), slot, axis=axis)

        return ReplayState(map_episodes(put, state.episodes, episodes), state.num_added + len(episodes.num_steps))

    def num_stored(self, state: ReplayState) -> jax.Array:
        """Return the number of episodes that can be drawn."""
        return jnp.minimum(state.num_added, self.capacity)

    def sample(self, state: ReplayState, key: jax.Array, num_episodes: int, num_stored: jax.Array) -> EpisodeBatch:
        """Draw episodes uniformly, with replacement, from the first `num_stored` slots."""
        slots = jax.random.randint(key, (num_episodes,), 0, num_stored)
        return map_episodes(lambda axis, ring: jnp.take(ring, slots, axis=axis), state.episodes)
