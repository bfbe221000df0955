"""A gated recurrent unit over a whole sequence, optimised for one CPU core.

Four things make it fast (measured in docs/decisions/0005-the-recurrent-kernel.md): inside the loop a step's slice feeds
only matrix products, because a slice fused into the gates prevents their vectorisation; sigmoids are computed with
tanh; the gates are stored as one concatenated array per step, so that the backward pass recomputes nothing; and the
backward loop carries only the hidden state's gradient, while each weight gradient is one large product.

Axes: `[step, batch, feature]`. Gates are in PyTorch's order: reset r, update z, new n.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp


class GRUParameters(NamedTuple):
    """Weights of one unit; the three gates are concatenated along the last axis."""

    input_weights: jax.Array  # [input, 3 * hidden]
    input_bias: jax.Array  # [3 * hidden]
    hidden_weights: jax.Array  # [hidden, 3 * hidden]
    hidden_bias: jax.Array  # [3 * hidden]


def init_gru(key: jax.Array, input_size: int, hidden_size: int) -> GRUParameters:
    """Draw initial weights with PyTorch's defaults: uniform within ±1/√(hidden)."""
    bound = 1 / math.sqrt(hidden_size)
    # in a single draw: each one takes time to compile
    drawn = jax.random.uniform(key, (input_size + hidden_size + 2, 3 * hidden_size), minval=-bound, maxval=bound)
    return GRUParameters(
        input_weights=drawn[:input_size],
        input_bias=drawn[-2],
        hidden_weights=drawn[input_size:-2],
        hidden_bias=drawn[-1],
    )


class Gates(NamedTuple):
    """Intermediate results of one step; `candidate` is the hidden part of the new gate."""

    hidden: jax.Array
    reset: jax.Array
    update: jax.Array
    new: jax.Array
    candidate: jax.Array


def _sigmoid(x: jax.Array) -> jax.Array:
    return 0.5 + 0.5 * jnp.tanh(0.5 * x)  # a third faster than logistic on a CPU


def gru_gates(parameters: GRUParameters, hidden_tm1: jax.Array, inputs_t: jax.Array) -> Gates:
    """Advance by one step: h' = (1 − z)·n + z·h, n = tanh(W_in x + b_in + r·(W_hn h + b_hn))."""
    from_input = inputs_t @ parameters.input_weights + _as_row(parameters.input_bias)
    from_hidden = hidden_tm1 @ parameters.hidden_weights + _as_row(parameters.hidden_bias)
    input_r, input_z, input_n = jnp.split(from_input, 3, axis=-1)
    hidden_r, hidden_z, candidate = jnp.split(from_hidden, 3, axis=-1)
    reset = _sigmoid(input_r + hidden_r)
    update = _sigmoid(input_z + hidden_z)
    new = jnp.tanh(input_n + reset * candidate)
    return Gates(new + update * (hidden_tm1 - new), reset, update, new, candidate)


def _as_row(bias: jax.Array) -> jax.Array:
    return bias[None, :]


@jax.custom_vjp
def unroll_gru(parameters: GRUParameters, inputs: jax.Array, hidden: jax.Array) -> jax.Array:
    """Return the hidden state after every step: [step, batch, hidden]."""

    def step(hidden_tm1: jax.Array, inputs_t: jax.Array) -> tuple[jax.Array, jax.Array]:
        hidden_t = gru_gates(parameters, hidden_tm1, inputs_t).hidden
        return hidden_t, hidden_t

    return jax.lax.scan(step, hidden, inputs)[1]


_Residuals = tuple[GRUParameters, jax.Array, jax.Array, jax.Array]


def _forward(parameters: GRUParameters, inputs: jax.Array, hidden: jax.Array) -> tuple[jax.Array, _Residuals]:
    def step(hidden_tm1: jax.Array, inputs_t: jax.Array) -> tuple[jax.Array, jax.Array]:
        gates = gru_gates(parameters, hidden_tm1, inputs_t)
        return gates.hidden, jnp.concatenate(gates, axis=-1)

    kept = jax.lax.scan(step, hidden, inputs)[1]
    return kept[..., : hidden.shape[-1]], (parameters, inputs, hidden, kept)


def _backward(residuals: _Residuals, hidden_gradients: jax.Array) -> tuple[GRUParameters, jax.Array, jax.Array]:
    parameters, inputs, first_hidden, kept = residuals
    gates = Gates(*jnp.split(kept, len(Gates._fields), axis=-1))
    hidden_tm1 = jnp.concatenate([first_hidden[None], gates.hidden[:-1]])
    # the gradient of each gate's argument is the hidden state's gradient times one of these
    by_new = (1 - gates.update) * (1 - gates.new**2)
    by_update = (hidden_tm1 - gates.new) * gates.update * (1 - gates.update)
    by_reset = gates.candidate * gates.reset * (1 - gates.reset) * by_new
    by_hidden_side = jnp.concatenate([by_reset, by_update, by_new * gates.reset], axis=-1)
    weights_back = parameters.hidden_weights.T

    def step(gradient_t: jax.Array, row: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        from_output, factors, update = row
        gradient_t = gradient_t + from_output
        by_gate = jnp.concatenate([gradient_t] * 3, axis=-1) * factors
        return gradient_t * update + by_gate @ weights_back, gradient_t

    rows = (hidden_gradients, by_hidden_side, gates.update)
    first_gradient, gradients = jax.lax.scan(step, jnp.zeros_like(first_hidden), rows, reverse=True)

    hidden_side = _flat(jnp.concatenate([gradients] * 3, axis=-1) * by_hidden_side)
    input_side = _flat(jnp.concatenate([gradients * by_reset, gradients * by_update, gradients * by_new], axis=-1))
    parameter_gradients = GRUParameters(
        input_weights=_flat(inputs).T @ input_side,
        input_bias=input_side.sum(axis=0),
        hidden_weights=_flat(hidden_tm1).T @ hidden_side,
        hidden_bias=hidden_side.sum(axis=0),
    )
    input_gradients = (input_side @ parameters.input_weights.T).reshape(inputs.shape)
    return parameter_gradients, input_gradients, first_gradient


def _flat(rows: jax.Array) -> jax.Array:
    return rows.reshape(-1, rows.shape[-1])


unroll_gru.defvjp(_forward, _backward)
