"""Averages of weights over updates, which are steadier than the newest weights."""

from typing import TypeVar

import jax
import jax.numpy as jnp

TreeT = TypeVar("TreeT")

# The average covers the last tenth of all updates, but never more than this many.
SHARE_OF_UPDATES, MOST_UPDATES = 0.1, 2000


def averaged_after(averaged: TreeT, online: TreeT, num_updates: jax.Array) -> TreeT:
    """Return the exponential moving average after an update that was preceded by `num_updates` others."""
    reach = jnp.clip(SHARE_OF_UPDATES * num_updates, 1.0, MOST_UPDATES)
    return jax.tree.map(lambda old, new: old + (new - old) / reach, averaged, online)
