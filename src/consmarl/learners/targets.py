"""Target networks: copies that are updated in jumps, so that targets stay fixed in between."""

from typing import TypeVar

import jax
import jax.numpy as jnp

TreeT = TypeVar("TreeT")


def copied_when_due(target: TreeT, online: TreeT, num_updates: jax.Array, every_updates: int) -> TreeT:
    """Return the target after an update preceded by `num_updates` others: a copy after the 201st, 401st, …"""
    is_due = (num_updates > 0) & (num_updates % every_updates == 0)
    return jax.tree.map(lambda new, old: jnp.where(is_due, new, old), online, target)


def copy_of(online: TreeT) -> TreeT:
    """Return an initial target: a copy, because the loop donates buffers and no two may be the same."""
    return jax.tree.map(jnp.copy, online)
