"""Shared by the slow reference versions of the learners: hand-made episodes, and networks stepped in float64."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from consmarl.learners.interface import EpisodeBatch, TeamSpec

AGENTS, EPISODES, STEPS, CODES, ACTIONS = 3, 4, 5, 6, 3
SPEC = TeamSpec(AGENTS, ACTIONS, tuple(np.linspace(0.1, 1.0, CODES).tolist()))


def hand_made_batch(seed=0, agents=AGENTS):
    """Episodes of 1, 5, 3 and 5 steps, of which the first and third terminate and the others reach the time limit."""
    rng = np.random.default_rng(seed)
    return EpisodeBatch(
        codes=jnp.asarray(rng.integers(0, 9, (agents, EPISODES, STEPS + 1, CODES)), jnp.uint8),
        actions=jnp.asarray(rng.integers(0, ACTIONS, (agents, EPISODES, STEPS)), jnp.uint8),
        rewards=jnp.asarray(rng.normal(size=(agents, EPISODES, STEPS)), jnp.float32),
        num_steps=jnp.array([1, 5, 3, 5]),
        terminated=jnp.array([True, False, True, False]),
        epsilon=jnp.asarray(rng.uniform(0.1, 0.5, (EPISODES, STEPS)), jnp.float32),
    )


def with_padding_of(batch, other):
    """The batch, with the contents of another batch after the end of every episode."""
    is_played = np.arange(STEPS)[None, :] < batch.num_steps[:, None]
    is_seen = np.arange(STEPS + 1)[None, :] <= batch.num_steps[:, None]
    mixed = batch._replace(
        codes=np.where(is_seen[None, :, :, None], batch.codes, other.codes),
        actions=np.where(is_played[None], batch.actions, other.actions),
        rewards=np.where(is_played[None], batch.rewards, other.rewards),
        epsilon=np.where(is_played, batch.epsilon, other.epsilon),
    )
    assert not np.array_equal(mixed.codes, batch.codes)
    assert not np.array_equal(mixed.rewards, batch.rewards)
    return mixed


def network_slowly(weights, hidden, inputs):
    """One step of one network in float64."""
    encoded = np.maximum(inputs @ weights.encoder_weights + weights.encoder_bias, 0)
    hidden = gru_slowly(weights.gru, hidden, encoded)
    return hidden, hidden @ weights.head_weights + weights.head_bias


def network(parameters, index):
    return jax.tree.map(lambda stacked: np.asarray(stacked[index], np.float64), parameters)


def as_float64(tree):
    return jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), tree)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    powers = np.exp(x - x.max())
    return powers / powers.sum()


def gru_slowly(weights, hidden, inputs):
    """PyTorch's GRU equations, one gate at a time."""
    size = len(hidden)

    def part(number):
        columns = slice(number * size, (number + 1) * size)
        return (
            inputs @ weights.input_weights[:, columns] + weights.input_bias[columns],
            hidden @ weights.hidden_weights[:, columns] + weights.hidden_bias[columns],
        )

    reset, update = sigmoid(sum(part(0))), sigmoid(sum(part(1)))
    new = np.tanh(part(2)[0] + reset * part(2)[1])
    return (1 - update) * new + update * hidden


def inputs_slowly(spec, batch, agent, episode, step):
    last = np.zeros(spec.num_actions)
    if step:
        last[int(batch.actions[agent, episode, step - 1])] = 1
    observation = np.asarray(batch.codes[agent, episode, step]) * np.array(spec.observation_scale)
    return np.concatenate([observation, last, np.eye(spec.num_agents)[agent]])


@functools.cache
def compiled(learner, name):
    return jax.jit(getattr(learner, name))


def total(tree):
    return sum(float(jnp.abs(leaf).sum()) for leaf in jax.tree.leaves(tree))
