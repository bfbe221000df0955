"""Distribute the agents of one run over several devices, each of which computes the gradients of its own agents.

This is controlled by a mesh with the axis "agents" that is active while the loop is compiled; learners only call
`map_agents`. Cheap work (acting, optimiser steps) is repeated on every device, so that devices communicate only
once per update, to exchange gradients.
"""

import os
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from consmarl.errors import UsageError

AGENTS = "agents"
MOST_IN_ANY_CASE = 64  # devices allowed even on machines with fewer cores; thousands must be a typo


def use_devices(num_devices: int) -> None:
    """Make JAX split the CPU's cores into this many devices; this works only before JAX is first used."""
    if num_devices == 1:
        return
    if num_devices > (most := max(os.cpu_count() or 1, MOST_IN_ANY_CASE)):
        raise UsageError(f"devices can be at most {most} here, a core for each, not {num_devices:,}.")
    try:
        jax.config.update("jax_num_cpu_devices", num_devices)
    except RuntimeError as error:  # JAX is already in use: its devices may suffice
        if len(jax.devices()) < num_devices:
            raise _too_few(num_devices) from error


def agents_mesh(num_devices: int) -> Mesh:
    """Return a mesh of the first `num_devices` devices."""
    available = jax.devices()
    if num_devices > len(available):
        raise _too_few(num_devices)
    return jax.make_mesh((num_devices,), (AGENTS,), axis_types=(AxisType.Auto,), devices=available[:num_devices])


def _too_few(num_devices: int) -> UsageError:
    return UsageError(
        f"{num_devices} devices were asked for and JAX sees {len(jax.devices())}: ask before anything else uses JAX, "
        "or ask for fewer."
    )


def map_agents(function: Callable[[Any], Any], rows: Any) -> Any:
    """Apply a function to each agent's rows, one agent at a time; several devices each take their share.

    One at a time, because one agent's arrays fit into a core's cache, but those of six do not.
    """
    num_devices = dict(jax.sharding.get_abstract_mesh().shape).get(AGENTS, 1)
    if num_devices == 1:
        return jax.lax.map(function, rows)
    num_agents = len(jax.tree.leaves(rows)[0])
    num_missing = -num_agents % num_devices

    def filled(row: jax.Array) -> jax.Array:
        # every device needs the same number of agents: pad with the last one, and cut it off again
        return jnp.concatenate([row, *[row[-1:]] * num_missing]) if num_missing else row

    by_agent = PartitionSpec(AGENTS)
    mapped = jax.shard_map(
        lambda mine: jax.lax.map(function, mine), in_specs=(by_agent,), out_specs=by_agent, check_vma=False
    )(jax.tree.map(filled, rows))
    return jax.tree.map(lambda row: row[:num_agents], everywhere(mapped))


def everywhere(tree: Any) -> Any:
    """Replicate arrays on every device, if there are several."""
    if jax.sharding.get_abstract_mesh().empty:
        return tree
    return jax.lax.with_sharding_constraint(tree, PartitionSpec())


def on_every_device(function: Callable[..., Any], *arguments: Any) -> Any:
    """Run a function on every device with the same arguments, so that no step waits for another device."""
    if jax.sharding.get_abstract_mesh().empty:
        return function(*arguments)
    alike = PartitionSpec()
    return jax.shard_map(function, in_specs=alike, out_specs=alike, check_vma=False)(*arguments)


def placed(tree: Any, mesh: Mesh, *, by_agent: bool) -> Any:
    """Put arrays on the mesh: replicated, or with each agent's rows on its own device if they divide evenly."""

    def put(leaf: jax.Array) -> jax.Array:
        is_split = by_agent and leaf.ndim > 1 and leaf.shape[0] % mesh.size == 0
        return jax.device_put(leaf, NamedSharding(mesh, PartitionSpec(AGENTS) if is_split else PartitionSpec()))

    return jax.tree.map(put, tree)
