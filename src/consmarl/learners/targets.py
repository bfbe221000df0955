"""Target networks: copies that follow in jumps, so that what is learned towards holds still meanwhile."""

from typing import TypeVar

import jax
import jax.numpy as jnp

TreeT = TypeVar("TreeT")


def copied_when_due(target: TreeT, online: TreeT, num_updates: jax.Array, every_updates: int) -> TreeT:
    """Return the target after an update, `num_updates` having come before it: a copy after the 201st, 401st, …"""
    is_due = (num_updates > 0) & (num_updates % every_updates == 0)
    return jax.tree.map(lambda new, old: jnp.where(is_due, new, old), online, target)


def copy_of(online: TreeT) -> TreeT:
    """Return a first target: a copy, because the loop gives buffers away and no two may be one."""
    return jax.tree.map(jnp.copy, online)
