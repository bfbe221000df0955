"""CONS: teachers name their best and worst actions, and students absorb both cautiously (Algorithms 2 and 3)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from consmarl.environments import validation
from consmarl.environments.masks import only_allowed
from consmarl.errors import UsageError
from consmarl.sharing import equations
from consmarl.sharing.equations import Messages
from consmarl.sharing.mechanism import Mechanism
from consmarl.sharing.options import (
    RECOMMENDED,
    RELEASED,
    Eligibility,
    Gained,
    Knowledge,
    Normalisation,
    Preset,
    Sampling,
)
from consmarl.sharing.record import Reply, StudentRecord, TeacherRecord
from consmarl.sharing.requests import Draws, Exchange, Request, Teachers


@dataclass(frozen=True, kw_only=True)
class Cons(Mechanism):
    """Cautiously-optimistic knowledge sharing; defaults are the paper's."""

    eligibility: Eligibility = Eligibility.EITHER  # Eq. 6
    weight_shape: float = 0.0
    """a of Eq. 8 [P: 0 in PGM, 0.3 in FT, -0.5 in Cleanup; C: 0.7 in FT]."""
    knowledge: Knowledge = Knowledge.SCHEDULE
    """Which knowledge counts [P: schedule; C: negative-only]."""
    fixed_negative_weight: float = 0.5
    """w_n, the weight of negative knowledge if it is fixed [C: 0.5]."""
    update_rate: float = 0.6
    """Tau of Eq. 9 [C: 0.6; the paper has none]."""
    policy_temperature: float = 1.0
    """T of Eq. 5 [P: 1]."""
    temperature: float = 1.0
    """Kappa, the temperature of the softmax that gives the new policy [P: 1, implied; C: 0.3]."""
    normalisation: Normalisation = Normalisation.ALL_NAMING
    """Which teachers' weights add up to 1 [P: all-naming; C: passing]."""
    gained: Gained = Gained.PROBABILITY_CHANGED
    """When answers count as knowledge [P: probability-changed; C: teacher-passed]."""
    sampling: Sampling = Sampling.TARGETED
    """How to draw from the new policy [P: targeted]."""
    requires_seen: bool = False
    """Whether teachers must have met the observation [P: no; C: yes]."""

    handles_masks: ClassVar[bool] = True
    handles_branches: ClassVar[bool] = True
    PRESETS: ClassVar[Mapping[Preset, Mapping[str, Any]]] = {
        Preset.PAPER: {},
        Preset.RELEASE: dict(
            **RELEASED,
            knowledge=Knowledge.NEGATIVE_ONLY,
            temperature=0.3,
            normalisation=Normalisation.PASSING,
            gained=Gained.TEACHER_PASSED,
            requires_seen=True,
        ),
        Preset.RECOMMENDED: dict(**RECOMMENDED, temperature=0.1),
    }

    def __post_init__(self) -> None:
        """Validate the settings."""
        super().__post_init__()
        if validation.finite_number("weight_shape", self.weight_shape) > 1:
            raise UsageError(f"weight_shape must be at most 1, not {self.weight_shape}: w_n may not rise above 1.")
        validation.fraction("fixed_negative_weight", self.fixed_negative_weight)
        if not 0 < validation.finite_number("update_rate", self.update_rate) <= 1:
            raise UsageError(f"update_rate must be above 0 and at most 1, not {self.update_rate}.")
        for name in ("policy_temperature", "temperature"):
            if validation.finite_number(name, getattr(self, name)) <= 0:
                raise UsageError(f"{name} must be above 0, not {getattr(self, name)}.")

    def negative_weight(self, episode: jax.Array) -> jax.Array:
        """Return w_n in an episode; w_p is 1 − w_n."""
        fixed = {
            Knowledge.NEGATIVE_ONLY: 1.0,
            Knowledge.POSITIVE_ONLY: 0.0,
            Knowledge.FIXED: self.fixed_negative_weight,
        }
        if self.knowledge in fixed:
            return jnp.full(jnp.shape(episode), fixed[self.knowledge])
        return equations.negative_weight(episode, self.start_episode, self.weight_shape)

    def replies(self, request: Request, teachers: Teachers, draws: Draws) -> jax.Array:
        """Return every teacher's `Reply`: those with more or better experience answer (Algorithm 2)."""
        del draws
        replies = self.may_teach(request, teachers)
        if not self.requires_seen:
            return replies
        return jnp.where(teachers.num_visits > 0, replies, jnp.uint8(Reply.NEVER_SEEN))

    def exchange(self, request: Request, teachers: Teachers, replies: jax.Array, draws: Draws) -> Exchange:
        """Absorb the answers and draw an action (Algorithm 3)."""
        allowed = request.allowed
        told = self._told(teachers, replies, allowed)
        messages = Messages(
            best_action=told.best_action.astype(jnp.int32),
            best_probability=told.best_probability,
            worst_action=told.worst_action.astype(jnp.int32),
            worst_probability=told.worst_probability,
            prestige=told.prestige,
            is_sent=replies == Reply.ANSWERED,
        )
        before = equations.boltzmann_policy(request.values, self.policy_temperature)
        negative = self.negative_weight(request.episode)
        modified = jax.vmap(equations.modified_probability, (0, 0) + (None,) * 5)(
            jnp.arange(len(before)), before, messages, 1 - negative, negative, self.update_rate, self.normalisation
        )
        if self.gained is Gained.PROBABILITY_CHANGED:
            is_advised = jnp.any(modified.probability != before)
        else:
            is_advised = jnp.any(modified.is_raised | modified.is_lowered)
        after = equations.boltzmann_policy(only_allowed(modified.probability, allowed), self.temperature)
        confidence = equations.policy_confidence(after, allowed)
        if self.sampling is Sampling.TARGETED:
            drawn = equations.targeted_exploration(after, confidence, draws.whether, draws.which, allowed)
        else:
            plain = equations.draw_action(after, draws.which)
            drawn = equations.Drawn(plain, jnp.zeros((), bool), jnp.zeros((), jnp.int32))
        student = StudentRecord(
            policy_before=before,
            modified=modified.probability,
            policy_after=after,
            confidence_after=confidence,
            negative_weight=negative,
            is_best=drawn.is_best,
            num_excluded=drawn.num_excluded.astype(jnp.uint8),
            is_advised=is_advised,
            action=drawn.action.astype(jnp.uint8),
        )
        return Exchange(student, told)

    def _told(self, teachers: Teachers, replies: jax.Array, allowed: jax.Array | None) -> TeacherRecord:
        """Return each teacher's message, whether or not it answers; it names only actions the student may take."""
        policies = jax.vmap(equations.boltzmann_policy, (0, None))(teachers.values, self.policy_temperature)
        confidence = jax.vmap(equations.policy_confidence, (0, None))(policies, allowed)
        return TeacherRecord(
            reply=replies,
            num_visits=teachers.num_visits,
            best_action=jnp.argmax(policies, axis=1).astype(jnp.uint8),
            worst_action=jax.vmap(equations.worst_action, (0, None))(policies, allowed).astype(jnp.uint8),
            best_probability=jnp.max(policies, axis=1),
            worst_probability=jax.vmap(equations.worst_probability, (0, None))(policies, allowed),
            confidence=confidence,
            prestige=jax.vmap(equations.prestige)(teachers.num_visits, confidence),
            max_value=jnp.max(teachers.values, axis=1),
        )
