"""Heads: how action values are computed from a network's outputs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from consmarl.environments.interface import Ground
from consmarl.learners.interface import TeamSpec
from consmarl.learners.team_networks import TeamNetworks, Weights
from consmarl.networks.drqn import Head, dueling_values

SPEC = TeamSpec(3, 4, (1.0, 0.5), Ground((3, 4), (3, 5)))


def test_a_dueling_heads_first_output_is_the_mean_of_the_values():
    values = dueling_values(jnp.array([2.0, 1.0, -1.0, 3.0]))  # V = 2, advantages 1, −1, 3 with mean 1
    np.testing.assert_allclose(values, [2.0, 0.0, 4.0])


def test_a_plain_head_returns_outputs_unchanged():
    outputs = jnp.arange(6.0).reshape(2, 3)
    assert Head.PLAIN.values(outputs) is outputs
    assert (Head.PLAIN.num_outputs(3), Head.DUELING.num_outputs(3)) == (3, 4)


@pytest.mark.parametrize("weights", Weights)
@pytest.mark.parametrize(("head", "footprints"), [(Head.PLAIN, False), (Head.DUELING, True)])
def test_acting_and_learning_compute_the_same_values_with_every_head(head, footprints, weights):
    networks = TeamNetworks(SPEC, weights, 5, head, footprints)
    parameters = jax.jit(networks.init)(jax.random.key(1))
    codes = jax.random.randint(jax.random.key(2), (3, 2, 4, 2), 0, 3).astype(jnp.uint8)
    actions = jax.random.randint(jax.random.key(3), (3, 2, 3), 0, 4)
    memory, last = networks.first_memory(2), jnp.full((3, 2), -1)
    act = jax.jit(networks.step)
    acted = []
    for step in range(4):
        memory, values = act(parameters, memory, codes[:, :, step], last)
        acted.append(values)
        last = actions[:, :, min(step, 2)]

    @jax.jit
    def learned(agent, own):
        return networks.unroll(own, networks.episode_inputs(agent, codes[agent], actions[agent]))[1]

    for agent in range(3):
        number = 0 if networks.is_shared else agent
        unrolled = learned(jnp.asarray(agent), jax.tree.map(lambda rows, number=number: rows[number], parameters))
        assert unrolled.shape == (4, 2, SPEC.num_actions)
        np.testing.assert_allclose(unrolled, jnp.stack(acted)[:, agent], rtol=1e-5, atol=1e-6)
