"""Records of a request and of a whole step: the data behind every picture of an exchange.

The fields are the same for CONS and AdHocTD; fields that a method does not use are zero.
"""

import enum
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp


class Reply(enum.IntEnum):
    """How a teacher reacted to a request."""

    NOT_ASKED = 0  # the student itself
    ANSWERED = 1
    NO_BUDGET = 2  # it would have answered
    NEVER_SEEN = 3  # it never met the observation, so it does not answer
    KNOWS_LESS = 4  # Eq. 6 does not hold
    UNIMPORTANT = 5  # the draw of Eq. 2 failed
    NOT_MORE_FAMILIAR = 6  # it has not met the observation more often, which is required
    NOT_MORE_HOPEFUL = 7  # it does not expect (enough) more, which is required


class ActRecord(NamedTuple):
    """A step of agents that do not share; [agent, env, …]."""

    values: jax.Array  # float32 [agent, env, action], or the scores of a learner without values
    is_exploring: jax.Array  # bool
    own_action: jax.Array  # uint8
    action: jax.Array  # uint8, the same
    allowed: Any = None  # bool [agent, env, action]; None if nothing is ever forbidden


class TeacherRecord(NamedTuple):
    """One teacher's side of a request; [teacher] in a request."""

    reply: jax.Array  # uint8, a `Reply`
    num_visits: jax.Array  # int32, n_j(o_i)
    best_action: jax.Array  # uint8
    worst_action: jax.Array  # uint8
    best_probability: jax.Array  # float32
    worst_probability: jax.Array  # float32
    confidence: jax.Array  # float32, Γ
    prestige: jax.Array  # float32, Λ
    max_value: jax.Array  # float32


class StudentRecord(NamedTuple):
    """The student's side of a request."""

    policy_before: jax.Array  # float32 [action], π
    modified: jax.Array  # float32 [action], p̃; the votes in AdHocTD
    policy_after: jax.Array  # float32 [action], π̃; in AdHocTD uniform over the actions with the most votes
    confidence_after: jax.Array  # float32, Γ̃
    negative_weight: jax.Array  # float32, w_n
    is_best: jax.Array  # bool, the best action was taken because the policy is confident
    num_excluded: jax.Array  # uint8, actions excluded from the draw
    is_advised: jax.Array  # bool, the answers contained knowledge and were followed
    action: jax.Array  # uint8, the action drawn; executed if `is_advised`


class StepRecord(NamedTuple):
    """A step of all agents; [agent, env, …]. Fields of requests are zero for agents that did not ask."""

    is_asking: jax.Array  # bool
    ask_probability: jax.Array  # float32, P_ask
    num_visits: jax.Array  # int32, n_i(o_i), including this visit
    values: jax.Array  # float32 [agent, env, action]
    is_exploring: jax.Array  # bool
    own_action: jax.Array  # uint8, its action without advice
    action: jax.Array  # uint8, the action it took
    requests_left: jax.Array  # int32, after this step
    answers_left: jax.Array  # int32
    student: StudentRecord
    teachers: TeacherRecord  # [agent, env, teacher]
    allowed: Any = None  # bool [agent, env, action]; None if nothing is ever forbidden


def blank(shapes: Any, num_requests: int) -> Any:
    """Return empty records of `num_requests` requests, given the shapes of a single request's record."""
    return jax.tree.map(lambda leaf: jnp.zeros((num_requests, *leaf.shape), leaf.dtype), shapes)
