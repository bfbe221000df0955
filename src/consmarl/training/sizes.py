"""Memory sizes computed from shapes, without allocating anything."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from consmarl.training.parts import RunParts
from consmarl.training.teaching import both, first_recall


def tree_bytes(tree: Any) -> int:
    """Return the size of all arrays of a tree in bytes; leaves may also be shapes (`jax.ShapeDtypeStruct`)."""
    return sum(_leaf_bytes(leaf) for leaf in jax.tree.leaves(tree))


def episode_bytes(parts: RunParts) -> int:
    """Return the size of one episode of the whole team in replay, in bytes."""
    single = dataclasses.replace(parts.replay, capacity=1)
    return tree_bytes(jax.eval_shape(single.init))


def recall_bytes(parts: RunParts) -> int:
    """Return the size of teachers' memories of students' episodes, in all environments of a run, in bytes."""
    learner, world = parts.learner, parts.world
    codes = jax.ShapeDtypeStruct((world.num_agents, parts.num_envs, world.observation_size), world.observation_dtype)

    def before_the_first_step(key: jax.Array, codes: jax.Array) -> Any:
        memory = learner.begin(learner.parameters(learner.init(key)), key, codes)
        memory = both(memory, memory) if parts.sharing.num_beside else memory
        return first_recall(parts.sharing.teacher_memory, memory, codes, world.episode_limit, world.num_branches)

    return tree_bytes(jax.eval_shape(before_the_first_step, jax.random.key(0), codes))


def _leaf_bytes(leaf: Any) -> int:
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return 0  # a few keys, whose size depends on their implementation
    size: int = leaf.dtype.itemsize
    for length in leaf.shape:
        size *= length
    return size
