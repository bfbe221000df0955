"""VDN, value decomposition: the team's value is the sum of the agents' values."""

from dataclasses import dataclass
from typing import ClassVar

import jax

from consmarl.learners.team_value import TeamValue


@dataclass(frozen=True)
class VDN(TeamValue):
    """Q_tot = Σ_i Q_i."""

    handles_branches: ClassVar[bool] = True

    def init_mixer(self, key: jax.Array) -> tuple[()]:
        """Return no parameters: a sum has none."""
        del key
        return ()

    def mix(self, mixer: tuple[()], values: jax.Array, states: jax.Array) -> jax.Array:
        """Sum the values."""
        del mixer, states
        return values.sum(axis=0)
