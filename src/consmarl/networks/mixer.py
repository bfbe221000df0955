"""QMIX's mixing network: a team value that is monotonic in the agents' values.

Hypernetworks generate its weights from the team's state; taking their absolute values keeps the mixing monotonic. The
layers that read the state are merged into one.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from consmarl.networks.linear import Linear, apply_linear, init_linear


class MixerParameters(NamedTuple):
    """Weights of the hypernetworks."""

    from_state: Linear  # state → first weights, first bias, second weights, and the hidden layer of the last bias
    last_bias: Linear  # that hidden layer → one number


def init_mixer(key: jax.Array, num_agents: int, state_size: int, mixer_size: int) -> MixerParameters:
    """Draw initial weights."""
    key_state, key_bias = jax.random.split(key)
    return MixerParameters(
        init_linear(key_state, state_size, (num_agents + 3) * mixer_size), init_linear(key_bias, mixer_size, 1)
    )


def mix(parameters: MixerParameters, values: jax.Array, states: jax.Array) -> jax.Array:
    """Return the team's value: values [agent, ...], states [..., feature] → [...]."""
    num_agents, mixer_size = len(values), len(parameters.last_bias.weights)
    made = apply_linear(parameters.from_state, states)
    made = made.reshape(*made.shape[:-1], num_agents + 3, mixer_size)
    first_weights = jnp.abs(made[..., :num_agents, :])
    first_bias, second_weights, before_bias = (made[..., num_agents + part, :] for part in range(3))
    summed = jnp.sum(jnp.moveaxis(values, 0, -1)[..., None] * first_weights, axis=-2)
    hidden = jax.nn.elu(summed + first_bias)
    last_bias = apply_linear(parameters.last_bias, jax.nn.relu(before_bias))[..., 0]
    return jnp.sum(hidden * jnp.abs(second_weights), axis=-1) + last_bias
