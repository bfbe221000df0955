"""Tiny environments with known solutions, each of which tests one ability of a learner."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from consmarl.environments.interface import Counters, Environment, Outcome


class ProbeState(NamedTuple):
    cue: jax.Array  # int32, drawn at the start
    num_steps: jax.Array  # int32


@dataclass(frozen=True)
class Probe(Environment):
    """One agent, two actions, and a cue of 0 or 1 that is shown as code 1 or 2 in the first step only."""

    num_agents: int = 1
    episode_limit: int = 1
    id: str = "probe"
    action_names = ("zero", "one")

    @property
    def observation_scale(self):
        return np.ones(1, np.float32)

    @property
    def observation_limit(self):
        return np.full(1, 2)

    def generate_layout(self, key):
        return jax.random.randint(key, (), 0, 2)

    def layout_from(self, description):
        return jnp.asarray(description["cue"])

    def begin(self, layout):
        return ProbeState(layout, jnp.zeros((), jnp.int32))

    def draw(self, key):
        del key
        return ()

    def observe(self, state):
        shown = jnp.where(state.num_steps == 0, state.cue + 1, 0)
        return jnp.broadcast_to(shown, (self.num_agents, 1)).astype(jnp.uint8)

    def advance(self, state, actions, draws):
        del draws
        rewards = self.rewards(state, actions).astype(jnp.float32)
        state = state._replace(num_steps=state.num_steps + 1)
        over = state.num_steps >= self.episode_limit
        return state, Outcome(rewards, jnp.zeros((), bool), over)

    def rewards(self, state, actions):
        raise NotImplementedError

    def counters(self, state):
        del state
        return Counters({}, {})

    def is_last(self, state):
        return state.num_steps == self.episode_limit - 1


@dataclass(frozen=True)
class ConstantValue(Probe):
    """The reward is always 1: the learner only has to learn a constant."""

    def rewards(self, state, actions):
        del state
        return jnp.ones_like(actions)


@dataclass(frozen=True)
class ObservationMatters(Probe):
    """The reward is +1 or −1, depending on the cue but not on the action."""

    def rewards(self, state, actions):
        return jnp.full(actions.shape, 2 * state.cue - 1)


@dataclass(frozen=True)
class DiscountMatters(Probe):
    """A reward of 1 in the last of three steps, worth γ² at the start."""

    episode_limit: int = 3

    def rewards(self, state, actions):
        return jnp.full(actions.shape, self.is_last(state))


@dataclass(frozen=True)
class MemoryMatters(Probe):
    """+1 for the action in the last step that matches the cue of the first step, −1 for the other action."""

    episode_limit: int = 6

    def rewards(self, state, actions):
        is_right = actions == state.cue
        return jnp.where(self.is_last(state), jnp.where(is_right, 1, -1), 0)


@dataclass(frozen=True)
class OppositeRewards(Probe):
    """Two agents with the same observations that are rewarded for opposite actions."""

    num_agents: int = 2

    def rewards(self, state, actions):
        del state
        return jnp.where(actions == jnp.arange(2), 1, -1)


@dataclass(frozen=True)
class PatienceMatters(Probe):
    """Digging (action 1) costs 0.2 ten times and pays 5 the eleventh time; the number of digs is shown one-hot."""

    episode_limit: int = 14
    num_paid: int = 10

    @property
    def observation_scale(self):
        return np.ones(self.episode_limit + 1, np.float32)

    @property
    def observation_limit(self):
        return np.ones(self.episode_limit + 1, int)

    def generate_layout(self, key):
        del key
        return jnp.zeros((), jnp.int32)

    def observe(self, state):
        seen = jnp.arange(self.episode_limit + 1) == state.cue
        return jnp.broadcast_to(seen[None], (self.num_agents, self.episode_limit + 1)).astype(jnp.uint8)

    def advance(self, state, actions, draws):
        following, outcome = super().advance(state, actions, draws)
        return following._replace(cue=state.cue + actions[0]), outcome

    def rewards(self, state, actions):
        pays = jnp.where(state.cue < self.num_paid, -0.2, jnp.where(state.cue == self.num_paid, 5.0, 0.0))
        return jnp.where(actions == 1, pays, 0.0)
