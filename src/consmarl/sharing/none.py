"""No sharing: agents act on their own."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from consmarl.sharing.interface import PrepareTeachers, Shared, Sharing, Situation, Traffic
from consmarl.sharing.record import ActRecord


@dataclass(frozen=True)
class NoSharing(Sharing):
    """No requests and no counts."""

    handles_masks = True
    handles_branches = True

    def init(self, num_agents: int, num_actions: int) -> tuple[()]:
        """Return an empty state."""
        del num_agents, num_actions
        return ()

    def begin(self, num_agents: int, num_envs: int, episode_limit: int) -> tuple[()]:
        """Return an empty memory."""
        del num_agents, num_envs, episode_limit
        return ()

    def share(
        self,
        key: jax.Array,
        situation: Situation,
        prepare_teachers: PrepareTeachers,
        state: tuple[()],
        memory: tuple[()],
        *,
        is_recording: bool = False,
    ) -> Shared:
        """Return the agents' own actions."""
        del key, prepare_teachers
        nothing = jnp.zeros(situation.is_exploring.shape, jnp.int32)
        done = situation.actions.astype(jnp.uint8)
        record = (
            ActRecord(situation.values, situation.is_exploring, done, done, situation.allowed) if is_recording else ()
        )
        return Shared(situation.actions, Traffic(nothing, nothing, nothing, nothing), state, memory, record)


ALONE = NoSharing()  # how the paper evaluates policies, and the default of every evaluation
