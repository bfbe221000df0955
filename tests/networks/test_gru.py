"""The fast GRU kernel, with its own gradient, against a plain one that JAX differentiates."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from consmarl.networks.drqn import init_drqn, one_hot_actions, step_drqn, unroll_drqn
from consmarl.networks.gru import unroll_gru

init = jax.jit(init_drqn, static_argnums=(1, 2, 3))

SIZES = [  # steps, batch, inputs, hidden
    (1, 1, 1, 1),
    (1, 3, 5, 17),
    (7, 1, 17, 17),
    (25, 32, 53, 64),
    (50, 4, 83, 64),
]


def plain_gru(parameters, inputs, hidden):
    """A GRU with `jax.nn.sigmoid` and no optimisations."""
    size = hidden.shape[-1]

    def step(hidden, inputs_t):
        from_input = jnp.dot(inputs_t, parameters.input_weights) + parameters.input_bias[None]
        from_hidden = jnp.dot(hidden, parameters.hidden_weights) + parameters.hidden_bias[None]
        reset = jax.nn.sigmoid(from_input[:, :size] + from_hidden[:, :size])
        update = jax.nn.sigmoid(from_input[:, size : 2 * size] + from_hidden[:, size : 2 * size])
        new = jnp.tanh(from_input[:, 2 * size :] + reset * from_hidden[:, 2 * size :])
        hidden = (1 - update) * new + update * hidden
        return hidden, hidden

    return jax.lax.scan(step, hidden, inputs)[1]


def case(steps, batch, inputs, hidden, number=0):
    keys = jax.random.split(jax.random.key(steps * 1000 + hidden + 10**6 * number), 4)
    parameters = init(keys[0], inputs, hidden, 5).gru
    parameters = parameters._replace(input_weights=jax.random.normal(keys[1], (inputs, 3 * hidden)) * 0.3)
    return (
        parameters,
        jax.random.normal(keys[2], (steps, batch, inputs)),
        jax.random.normal(keys[3], (batch, hidden)),
    )


@pytest.mark.parametrize("sizes", SIZES)
def test_values_and_gradients_match_the_plain_gru(sizes):
    arguments = case(*sizes)
    weights = jax.random.normal(jax.random.key(9), (sizes[0], sizes[1], sizes[3]))
    np.testing.assert_allclose(jax.jit(unroll_gru)(*arguments), jax.jit(plain_gru)(*arguments), atol=1e-5)

    def loss(unroll):
        return lambda *args: jnp.sum(unroll(*args) * weights) / weights.size

    fast = jax.jit(jax.grad(loss(unroll_gru), argnums=(0, 1, 2)))(*arguments)
    slow = jax.jit(jax.grad(loss(plain_gru), argnums=(0, 1, 2)))(*arguments)
    for ours, theirs in zip(jax.tree.leaves(fast), jax.tree.leaves(slow), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_the_kernel_can_be_mapped_over_agents():
    cases = [case(6, 3, 4, 5, number) for number in range(3)]
    stacked = jax.tree.map(lambda *rows: jnp.stack(rows), *cases)

    def gradient(arguments):
        return jax.grad(lambda p: unroll_gru(p, *arguments[1:]).sum())(arguments[0])

    alone = jax.jit(gradient)
    expected = jax.tree.map(lambda *rows: np.stack(rows), *(alone(each) for each in cases))
    for over_agents in (jax.vmap(gradient), functools.partial(jax.lax.map, gradient)):
        found = jax.jit(over_agents)(stacked)
        for ours, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_unrolling_a_network_equals_stepping_it():
    parameters = init(jax.random.key(0), 11, 8, 3)
    inputs = jax.random.normal(jax.random.key(1), (6, 2, 11))
    hidden = jnp.zeros((2, 8))
    hiddens, values = jax.jit(unroll_drqn)(parameters, hidden, inputs)
    take_step = jax.jit(step_drqn)
    for step in range(6):
        hidden, now = take_step(parameters, hidden, inputs[step])
        np.testing.assert_allclose(hidden, hiddens[step], atol=1e-6)
        np.testing.assert_allclose(now, values[step], atol=1e-6)


def test_initial_weights_follow_pytorchs_distribution():
    parameters = init(jax.random.key(0), 100, 64, 5)
    for weights, bound in ((parameters.encoder_weights, 0.1), (parameters.encoder_bias, 0.1),
                           (parameters.gru.hidden_weights, 0.125), (parameters.head_weights, 0.125)):  # fmt: skip
        assert float(jnp.abs(weights).max()) <= bound
        assert float(jnp.abs(weights).max()) > 0.8 * bound
        assert abs(float(weights.mean())) < 0.3 * bound


def test_a_missing_last_action_is_encoded_as_zeros():
    assert one_hot_actions(jnp.array([-1, 1]), 3).tolist() == [[0, 0, 0], [0, 1, 0]]
