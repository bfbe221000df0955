"""How much memory things take, told by their shapes: nothing is allocated."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from consmarl.training.parts import RunParts


def tree_bytes(tree: Any) -> int:
    """Return how many bytes the arrays of a tree take, or would take where there are only their shapes."""
    return sum(_leaf_bytes(leaf) for leaf in jax.tree.leaves(tree))


def episode_bytes(parts: RunParts) -> int:
    """Return how many bytes one episode of the whole team takes in replay."""
    single = dataclasses.replace(parts.replay, capacity=1)
    return tree_bytes(jax.eval_shape(single.init))


def _leaf_bytes(leaf: Any) -> int:
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return 0  # a few keys, whose size is their implementation's affair
    size: int = leaf.dtype.itemsize
    for length in leaf.shape:
        size *= length
    return size
