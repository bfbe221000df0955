"""Attention among agents: hard attention, which opens or closes gates, and soft attention, which weights teammates.

For agent i, hard attention reads the pairs [h_i; h_j] of all teammates j ≠ i in both directions and opens or closes a
gate to each; soft attention weights them by how well i's query matches their keys. The message is the sum over
teammates of value × weight × gate.

Axes: `[agent, row, …]`, where rows are environments when acting, and steps of episodes when learning. Pairs have
`[other, agent, row, …]`: `other` counts an agent's teammates in ascending order, excluding itself.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from consmarl.networks.gru import GRUParameters, init_gru, unroll_gru
from consmarl.networks.linear import Linear, apply_linear, init_linear

TEMPERATURE = 0.01  # τ of the Gumbel-softmax: nearly all gates are almost fully open or closed


class AttentionParameters(NamedTuple):
    """Weights of hard and soft attention."""

    upwards: GRUParameters  # reads the teammates in ascending order
    downwards: GRUParameters  # reads them in descending order
    gate: Linear  # [2 * hidden, 2]: closed, open
    query: jax.Array  # [hidden, attention]
    key: jax.Array  # [hidden, attention]
    value: Linear  # [hidden, attention]


class Heard(NamedTuple):
    """The messages that agents receive, and the gates that let them through."""

    messages: jax.Array  # [agent, row, attention]
    gates: jax.Array  # [other, agent, row], 1 if an agent listens to a teammate and 0 if not


def init_attention(key: jax.Array, hidden_size: int, attention_size: int) -> AttentionParameters:
    """Draw initial weights with PyTorch's defaults."""
    key_upwards, key_downwards, key_gate, key_soft, key_value = jax.random.split(key, 5)
    bound = 1 / math.sqrt(hidden_size)
    soft = jax.random.uniform(key_soft, (2, hidden_size, attention_size), minval=-bound, maxval=bound)
    return AttentionParameters(
        upwards=init_gru(key_upwards, 2 * hidden_size, hidden_size),
        downwards=init_gru(key_downwards, 2 * hidden_size, hidden_size),
        gate=init_linear(key_gate, 2 * hidden_size, 2),
        query=soft[0],
        key=soft[1],
        value=init_linear(key_value, hidden_size, attention_size),
    )


def draw_noise(key: jax.Array, num_agents: int, num_rows: int) -> jax.Array:
    """Draw the Gumbel noise of all gates: [other, agent, row, 2]."""
    return jax.random.gumbel(key, (num_agents - 1, num_agents, num_rows, 2))


def listen(parameters: AttentionParameters, hidden: jax.Array, noise: jax.Array) -> Heard:
    """Return every agent's message from its teammates: x_i = Σ_j soft_ij · hard_ij · v_j; zeros for a single agent."""
    num_agents, num_rows, _ = hidden.shape
    if num_agents == 1:
        return Heard(jnp.zeros((1, num_rows, parameters.query.shape[-1])), jnp.zeros((0, 1, num_rows)))
    others = teammates(num_agents)
    gates = open_gates(parameters, hidden, hidden[others], noise)
    weights = soft_weights(hidden @ parameters.query, (hidden @ parameters.key)[others])
    values = jax.nn.relu(apply_linear(parameters.value, hidden))[others]
    return Heard(jnp.sum((weights * gates)[..., None] * values, axis=0), gates)


def teammates(num_agents: int) -> NDArray[np.int32]:
    """Return every agent's teammates in ascending order: [other, agent]."""
    numbers = range(num_agents)
    return np.array([[other for other in numbers if other != agent] for agent in numbers], np.int32).T


def open_gates(parameters: AttentionParameters, hidden: jax.Array, theirs: jax.Array, noise: jax.Array) -> jax.Array:
    """Hard attention: agents' [agent, row, hidden], teammates' [other, agent, row, hidden] → [other, agent, row]."""
    num_others, num_agents, num_rows, size = theirs.shape
    pairs = jnp.concatenate([jnp.broadcast_to(hidden[None], theirs.shape), theirs], axis=-1)
    pairs = pairs.reshape(num_others, num_agents * num_rows, 2 * size)
    nothing_read = jnp.zeros((num_agents * num_rows, size))
    ascending = unroll_gru(parameters.upwards, pairs, nothing_read)
    descending = unroll_gru(parameters.downwards, pairs[::-1], nothing_read)[::-1]
    logits = apply_linear(parameters.gate, jnp.concatenate([ascending, descending], axis=-1))
    # a soft sample: the second component is how far the gate is open
    return jax.nn.softmax((logits.reshape(noise.shape) + noise) / TEMPERATURE)[..., 1]


def soft_weights(queries: jax.Array, keys: jax.Array) -> jax.Array:
    """Soft attention, softmax_j(q_i · k_j / √d): [agent, row, d], [other, agent, row, d] → [other, agent, row]."""
    fits = jnp.sum(queries[None] * keys, axis=-1) / math.sqrt(queries.shape[-1])
    return jax.nn.softmax(fits, axis=0)
