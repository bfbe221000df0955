"""A way to explore of your own: actions drawn by how good they look.

    consmarl --plugin examples/extending/boltzmann.py train --exploration boltzmann --explore.temperature 0.2

ε decides how often an agent explores. When it does, better actions are likelier than worse ones, where ε-greedy draws
all alike.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

import consmarl
from consmarl.environments.validation import Positive
from consmarl.training.exploration import Choice, Exploration


@dataclass(frozen=True)
class Boltzmann(Exploration):
    """With probability ε an action drawn from the softmax of the values, else the best one."""

    temperature: Positive = 0.5
    """How far values may lie apart for actions to be about equally likely."""

    handles_masks = True  # forbidden actions score −∞, so that neither the softmax nor the maximum takes one

    def begin(self, num_agents: int, num_envs: int) -> tuple[()]:
        """Nothing is remembered."""
        del num_agents, num_envs
        return ()

    def choose(self, key: jax.Array, scores: jax.Array, epsilon: jax.Array, state: tuple[()]) -> Choice:
        """Draw with probability ε."""
        key_whether, key_what = jax.random.split(key)
        is_exploring = jax.random.uniform(key_whether, scores.shape[:-1]) < epsilon
        drawn = jax.random.categorical(key_what, scores / self.temperature)
        actions = jnp.where(is_exploring, drawn, jnp.argmax(scores, axis=-1)).astype(jnp.int32)
        return Choice(actions, is_exploring, is_exploring, state)


consmarl.register_exploration("boltzmann", Boltzmann, "draws by the softmax of the values")
