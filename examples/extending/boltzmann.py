"""An exploration of your own: actions are drawn from the softmax of their values.

    consmarl --plugin examples/extending/boltzmann.py train --exploration boltzmann --explore.temperature 0.2

ε determines how often an agent explores. When it does, better actions are more likely than worse ones, whereas ε-greedy
draws all with the same probability.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

import consmarl
from consmarl.environments.validation import Positive
from consmarl.training.exploration import Choice, Exploration


@dataclass(frozen=True)
class Boltzmann(Exploration):
    """With probability ε an action drawn from the softmax of the values, otherwise the best one."""

    temperature: Positive = 0.5
    """Temperature of the softmax: actions whose values differ by much less are about equally likely."""

    handles_masks = True  # forbidden actions have score −∞, so neither the softmax nor the maximum chooses one

    def begin(self, num_agents: int, num_envs: int) -> tuple[()]:
        """Return an empty state, since nothing is remembered between steps."""
        del num_agents, num_envs
        return ()

    def choose(self, key: jax.Array, scores: jax.Array, epsilon: jax.Array, state: tuple[()]) -> Choice:
        """Draw an action from the softmax with probability ε, and take the best one otherwise."""
        key_whether, key_what = jax.random.split(key)
        is_exploring = jax.random.uniform(key_whether, scores.shape[:-1]) < epsilon
        drawn = jax.random.categorical(key_what, scores / self.temperature)
        actions = jnp.where(is_exploring, drawn, jnp.argmax(scores, axis=-1)).astype(jnp.int32)
        return Choice(actions, is_exploring, is_exploring, state)


consmarl.register_exploration("boltzmann", Boltzmann, "draws by the softmax of the values")
