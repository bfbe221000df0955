"""A small environment in which some actions are forbidden, and one agent comes and goes."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from consmarl.environments.interface import Counters, Environment, Outcome

NUM_AGENTS, NUM_ACTIONS, LIMIT = 3, 4, 6
NEVER = 3  # an action that is never allowed
FINE = 100.0  # the cost of a forbidden action


def table():
    """Return the allowed actions in every step: bool [step + 1, agent, action]."""
    allowed = np.random.default_rng(7).random((LIMIT + 1, NUM_AGENTS, NUM_ACTIONS)) < 0.6
    allowed[..., 1] |= ~allowed.any(axis=-1)
    allowed[..., NEVER] = False
    allowed[..., 1] |= ~allowed.any(axis=-1)
    allowed[2:4, 2] = False  # absent
    allowed[0, 0] = [True, True, True, False]
    return allowed


ALLOWED = table()


class Where(NamedTuple):
    num_steps: jax.Array
    is_caught: jax.Array  # whether any agent took a forbidden action


@dataclass(frozen=True)
class Turnstile(Environment):
    """Agents see the step and their own number; the reward of an allowed action is its number."""

    id: str = "turnstile"
    num_agents: int = NUM_AGENTS
    episode_limit: int = LIMIT
    action_names: tuple[str, ...] = ("a", "b", "c", "d")
    is_masked: bool = True

    @property
    def masks_actions(self):
        return self.is_masked

    def allowed_actions(self, state):
        return jnp.asarray(ALLOWED)[state.num_steps]

    @property
    def observation_scale(self):
        return np.array([0.1, 0.5], np.float32)

    @property
    def observation_limit(self):
        return np.array([LIMIT, NUM_AGENTS - 1])

    def generate_layout(self, key):
        del key
        return ()

    def begin(self, layout):
        del layout
        return Where(jnp.zeros((), jnp.int32), jnp.zeros((), bool))

    def draw(self, key):
        del key
        return ()

    def advance(self, state, actions, draws):
        del draws
        allowed = self.allowed_actions(state)
        is_there = allowed.any(axis=-1)
        is_fine = jnp.take_along_axis(allowed, actions[:, None], axis=1)[:, 0] | (~is_there & (actions == 0))
        rewards = jnp.where(is_fine, actions.astype(jnp.float32) * is_there, -FINE)
        following = Where(state.num_steps + 1, state.is_caught | ~is_fine.all())
        late = following.num_steps >= LIMIT
        return following, Outcome(rewards, jnp.zeros((), bool), late)

    def observe(self, state):
        steps = jnp.broadcast_to(state.num_steps, (NUM_AGENTS,))
        return jnp.stack([steps, jnp.arange(NUM_AGENTS)], axis=1).astype(jnp.uint8)

    def counters(self, state):
        return Counters({}, {"caught": state.is_caught.astype(jnp.int32)})
