"""Floating-point operations are counted in the traced program: every matrix product, as often as it is computed.

Expected counts are 2 · rows · inner · columns for each product, a multiplication and an addition for each term.
"""

import dataclasses

import jax
import jax.numpy as jnp
import pytest

from consmarl.experiments.arithmetic import matmul_flop
from consmarl.experiments.configuration.config import TrainConfig
from consmarl.experiments.configuration.methods import METHODS
from consmarl.networks.gru import init_gru, unroll_gru

LEARNERS = [method for method, entry in METHODS.items() if entry.sharing == "none"]


def floats(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def test_a_matrix_product_counts_a_multiplication_and_an_addition_per_term():
    assert matmul_flop(jnp.matmul, floats(3, 5), floats(5, 7)) == 2 * 3 * 5 * 7


def test_products_count_the_same_whichever_axes_are_summed():
    assert matmul_flop(lambda x, y: x.T @ y.T, floats(5, 3), floats(7, 5)) == 2 * 3 * 5 * 7
    assert matmul_flop(lambda x, y: jnp.tensordot(x, y, 2), floats(3, 4, 5), floats(4, 5, 7)) == 2 * 3 * 20 * 7


def test_products_with_vectors_count_too():
    assert matmul_flop(jnp.matmul, floats(3, 5), floats(5)) == 2 * 3 * 5
    assert matmul_flop(jnp.dot, floats(5), floats(5)) == 2 * 5


def test_every_product_of_a_batch_counts():
    assert matmul_flop(jnp.matmul, floats(11, 3, 5), floats(11, 5, 7)) == 11 * 2 * 3 * 5 * 7
    assert matmul_flop(jax.vmap(jnp.matmul), floats(11, 3, 5), floats(11, 5, 7)) == 11 * 2 * 3 * 5 * 7
    one_for_all = jax.vmap(jnp.matmul, in_axes=(0, None))
    assert matmul_flop(one_for_all, floats(11, 3, 5), floats(5, 7)) == 11 * 2 * 3 * 5 * 7


def test_element_wise_work_does_not_count():
    assert matmul_flop(lambda x: jnp.cumsum(jnp.tanh(x * x), axis=0).sum(), floats(3, 5)) == 0


@pytest.mark.parametrize(("groups", "within"), [(1, 4), (2, 2)])
def test_a_convolution_counts_its_kernel_for_each_output(groups, within):
    def convolved(pictures, kernels):
        return jax.lax.conv_general_dilated(pictures, kernels, (1, 1), "VALID", feature_group_count=groups)

    # a kernel of 3 × 3 fits at 3 × 3 positions of a 5 × 5 picture
    flop = matmul_flop(convolved, floats(2, 4, 5, 5), floats(6, within, 3, 3))
    assert flop == 2 * (2 * 6 * 3 * 3) * (within * 3 * 3)


def test_a_scan_counts_every_iteration():
    def power(matrix):
        return jax.lax.scan(lambda power, _: (power @ matrix, None), matrix, length=9)[0]

    assert matmul_flop(power, floats(4, 4)) == 9 * 2 * 4**3


def test_iterations_of_nested_scans_multiply():
    def tower(matrix):
        def storey(power, _):
            return jax.lax.scan(lambda power, _: (power @ matrix, None), power, length=5)[0] @ matrix, None

        return jax.lax.scan(storey, matrix, length=3)[0]

    assert matmul_flop(tower, floats(4, 4)) == 3 * (5 + 1) * 2 * 4**3


def test_maps_and_loops_of_known_length_count_like_scans():
    assert matmul_flop(lambda rows: jax.lax.map(lambda row: row @ row, rows), floats(6, 4, 4)) == 6 * 2 * 4**3
    assert matmul_flop(lambda x: jax.lax.fori_loop(0, 7, lambda _, y: y @ x, x), floats(4, 4)) == 7 * 2 * 4**3


def test_the_most_expensive_branch_counts():
    def either(choice, matrix):
        branches = [lambda x: x, lambda x: x @ x @ x, lambda x: x @ x]
        return jax.lax.switch(choice, branches, matrix)

    assert matmul_flop(either, jax.ShapeDtypeStruct((), jnp.int32), floats(4, 4)) == 2 * 2 * 4**3


def until_small(step, matrix):
    return jax.lax.while_loop(lambda x: jnp.abs(x).max() > 1, step, matrix)


def test_products_in_a_loop_of_unknown_length_cannot_be_counted():
    assert matmul_flop(lambda x: until_small(lambda y: y @ x, x), floats(4, 4)) is None
    assert matmul_flop(jax.vmap(lambda x: until_small(lambda y: y @ x, x)), floats(3, 4, 4)) is None


def test_a_loop_of_unknown_length_without_products_counts_nothing():
    assert matmul_flop(lambda x: until_small(lambda y: y / 2, x) @ x, floats(4, 4)) == 2 * 4**3


def chain(weights, inputs):
    for layer in weights:
        inputs = jnp.tanh(inputs @ layer)
    return jnp.sum(inputs)


CHAIN = [floats(5, 7), floats(7, 3), floats(3, 2)]
FIRST, REST = 2 * 11 * 5 * 7, 2 * 11 * (7 * 3 + 3 * 2)  # one forward pass of 11 rows: the first layer, the others


def test_a_gradient_costs_three_forward_passes_less_the_gradient_of_the_inputs():
    assert matmul_flop(chain, CHAIN, floats(11, 5)) == FIRST + REST
    assert matmul_flop(jax.grad(chain), CHAIN, floats(11, 5)) == 3 * (FIRST + REST) - FIRST
    assert matmul_flop(jax.grad(chain, argnums=(0, 1)), CHAIN, floats(11, 5)) == 3 * (FIRST + REST)


def test_work_recomputed_in_the_backward_pass_counts_again():
    def forgetful(weights, inputs):
        return jnp.sum(jax.checkpoint(lambda inputs: jnp.tanh(inputs @ weights))(inputs))

    once = 2 * 11 * 5 * 7
    assert matmul_flop(jax.grad(forgetful, argnums=(0, 1)), floats(5, 7), floats(11, 5)) == 4 * once


def test_the_gradient_of_a_scan_counts_every_iteration():
    def unrolled(weights, hidden):
        return jnp.sum(jax.lax.scan(lambda hidden, _: (jnp.tanh(hidden @ weights), None), hidden, length=9)[0])

    assert matmul_flop(jax.grad(unrolled), floats(5, 5), floats(3, 5)) == 9 * 3 * (2 * 3 * 5 * 5)


@jax.custom_vjp
def square(matrix):
    """One product forward and five backward, which JAX's own rules would not give."""
    return matrix @ matrix


square.defvjp(
    lambda matrix: (matrix @ matrix, matrix),
    lambda matrix, gradient: (gradient @ matrix @ matrix @ matrix @ matrix @ matrix,),
)


@jax.custom_jvp
def cube(matrix):
    """Two products, and one more for the tangent."""
    return matrix @ matrix @ matrix


cube.defjvp(lambda given, tangents: (cube(*given), given[0] @ tangents[0]))


@pytest.mark.parametrize(
    ("function", "products"),
    [(jax.jit(jnp.matmul), 1), (jax.checkpoint(jnp.matmul), 1), (lambda x, _: square(x), 1), (lambda x, _: cube(x), 2)],
    ids=["jit", "checkpoint", "custom_vjp", "custom_jvp"],
)
def test_products_within_calls_of_every_kind_count(function, products):
    assert matmul_flop(function, floats(4, 4), floats(4, 4)) == products * 2 * 4**3


def test_a_custom_backward_pass_counts_as_written():
    assert matmul_flop(jax.grad(lambda x: jnp.sum(square(x))), floats(4, 4)) == (1 + 5) * 2 * 4**3
    assert matmul_flop(jax.grad(lambda x: jnp.sum(cube(x))), floats(4, 4)) == (2 + 1) * 2 * 4**3


def test_a_custom_backward_pass_counts_within_scans_and_batches():
    def through_scan(matrix):
        return jnp.sum(jax.lax.scan(lambda power, _: (square(power), None), matrix, length=3)[0])

    assert matmul_flop(jax.grad(through_scan), floats(4, 4)) == 3 * (1 + 5) * 2 * 4**3
    each = jax.vmap(jax.grad(lambda x: jnp.sum(square(x))))
    assert matmul_flop(each, floats(7, 4, 4)) == 7 * (1 + 5) * 2 * 4**3


def test_the_gru_costs_two_products_per_step_and_twice_that_in_the_backward_pass():
    num_steps, batch, inputs, hidden = 9, 4, 5, 6
    parameters = jax.eval_shape(lambda key: init_gru(key, inputs, hidden), jax.random.key(0))
    arguments = (parameters, floats(num_steps, batch, inputs), floats(batch, hidden))
    forward = num_steps * 2 * batch * (inputs + hidden) * 3 * hidden
    assert matmul_flop(unroll_gru, *arguments) == forward
    assert matmul_flop(jax.grad(lambda *given: jnp.sum(unroll_gru(*given))), *arguments) == 3 * forward


def flop_of_update(trainer, num_episodes, num_steps):
    learner, key = trainer.learner, jax.random.key(0)
    replay = dataclasses.replace(trainer.replay, capacity=num_episodes, episode_limit=num_steps)
    batch = jax.eval_shape(replay.init).episodes
    return matmul_flop(learner.update, jax.eval_shape(learner.init, key), batch, key)


@pytest.mark.parametrize("method", LEARNERS)
def test_the_cost_of_an_update_grows_linearly_with_episodes_and_steps(method):
    trainer = TrainConfig(env="pgm-3ag", method=method, preset="paper", hidden_size=8).trainer()
    few = flop_of_update(trainer, 2, 4)
    more, most = (flop_of_update(trainer, num_episodes, 4) for num_episodes in (4, 6))
    longer, longest = (flop_of_update(trainer, 2, num_steps) for num_steps in (8, 12))
    # by equal amounts, not in proportion: some work may be done only once, such as weighting gradients or choosing a
    # strategy for an episode
    assert 0 < more - few == most - more
    assert 0 < longer - few == longest - longer


def test_the_cost_of_an_iql_update_is_proportional_to_episodes_and_steps():
    trainer = TrainConfig(env="pgm-3ag", method="iql", preset="paper").trainer()
    assert flop_of_update(trainer, 6, 20) == 6 * 20 * flop_of_update(trainer, 1, 1)
