"""Acting with recurrent Q-networks, shared by all methods whose agents have their own memories and values."""

import abc
from typing import Any, TypeVar

import jax

from consmarl.learners.interface import Learner
from consmarl.learners.team_networks import TeamNetworks

StateT = TypeVar("StateT")


class RecurrentQ(Learner[Any, StateT, Any]):
    """A learner whose agents act on their own Q-networks."""

    @property
    @abc.abstractmethod
    def networks(self) -> TeamNetworks:
        """The networks that act."""

    def begin(self, parameters: Any, key: jax.Array, codes: jax.Array) -> Any:
        """Return empty memories."""
        del parameters, key
        return self.networks.first_memory(codes.shape[1])

    def act(
        self, parameters: Any, memory: Any, codes: jax.Array, last_actions: jax.Array, key: jax.Array
    ) -> tuple[Any, jax.Array]:
        """Return every agent's own Q-values."""
        del key
        return self.networks.step(parameters, memory, codes, last_actions)
