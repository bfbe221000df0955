"""Linear layers and perceptrons, initialised with PyTorch's defaults."""

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp


class Linear(NamedTuple):
    """Weights of one layer."""

    weights: jax.Array  # [input, output]
    bias: jax.Array  # [output]


def init_linear(key: jax.Array, num_inputs: int, num_outputs: int) -> Linear:
    """Draw initial weights uniformly within ±1/√(inputs)."""
    key_weights, key_bias = jax.random.split(key)
    bound = 1 / math.sqrt(num_inputs)
    return Linear(
        jax.random.uniform(key_weights, (num_inputs, num_outputs), minval=-bound, maxval=bound),
        jax.random.uniform(key_bias, (num_outputs,), minval=-bound, maxval=bound),
    )


def apply_linear(layer: Linear, inputs: jax.Array) -> jax.Array:
    """Return the outputs: [..., input] → [..., output]."""
    # a single matrix product is faster than one with more axes
    flat = inputs.reshape(-1, inputs.shape[-1]) @ layer.weights + layer.bias[None, :]
    return flat.reshape(*inputs.shape[:-1], -1)


def init_perceptron(key: jax.Array, sizes: Sequence[int]) -> tuple[Linear, ...]:
    """Draw the layers of a perceptron; `sizes` are those of its input, hidden layers and output."""
    keys = jax.random.split(key, len(sizes) - 1)
    return tuple(init_linear(key, *pair) for key, pair in zip(keys, itertools.pairwise(sizes), strict=True))


def apply_perceptron(layers: tuple[Linear, ...], inputs: jax.Array) -> jax.Array:
    """Return the outputs; all layers but the last are followed by a ReLU."""
    for layer in layers[:-1]:
        inputs = jax.nn.relu(apply_linear(layer, inputs))
    return apply_linear(layers[-1], inputs)


def join_last(rows: jax.Array) -> jax.Array:
    """Merge the last two axes: [..., agent, feature] → [..., agent · feature]."""
    return jnp.reshape(rows, (*rows.shape[:-2], rows.shape[-2] * rows.shape[-1]))
