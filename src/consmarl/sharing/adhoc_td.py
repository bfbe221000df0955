"""AdHocTD: teachers name their best action, and students follow the majority (Eq. 1 and 2)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from consmarl.environments import validation
from consmarl.errors import UsageError
from consmarl.sharing import equations
from consmarl.sharing.mechanism import Mechanism
from consmarl.sharing.options import RECOMMENDED, RELEASED, Giving, Preset
from consmarl.sharing.record import Reply, StudentRecord, TeacherRecord
from consmarl.sharing.requests import Draws, Exchange, Request, Teachers


@dataclass(frozen=True, kw_only=True)
class AdHocTD(Mechanism):
    """Advice by majority; defaults are the paper's."""

    give_scale: float = 1.5
    """Upsilon_g of Eq. 2 [P: 1.5]."""
    giving: Giving = Giving.BY_IMPORTANCE
    """Which teachers answer [P: by-importance; C: always]."""

    handles_masks: ClassVar[bool] = True
    handles_branches: ClassVar[bool] = True
    PRESETS: ClassVar[Mapping[Preset, Mapping[str, Any]]] = {
        Preset.PAPER: {},
        Preset.RELEASE: dict(
            **RELEASED,
            giving=Giving.ALWAYS,
        ),
        Preset.RECOMMENDED: RECOMMENDED,
    }

    def __post_init__(self) -> None:
        """Validate the settings."""
        super().__post_init__()
        if validation.finite_number("give_scale", self.give_scale) <= 0:
            raise UsageError(f"give_scale must be above 0, not {self.give_scale}: at 0 nobody ever answers.")

    def replies(self, request: Request, teachers: Teachers, draws: Draws) -> jax.Array:
        """Return every teacher's `Reply`: eligible ones answer with the probability of Eq. 2, 0 without visits."""
        replies = self.may_teach(request, teachers)
        if self.giving is Giving.ALWAYS:
            return replies
        chance = jax.vmap(equations.giving_probability, (0, 0, None, None))(
            teachers.num_visits, teachers.values, self.give_scale, request.allowed
        )
        is_held_back = (replies == Reply.ANSWERED) & (draws.giving >= chance)
        replies = jnp.where(is_held_back, jnp.uint8(Reply.UNIMPORTANT), replies)
        return jnp.where(teachers.num_visits > 0, replies, jnp.uint8(Reply.NEVER_SEEN))

    def exchange(self, request: Request, teachers: Teachers, replies: jax.Array, draws: Draws) -> Exchange:
        """Take the action that most teachers name as the best; ties are broken at random."""
        is_sent = replies == Reply.ANSWERED
        best = jnp.argmax(teachers.values, axis=1)
        num_actions = len(request.values)
        votes = jnp.sum((best[:, None] == jnp.arange(num_actions)[None, :]) & is_sent[:, None], axis=0)
        is_ahead = (votes == jnp.max(votes)).astype(jnp.float32)
        if request.allowed is not None:  # without answers, all actions have equally many votes
            is_ahead *= request.allowed
        policies = jax.vmap(equations.boltzmann_policy)(teachers.values)
        nothing = jnp.zeros(best.shape)
        told = TeacherRecord(
            reply=replies,
            num_visits=teachers.num_visits,
            best_action=best.astype(jnp.uint8),
            worst_action=jnp.zeros(best.shape, jnp.uint8),
            best_probability=jnp.max(policies, axis=1),
            worst_probability=nothing,
            confidence=nothing,
            prestige=nothing,
            max_value=jnp.max(teachers.values, axis=1),
        )
        student = StudentRecord(
            policy_before=equations.boltzmann_policy(request.values),
            modified=votes.astype(jnp.float32),
            policy_after=is_ahead / jnp.sum(is_ahead),
            confidence_after=jnp.zeros(()),
            negative_weight=jnp.zeros(()),
            is_best=jnp.zeros((), bool),
            num_excluded=jnp.zeros((), jnp.uint8),
            is_advised=jnp.any(is_sent),
            action=equations.draw_action(is_ahead, draws.which).astype(jnp.uint8),
        )
        return Exchange(student, told)
