"""The mixing network against plain NumPy, and its monotonicity: the team's value never falls when an agent's rises."""

import itertools

import hypothesis
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from consmarl.learners.interface import TeamSpec
from consmarl.learners.qmix import QMIX
from consmarl.learners.vdn import VDN
from consmarl.networks.linear import Linear
from consmarl.networks.mixer import MixerParameters, mix

AGENTS, FEATURES, UNITS, ACTIONS = 3, 5, 4, 3
mix_compiled = jax.jit(mix)


def drawn_mixer(rng, scale):
    """A mixer with random weights of both signs."""

    def draw(*shape):
        return jnp.asarray(scale * rng.normal(size=shape), jnp.float32)

    num_outputs = (AGENTS + 3) * UNITS
    return MixerParameters(
        Linear(draw(FEATURES, num_outputs), draw(num_outputs)), last_bias=Linear(draw(UNITS, 1), draw(1))
    )


def mix_slowly(mixer, values, state):
    """The mix for one state, agent by agent: w₁ = |H₁s| [agent, unit], b₁, ELU, w₂ = |H₂s|, b₂ from two layers."""
    num_agents, size = len(values), len(mixer.last_bias.weights)

    def made(part):
        columns = slice(part * size, (part + 1) * size)
        return state @ mixer.from_state.weights[:, columns] + mixer.from_state.bias[columns]

    hidden = made(num_agents)
    for agent, value in enumerate(values):
        hidden = hidden + value * np.abs(made(agent))
    hidden = np.where(hidden > 0, hidden, np.exp(np.minimum(hidden, 0)) - 1)
    last_bias = np.maximum(made(num_agents + 2), 0) @ mixer.last_bias.weights[:, 0] + mixer.last_bias.bias[0]
    return hidden @ np.abs(made(num_agents + 1)) + last_bias


def test_the_mix_matches_one_worked_out_by_hand():
    mixer = MixerParameters(
        from_state=Linear(
            weights=jnp.array([[0.5, -1.0, -0.25, 0.5, 0.5, -1.0, -1.0, 0.5, 1.5, -3.0]]),
            bias=jnp.array([0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]),
        ),
        last_bias=Linear(weights=jnp.array([[0.5], [7.0]]), bias=jnp.array([-1.0])),
    )
    # for the state 2: w₁ = [[1, 2], [½, 1]], b₁ = [2, −2], w₂ = [2, 1] and b₂ = ½·3 + 7·0 − 1
    # for the values 1 and −2: 1·1 − 2·½ + 2 = 2 and 1·2 − 2·1 − 2 = −2, which ELU turns into 2 and e⁻² − 1
    expected = 2 * 2 + 1 * (np.exp(-2) - 1) + 0.5
    values, state = np.array([1.0, -2.0]), np.array([2.0])
    np.testing.assert_allclose(mix_compiled(mixer, np.float32(values), np.float32(state)), expected, rtol=1e-6)
    np.testing.assert_allclose(mix_slowly(mixer, values, state), expected, rtol=1e-6)


def test_every_step_and_episode_is_mixed_with_its_own_state():
    rng = np.random.default_rng(0)
    mixer = drawn_mixer(rng, 0.5)
    values, states = rng.normal(size=(AGENTS, 2, 3)), 2 * rng.normal(size=(2, 3, FEATURES))
    fast = mix_compiled(mixer, np.float32(values), np.float32(states))
    slow = [[mix_slowly(mixer, values[:, step, each], states[step, each]) for each in range(3)] for step in range(2)]
    np.testing.assert_allclose(fast, slow, rtol=1e-5, atol=1e-6)


def numbers(*shape, least=-10.0):
    return arrays.arrays(np.float32, shape, elements=st.floats(least, 10, width=32))


@hypothesis.settings(max_examples=20)
@hypothesis.given(
    seed=st.integers(0, 2**32 - 1),
    scale=st.sampled_from([0.1, 1.0, 3.0]),
    values=numbers(AGENTS),
    rises=numbers(AGENTS, least=0.0),
    state=numbers(FEATURES),
)
def test_the_mix_never_falls_when_an_agents_value_rises(seed, scale, values, rises, state):
    mixer = drawn_mixer(np.random.default_rng(seed), scale)
    before = mix_compiled(mixer, values, state)
    risen = [mix_compiled(mixer, values + rises * which, state) for which in np.eye(AGENTS, dtype=np.float32)]
    together = mix_compiled(mixer, values + rises, state)
    rounding = 1e-5 * (1 + abs(float(before)))
    for single in risen:
        assert single >= before - rounding
        assert together >= single - rounding


def test_the_mix_increases_strictly_with_every_agents_value():
    slopes = jax.jit(jax.grad(mix, argnums=1))(
        drawn_mixer(np.random.default_rng(1), 0.5), np.zeros(AGENTS, np.float32), np.ones(FEATURES, np.float32)
    )
    assert (np.asarray(slopes) > 0).all()


def test_vdn_adds_the_agents_values():
    learner = VDN(TeamSpec(2, ACTIONS, (1.0,)))
    values = jnp.array([[[1.0, 2.0]], [[10.0, -20.0]]])  # [agent, step, episode]
    assert learner.mix(learner.init_mixer(jax.random.key(0)), values, jnp.zeros((1, 2, 2))).tolist() == [[11, -18]]


@pytest.mark.parametrize("num_agents", [2, 3])
def test_the_best_action_of_each_agent_is_the_best_joint_action(num_agents):
    learner = QMIX(TeamSpec(num_agents, ACTIONS, (1.0, 0.5)), mixer_size=UNITS)
    joint_actions = list(itertools.product(range(ACTIONS), repeat=num_agents))
    init_mixer, mix_all = jax.jit(learner.init_mixer), jax.jit(learner.mix)
    rng = np.random.default_rng(num_agents)
    for seed in range(10):
        mixer = init_mixer(jax.random.key(seed))
        values = rng.normal(size=(num_agents, ACTIONS))
        chosen = np.array([[values[agent, joint[agent]] for joint in joint_actions] for agent in range(num_agents)])
        states = np.tile(rng.normal(size=2 * num_agents), (len(joint_actions), 1))
        totals = mix_all(mixer, np.float32(chosen), np.float32(states))
        assert joint_actions[int(np.argmax(totals))] == tuple(values.argmax(axis=-1).tolist())
