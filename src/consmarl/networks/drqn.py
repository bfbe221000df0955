"""The deep recurrent Q-network: Linear → ReLU → GRU → Linear, for one agent.

Its input is the observation, the last action as a one-hot vector (initially zeros), and, if agents share one network,
the agent's number as a one-hot vector.
"""

import enum
import math
from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp

from consmarl.networks.gru import GRUParameters, gru_gates, unroll_gru


class Head(enum.Enum):
    """How action values are computed from the memory."""

    PLAIN = "plain"  # the paper's: one output per action
    DUELING = "dueling"  # one more output for the state's value; the others are advantages

    def num_outputs(self, num_actions: int) -> int:
        """Return the number of outputs."""
        return num_actions + (self is Head.DUELING)

    def values(self, outputs: jax.Array, num_branches: int = 1) -> jax.Array:
        """Return action values [..., action] from the network's outputs [..., output].

        With several branches, values are [..., branch, action], and a dueling head has one state value for all of them
        (Tavakoli et al. 2018).
        """
        if num_branches == 1:
            return dueling_values(outputs) if self is Head.DUELING else outputs
        of_choices = outputs[..., 1:] if self is Head.DUELING else outputs
        by_branch = of_choices.reshape(*outputs.shape[:-1], num_branches, -1)
        if self is Head.PLAIN:
            return by_branch
        return outputs[..., :1, None] + by_branch - by_branch.mean(axis=-1, keepdims=True)


def dueling_values(outputs: jax.Array) -> jax.Array:
    """Return Q(a) = V + A(a) − mean A (Wang et al. 2016, Eq. 9), where V is the first output."""
    advantages = outputs[..., 1:]
    return outputs[..., :1] + advantages - advantages.mean(axis=-1, keepdims=True)


class HasTrunk(Protocol):
    """Parameters with an encoder and a GRU, whatever head follows."""

    @property
    def encoder_weights(self) -> jax.Array:
        """[input, hidden]."""

    @property
    def encoder_bias(self) -> jax.Array:
        """[hidden]."""

    @property
    def gru(self) -> GRUParameters:
        """The recurrent layer."""


class DRQNParameters(NamedTuple):
    """Weights of one network."""

    encoder_weights: jax.Array  # [input, hidden]
    encoder_bias: jax.Array  # [hidden]
    gru: GRUParameters
    head_weights: jax.Array  # [hidden, output]
    head_bias: jax.Array  # [output], one per action unless the head differs


def init_drqn(key: jax.Array, input_size: int, hidden_size: int, num_outputs: int) -> DRQNParameters:
    """Draw initial weights with PyTorch's defaults: uniform within ±1/√(inputs), for the GRU within ±1/√(hidden)."""
    keys = iter(jax.random.split(key, 8))

    def uniform(fan_in: int, *shape: int) -> jax.Array:
        bound = 1 / math.sqrt(fan_in)
        return jax.random.uniform(next(keys), shape, minval=-bound, maxval=bound)

    return DRQNParameters(
        encoder_weights=uniform(input_size, input_size, hidden_size),
        encoder_bias=uniform(input_size, hidden_size),
        gru=GRUParameters(
            input_weights=uniform(hidden_size, hidden_size, 3 * hidden_size),
            input_bias=uniform(hidden_size, 3 * hidden_size),
            hidden_weights=uniform(hidden_size, hidden_size, 3 * hidden_size),
            hidden_bias=uniform(hidden_size, 3 * hidden_size),
        ),
        head_weights=uniform(hidden_size, hidden_size, num_outputs),
        head_bias=uniform(hidden_size, num_outputs),
    )


def step_drqn(parameters: DRQNParameters, hidden: jax.Array, inputs: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Advance by one step: hidden [batch, hidden], inputs [batch, input] → (hidden, outputs)."""
    hidden = step_trunk(parameters, hidden, inputs)
    return hidden, hidden @ parameters.head_weights + parameters.head_bias[None, :]


def unroll_drqn(parameters: DRQNParameters, hidden: jax.Array, inputs: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Advance over a sequence: inputs [step, batch, input] → (hidden states, outputs) after every step."""
    num_steps, batch, _ = inputs.shape
    hiddens = unroll_trunk(parameters, hidden, inputs)
    values = hiddens.reshape(num_steps * batch, -1) @ parameters.head_weights + parameters.head_bias[None, :]
    return hiddens, values.reshape(num_steps, batch, -1)


def step_trunk(parameters: HasTrunk, hidden: jax.Array, inputs: jax.Array) -> jax.Array:
    """Advance the memory by one step: hidden [batch, hidden], inputs [batch, input] → hidden."""
    encoded = jax.nn.relu(inputs @ parameters.encoder_weights + parameters.encoder_bias[None, :])
    return gru_gates(parameters.gru, hidden, encoded).hidden


def unroll_trunk(parameters: HasTrunk, hidden: jax.Array, inputs: jax.Array) -> jax.Array:
    """Advance the memory over a sequence: inputs [step, batch, input] → hidden states after every step."""
    num_steps, batch, _ = inputs.shape
    flat = inputs.reshape(num_steps * batch, -1)
    encoded = jax.nn.relu(flat @ parameters.encoder_weights + parameters.encoder_bias[None, :])
    return unroll_gru(parameters.gru, encoded.reshape(num_steps, batch, -1), hidden)


def one_hot_actions(actions: jax.Array, num_actions: int) -> jax.Array:
    """Return actions as one-hot vectors; −1, for no last action, gives zeros."""
    return jax.nn.one_hot(actions, num_actions, dtype=jnp.float32)


def several_hot_actions(actions: jax.Array, num_actions: int) -> jax.Array:
    """Return actions with several dimensions, [..., branch], as the concatenated one-hot vectors of their choices."""
    hot = one_hot_actions(actions, num_actions)
    return hot.reshape(*actions.shape[:-1], -1)
