"""An environment with continuous actions and a known solution: match every number to the target that is shown."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from consmarl.environments.actions import divided
from tests.probes.worlds import Probe

BINS = 5
NUM_TARGETS = 4


@dataclass(frozen=True)
class Aim(Probe):
    """A Box of several dimensions from −1 to 1; the reward is −Σ (a − target)², at best 0.

    The target is one of the bins in every dimension, drawn anew in every episode and shown one-hot. With `lacks`, the
    last choice of the second dimension is forbidden.
    """

    id: str = "aim"
    num_agents: int = 2
    episode_limit: int = 2
    num_dimensions: int = 2
    lacks: bool = False
    action_names: tuple[str, ...] = ("-1", "-0.5", "0", "0.5", "1")

    @property
    def num_branches(self):
        return self.num_dimensions

    @property
    def masks_actions(self):
        return self.lacks

    def allowed_actions(self, state):
        allowed = super().allowed_actions(state)
        return allowed.at[:, 1, BINS - 1].set(False) if self.lacks else allowed

    @property
    def observation_scale(self):
        return np.ones(NUM_TARGETS, np.float32)

    @property
    def observation_limit(self):
        return np.ones(NUM_TARGETS, int)

    def targets(self):
        """The target bins [cue, dimension]; no two cues share a bin in any dimension."""
        return (np.arange(NUM_TARGETS)[:, None] + np.arange(self.num_dimensions)[None]) % (BINS - 1)

    def values(self):
        return jnp.asarray(divided("aim", -1.0, 1.0, (self.num_dimensions,), np.float32, BINS).table)

    def generate_layout(self, key):
        return jax.random.randint(key, (), 0, NUM_TARGETS)

    def observe(self, state):
        shown = jnp.arange(NUM_TARGETS) == state.cue
        return jnp.broadcast_to(shown[None], (self.num_agents, NUM_TARGETS)).astype(jnp.uint8)

    def rewards(self, state, actions):
        values, dimensions = self.values(), jnp.arange(self.num_dimensions)
        taken = values[dimensions[None], actions.reshape(self.num_agents, self.num_dimensions)]
        wanted = values[dimensions, jnp.asarray(self.targets())[state.cue]]
        return -jnp.sum((taken - wanted[None]) ** 2, axis=-1)
