"""Consulting the team during execution: agents that act greedily ask all teammates in every step.

Agents that learned the same task separately form an ensemble. Here every agent asks for the others' values in its
situation, given its episode so far (`TeacherMemory.HISTORY`), and acts on the team's combined judgement.
Visits are not counted and no budget is spent; the number of messages is reported. The paper evaluates agents without
consulting, so this is a separate mode of execution and never part of the paper's figures.

Axes: `[agent, env, …]`, and `[teacher, action]` for one student. If actions have several dimensions, whether a teammate
answers is decided for all of them together, and each dimension is scored separately.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from consmarl.environments.branches import of_every_branch
from consmarl.environments.masks import choices, only_allowed
from consmarl.errors import UsageError
from consmarl.records import settle
from consmarl.sharing import equations
from consmarl.sharing.equations import Messages
from consmarl.sharing.interface import PrepareTeachers, Shared, Sharing, Situation, Traffic
from consmarl.sharing.options import Consult, Normalisation, TeacherMemory
from consmarl.sharing.record import Reply, StepRecord, StudentRecord, TeacherRecord

ONLY_HOPEFUL = (Consult.BEST, Consult.CONS)  # modes in which only teammates that expect more than the student answer
NEGATIVE_WEIGHT = 0.5  # w_n of Eq. 8: the schedule belongs to training, so both kinds of knowledge count equally
UPDATE_RATE = 0.6  # τ of Eq. 9, as in training


@dataclass(frozen=True)
class Consulting(Sharing):
    """Every agent asks all teammates in every step."""

    mode: Consult = Consult.MEAN

    teacher_memory = TeacherMemory.HISTORY
    handles_masks = True
    handles_branches = True

    def __post_init__(self) -> None:
        """Convert the mode to its type."""
        settle(self)

    def init(self, num_agents: int, num_actions: int) -> tuple[()]:
        """Return an empty state; a team of one is refused."""
        del num_actions
        if num_agents < 2:
            raise UsageError("a team of one has nobody to consult: leave --consult out.")
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
        """Ask all teammates, and take the action with the highest score."""
        del key
        num_agents, num_envs = situation.is_exploring.shape
        is_asking = jnp.broadcast_to(situation.is_live[None, :], situation.is_exploring.shape)
        ready = prepare_teachers(is_asking)
        students, envs = jnp.divmod(jnp.arange(num_agents * num_envs), num_envs)
        asked = ready.ask_teachers(students, envs)  # [teacher, pair, …, action]
        values = jnp.moveaxis(asked.reshape(num_agents, num_agents, num_envs, *asked.shape[2:]), 0, 2)
        # the student's own network would repeat its values, up to rounding
        is_self = jnp.expand_dims(jnp.eye(num_agents, dtype=bool), (1, *range(3, values.ndim)))
        values = jnp.where(is_self, situation.values[:, :, None], values)  # [student, env, teacher, …, action]
        allowed = None if situation.allowed is None else choices(situation.allowed)  # [student, env, …, action]
        values = only_allowed(values, None if allowed is None else allowed[:, :, None])

        def over_envs(student: jax.Array, rows: jax.Array, may: jax.Array | None) -> tuple[jax.Array, jax.Array]:
            return jax.vmap(lambda row, may: self._scored(student, row, may))(rows, may)

        scores, is_sent = jax.vmap(over_envs)(jnp.arange(num_agents), values, allowed)
        chosen = jnp.argmax(scores, axis=-1).astype(jnp.int32)
        actions = jnp.where(of_every_branch(is_asking, chosen), chosen, situation.actions)
        is_sent &= is_asking[:, :, None]  # [student, env, teacher]
        traffic = Traffic(
            requests=is_asking.astype(jnp.int32),
            answers=is_sent.sum(axis=2),
            taught=is_sent.sum(axis=0).T,
            advised=(is_asking & jnp.any(is_sent, axis=2)).astype(jnp.int32),
        )
        record = self._record(situation, values, scores, is_sent, actions, allowed) if is_recording else ()
        return Shared(actions, traffic, state, memory, record, ready.recall)

    def _scored(self, student: jax.Array, values: jax.Array, allowed: jax.Array | None) -> tuple[jax.Array, jax.Array]:
        """Return the team's scores of a student's actions [..., action], and which teammates answer, bool [teacher].

        Scores, and `values` [teacher, ..., action], are −∞ for forbidden actions.
        """
        is_other = jnp.arange(len(values)) != student
        if self.mode in ONLY_HOPEFUL:
            is_sent = is_other & jax.vmap(equations.is_more_hopeful, (0, None))(values, values[student])
        else:
            is_sent = is_other
        score = SCORES[self.mode]
        if values.ndim > 2:
            score = jax.vmap(score, (0, 1, None, 0))
        return only_allowed(score(values[student], values, is_sent, allowed), allowed), is_sent

    def _record(
        self,
        situation: Situation,
        values: jax.Array,
        scores: jax.Array,
        is_sent: jax.Array,
        actions: jax.Array,
        allowed: jax.Array | None,
    ) -> StepRecord:
        """Return a record in the same form as for a request in training; fields without a counterpart are zero."""
        by_teacher = None if allowed is None else jnp.broadcast_to(allowed[:, :, None], values.shape)
        policies = jax.nn.softmax(values, axis=-1)
        nothing, none_left = jnp.zeros(actions.shape), jnp.zeros(is_sent.shape[:2], jnp.int32)
        is_asking = situation.is_live[None, :] & jnp.ones(is_sent.shape[:2], bool)
        is_advised = is_asking & jnp.any(is_sent, axis=2)
        is_best, is_advised = (_in_every_branch(flags, actions) for flags in (is_asking, is_advised))
        is_self = jnp.eye(len(actions), dtype=bool)[:, None, :]
        silent = jnp.where(is_self, Reply.NOT_ASKED, Reply.NOT_MORE_HOPEFUL)
        teachers = TeacherRecord(
            reply=jnp.where(is_sent, Reply.ANSWERED, silent).astype(jnp.uint8),
            num_visits=jnp.zeros(is_sent.shape, jnp.int32),
            best_action=jnp.argmax(values, axis=-1).astype(jnp.uint8),
            worst_action=_over(equations.worst_action, values, by_teacher).astype(jnp.uint8),
            best_probability=jnp.max(policies, axis=-1),
            worst_probability=_over(equations.worst_probability, policies, by_teacher),
            confidence=_over(equations.policy_confidence, policies, by_teacher),
            prestige=jnp.zeros(values.shape[:-1]),
            max_value=jnp.max(values, axis=-1),
        )
        student = StudentRecord(
            policy_before=jax.nn.softmax(only_allowed(situation.values, allowed), axis=-1),
            modified=scores if allowed is None else jnp.where(allowed, scores, 0.0),
            policy_after=_shares(self.mode, scores, allowed),
            confidence_after=nothing,
            negative_weight=jnp.full(actions.shape, NEGATIVE_WEIGHT if self.mode is Consult.CONS else 0.0),
            is_best=is_best,
            num_excluded=jnp.zeros(actions.shape, jnp.uint8),
            is_advised=is_advised,
            action=actions.astype(jnp.uint8),
        )
        return StepRecord(
            is_asking=is_asking,
            ask_probability=is_asking.astype(jnp.float32),
            num_visits=none_left,
            values=situation.values,
            is_exploring=situation.is_exploring,
            own_action=situation.actions.astype(jnp.uint8),
            action=actions.astype(jnp.uint8),
            requests_left=none_left,
            answers_left=none_left,
            student=student,
            teachers=teachers,
            allowed=situation.allowed,
        )


def mean_of_team(own: jax.Array, values: jax.Array, is_sent: jax.Array, allowed: jax.Array | None = None) -> jax.Array:
    """Score actions by the mean of the team's values, including the student's own."""
    del own, is_sent, allowed
    return jnp.mean(values, axis=0)


def votes_of_team(own: jax.Array, values: jax.Array, is_sent: jax.Array, allowed: jax.Array | None = None) -> jax.Array:
    """Score actions by the number of agents that would take them; ties go to the action the student values most."""
    del is_sent, allowed
    votes = jnp.sum(jnp.argmax(values, axis=1)[:, None] == jnp.arange(len(own))[None, :], axis=0)
    return votes + 0.5 * jax.nn.softmax(own)  # less than a vote


def most_hopeful(own: jax.Array, values: jax.Array, is_sent: jax.Array, allowed: jax.Array | None = None) -> jax.Array:
    """Score actions by the values of the teammate with the highest max Q; by the student's own if none is higher."""
    del allowed
    hopes = jnp.where(is_sent, jnp.max(values, axis=1), -jnp.inf)
    return jnp.where(jnp.any(is_sent), values[jnp.argmax(hopes)], own)


def absorbed_policy(
    own: jax.Array, values: jax.Array, is_sent: jax.Array, allowed: jax.Array | None = None
) -> jax.Array:
    """Score actions by p̃ of Eq. 9: the student's policy moved by the best and worst actions of those who answer.

    Visits are not counted during execution, so a teammate's prestige (Eq. 7) is its confidence Γ alone.
    """
    policies = jax.nn.softmax(values, axis=1)
    messages = Messages(
        best_action=jnp.argmax(policies, axis=1),
        best_probability=jnp.max(policies, axis=1),
        worst_action=jax.vmap(equations.worst_action, (0, None))(policies, allowed),
        worst_probability=jax.vmap(equations.worst_probability, (0, None))(policies, allowed),
        prestige=jax.vmap(equations.policy_confidence, (0, None))(policies, allowed),
        is_sent=is_sent,
    )
    modified = jax.vmap(equations.modified_probability, (0, 0) + (None,) * 5)(
        jnp.arange(len(own)), equations.boltzmann_policy(own), messages, jnp.asarray(1 - NEGATIVE_WEIGHT),
        jnp.asarray(NEGATIVE_WEIGHT), UPDATE_RATE, Normalisation.ALL_NAMING,
    )  # fmt: skip
    return modified.probability


SCORES = {
    Consult.MEAN: mean_of_team,
    Consult.VOTE: votes_of_team,
    Consult.BEST: most_hopeful,
    Consult.CONS: absorbed_policy,
}


def _shares(mode: Consult, scores: jax.Array, allowed: jax.Array | None) -> jax.Array:
    """Convert scores, which are −∞ for forbidden actions, to shares that add up to 1, for pictures."""
    if mode in (Consult.MEAN, Consult.BEST):
        return jax.nn.softmax(scores, axis=-1)
    scores = scores if allowed is None else jnp.where(allowed, scores, 0.0)
    return scores / jnp.sum(scores, axis=-1, keepdims=True)


def _in_every_branch(flags: jax.Array, actions: jax.Array) -> jax.Array:
    """Return flags [agent, env] for every dimension of actions."""
    return jnp.broadcast_to(of_every_branch(flags, actions), actions.shape)


def _over(function: Any, rows: jax.Array, allowed: jax.Array | None) -> jax.Array:
    """Apply a function of a row [action] and its mask along the last axis."""
    for _ in rows.shape[:-1]:
        function = jax.vmap(function)
    applied: jax.Array = function(rows, allowed)
    return applied
