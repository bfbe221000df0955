"""No sharing: agents do what they would do by themselves."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from consmarl.sharing.interface import AskTeachers, Shared, Sharing, Situation, Traffic


@dataclass(frozen=True)
class NoSharing(Sharing):
    """Nobody asks, nobody counts."""

    def init(self, num_agents: int, num_actions: int) -> tuple[()]:
        """Nothing is kept."""
        del num_agents, num_actions
        return ()

    def begin(self, num_agents: int, num_envs: int, episode_limit: int) -> tuple[()]:
        """Nothing is remembered."""
        del num_agents, num_envs, episode_limit
        return ()

    def share(
        self,
        key: jax.Array,
        situation: Situation,
        ask_teachers: AskTeachers,
        state: tuple[()],
        memory: tuple[()],
        *,
        is_recording: bool = False,
    ) -> Shared:
        """Do what exploration says."""
        del key, ask_teachers, is_recording
        nothing = jnp.zeros(situation.actions.shape, jnp.int32)
        return Shared(situation.actions, Traffic(nothing, nothing, nothing, nothing), state, memory, ())
