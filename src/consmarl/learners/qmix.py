"""QMIX: the team's value is a monotonic function of the agents' values that depends on the state."""

from dataclasses import dataclass

import jax

from consmarl.environments.validation import Size
from consmarl.learners.team_value import TeamValue
from consmarl.networks.mixer import MixerParameters, init_mixer, mix


@dataclass(frozen=True)
class QMIX(TeamValue):
    """Q_tot = f_s(Q_1, …, Q_n) with ∂Q_tot/∂Q_i ≥ 0, so that the agents' best actions are the team's."""

    mixer_size: Size = 32
    """Width of the mixing network [C: 32]."""

    def init_mixer(self, key: jax.Array) -> MixerParameters:
        """Draw the mixing network's initial weights."""
        return init_mixer(key, self.spec.num_agents, self._state_size, self.mixer_size)

    def mix(self, mixer: MixerParameters, values: jax.Array, states: jax.Array) -> jax.Array:
        """Mix the values with weights that depend on the state."""
        return mix(mixer, values, states)

    @property
    def _state_size(self) -> int:
        return self.spec.num_agents * self.spec.observation_size
