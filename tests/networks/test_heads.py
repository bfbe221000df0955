"""Heads: how values are read off what a network puts out."""

import jax
import jax.numpy as jnp
import numpy as np

from consmarl.environments.interface import Ground
from consmarl.learners.interface import TeamSpec
from consmarl.learners.team_networks import TeamNetworks, Weights
from consmarl.networks.drqn import Head, dueling_values

SPEC = TeamSpec(3, 4, (1.0, 0.5), Ground((3, 4), (3, 5)))


def test_a_dueling_heads_first_output_is_the_mean_of_the_values():
    values = dueling_values(jnp.array([2.0, 1.0, -1.0, 3.0]))  # V = 2, advantages 1, −1, 3 with mean 1
    np.testing.assert_allclose(values, [2.0, 0.0, 4.0])


def test_a_plain_head_leaves_outputs_as_they_are():
    outputs = jnp.arange(6.0).reshape(2, 3)
    assert Head.PLAIN.values(outputs) is outputs
    assert (Head.PLAIN.num_outputs(3), Head.DUELING.num_outputs(3)) == (3, 4)


def test_acting_and_learning_read_the_same_values_off_every_head():
    for head, footprints in ((Head.PLAIN, False), (Head.DUELING, True)):
        for weights in Weights:
            networks = TeamNetworks(SPEC, weights, 5, head, footprints)
            parameters = networks.init(jax.random.key(1))
            codes = jax.random.randint(jax.random.key(2), (3, 2, 4, 2), 0, 3).astype(jnp.uint8)
            actions = jax.random.randint(jax.random.key(3), (3, 2, 3), 0, 4)
            memory, last = networks.first_memory(2), jnp.full((3, 2), -1)
            for step in range(4):
                memory, values = networks.step(parameters, memory, codes[:, :, step], last)
                for agent in range(3):
                    number = 0 if networks.is_shared else agent
                    own = jax.tree.map(lambda rows, number=number: rows[number], parameters)
                    inputs = networks.episode_inputs(jnp.asarray(agent), codes[agent], actions[agent])
                    unrolled = networks.unroll(own, inputs)[1]
                    assert unrolled.shape == (4, 2, SPEC.num_actions)
                    np.testing.assert_allclose(unrolled[step], values[agent], rtol=1e-5, atol=1e-6)
                last = actions[:, :, min(step, 2)]
