"""Process the requests of one step in order: which teachers answer, within their budgets, and the outcome.

Requests are few, so they are gathered into short lists, and teachers are asked only about those: the cost depends on
the number of requests, not on the square of the team size. They are processed by environment and, within it, by the
student's number, as if agents acted one by one; a teacher whose budget runs out answers the earlier ones.

If actions have several dimensions, a request is about all of them: teachers name a best and a worst choice in each,
and the student absorbs them dimension by dimension.

Axes: `[agent, env]` outside, `[pair]` inside, environment by environment.
"""

from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp

from consmarl.environments.masks import choices, only_allowed
from consmarl.sharing.counting import Counting
from consmarl.sharing.interface import AskTeachers, Situation
from consmarl.sharing.record import Reply, StudentRecord, TeacherRecord, blank


class Request(NamedTuple):
    """A student's message and its sender: m_s = (o, n, max Q)."""

    student: jax.Array  # int32
    values: jax.Array  # float32 [action], or [branch, action]
    num_visits: jax.Array  # int32
    episode: jax.Array  # int32
    allowed: Any = None  # bool [..., action], the student's mask: other values are −∞; with None, nothing is forbidden


class Teachers(NamedTuple):
    """Every teacher's values and visits for a request's observation: all agents, then experts beside the team."""

    values: jax.Array  # float32 [teacher, ..., action], −∞ for actions the student may not take
    num_visits: jax.Array  # int32 [teacher]


class Draws(NamedTuple):
    """Random numbers for one request, uniform in [0, 1)."""

    whether: jax.Array  # scalar or [branch]
    which: jax.Array  # scalar or [branch]
    giving: jax.Array  # [teacher]


class Exchange(NamedTuple):
    """The outcome of a request."""

    student: StudentRecord
    teachers: TeacherRecord


class Answering(Protocol):
    """The part of a mechanism that processes requests."""

    @property
    def enforces_answer_budget(self) -> bool:
        """Whether answering costs budget."""

    @property
    def requests_at_once(self) -> int:
        """Number of requests that are processed together."""

    @property
    def counter(self) -> Counting:
        """The way to count."""

    def seats(self, agents: jax.Array, episodes: jax.Array) -> jax.Array:
        """Return the ids under which agents' visits are counted."""

    def replies(self, request: Request, teachers: Teachers, draws: Draws) -> jax.Array:
        """Return a `Reply` for every agent, as if it were a teacher with budget: uint8 [teacher]."""

    def exchange(self, request: Request, teachers: Teachers, replies: jax.Array, draws: Draws) -> Exchange:
        """Return the outcome of the answers for an action of one dimension."""


class Asked(NamedTuple):
    """A step in which some agents have asked."""

    situation: Situation
    is_asking: jax.Array  # bool [agent, env]
    marks: jax.Array  # [agent, env, mark], which identify observations in counts
    num_visits: jax.Array  # int32 [agent, env]
    table: Any  # the counts


class Outcome(NamedTuple):
    """The outcome of a step's requests; [agent, env, …] at the end, [pair, …] in between."""

    num_done: jax.Array
    answers_left: jax.Array  # int32 [teacher]
    actions: jax.Array  # int32, of advised agents; [..., branch] if actions have several dimensions
    is_advised: jax.Array  # bool, of the same shape
    num_answers: jax.Array  # int32, messages a student received
    taught: jax.Array  # int32, messages an agent gave
    expert_answers: Any  # int32, messages a student received from experts beside the team; () without any
    records: Any  # (StudentRecord, TeacherRecord), or () if nothing is recorded


def draws_of(key: jax.Array, num_teachers: int, num_branches: int = 1) -> Draws:
    """Draw the random numbers for one request."""
    drawn = jax.random.uniform(key, (num_teachers + 2 * num_branches,))
    if num_branches == 1:
        return Draws(drawn[0], drawn[1], drawn[2:])
    whether, which, giving = jnp.split(drawn, (num_branches, 2 * num_branches))
    return Draws(whether, which, giving)


def willing(mechanism: Answering, request: Request, teachers: Teachers, draws: Draws) -> jax.Array:
    """Return a `Reply` for every agent, ignoring budgets."""
    is_student = jnp.arange(len(teachers.num_visits)) == request.student
    return jnp.where(is_student, jnp.uint8(Reply.NOT_ASKED), mechanism.replies(request, teachers, draws))


def within_budget(mechanism: Answering, replies: jax.Array, has_budget: jax.Array) -> jax.Array:
    """Return the replies, with NO_BUDGET for teachers that would answer but have no budget left."""
    if not mechanism.enforces_answer_budget:
        return replies
    return jnp.where((replies == Reply.ANSWERED) & ~has_budget, jnp.uint8(Reply.NO_BUDGET), replies)


def answer_one(
    mechanism: Answering, key: jax.Array, request: Request, teachers: Teachers, has_budget: jax.Array
) -> Exchange:
    """Process one request, given which teachers have budget left."""
    draws = draws_of(key, len(has_budget), _num_branches(request))
    replies = within_budget(mechanism, willing(mechanism, request, teachers, draws), has_budget)
    return exchanged(mechanism, request, teachers, replies, draws)


def _num_branches(request: Request) -> int:
    return 1 if request.values.ndim == 1 else request.values.shape[0]


def exchanged(mechanism: Answering, request: Request, teachers: Teachers, replies: jax.Array, draws: Draws) -> Exchange:
    """Return the outcome of the answers, computed for every dimension of an action separately.

    With several dimensions, the student's record is [branch, …] and the teachers' [teacher, branch], except for
    `reply` and `num_visits`, which are the same for all dimensions.
    """
    if _num_branches(request) == 1:
        return mechanism.exchange(request, teachers, replies, draws)
    asked = Request(student=None, values=0, num_visits=None, episode=None, allowed=0)  # type: ignore[arg-type]
    told = TeacherRecord(*(1,) * len(TeacherRecord._fields))._replace(reply=None, num_visits=None)  # type: ignore[arg-type]
    by_branch = jax.vmap(
        mechanism.exchange,
        in_axes=(asked, Teachers(1, None), None, Draws(0, 0, None)),  # type: ignore[arg-type]
        out_axes=Exchange(0, told),  # type: ignore[arg-type]
    )
    return by_branch(request, teachers, replies, draws)


def work_off(
    mechanism: Answering,
    key: jax.Array,
    asked: Asked,
    ask_teachers: AskTeachers,
    answers_left: jax.Array,
    *,
    is_recording: bool,
) -> Outcome:
    """Process all requests of a step.

    There are as many teachers as `answers_left` has rows: all agents, then experts beside the team, if there are any.
    """
    num_agents, num_envs = asked.is_asking.shape
    num_teachers = len(answers_left)
    num_pairs = asked.is_asking.size
    at_once = min(mechanism.requests_at_once, num_pairs)
    in_order = asked.is_asking.T.reshape(-1)
    (queue,) = jnp.nonzero(in_order, size=num_pairs, fill_value=num_pairs)
    queue = jnp.concatenate([queue, jnp.full(at_once, num_pairs)]).astype(jnp.int32)
    num_requests = jnp.sum(in_order)

    def next_ones(outcome: Outcome) -> Outcome:
        numbers = jax.lax.dynamic_slice_in_dim(queue, outcome.num_done, at_once)
        return _answer_some(mechanism, key, asked, ask_teachers, numbers, outcome)

    nothing = jnp.zeros(num_pairs, jnp.int32)
    num_branches = asked.situation.num_branches
    in_branches = nothing if num_branches == 1 else jnp.zeros((num_pairs, num_branches), jnp.int32)
    records = _blank_records(mechanism, asked.situation, num_pairs, num_teachers) if is_recording else ()
    first = Outcome(jnp.zeros((), jnp.int32), answers_left, in_branches, in_branches.astype(bool), nothing, nothing,
                    nothing if num_teachers > num_agents else (), records)  # fmt: skip
    last = jax.lax.while_loop(lambda outcome: outcome.num_done < num_requests, next_ones, first)
    by_pair = jax.tree.map(lambda rows: rows.reshape(num_envs, num_agents, *rows.shape[1:]).swapaxes(0, 1), last[2:])
    return Outcome(last.num_done, last.answers_left, *by_pair)


def _answer_some(
    mechanism: Answering,
    key: jax.Array,
    asked: Asked,
    ask_teachers: AskTeachers,
    numbers: jax.Array,
    outcome: Outcome,
) -> Outcome:
    """Process the requests of these pairs; a number beyond the last pair stands for no request."""
    num_agents, num_pairs = asked.is_asking.shape[0], asked.is_asking.size
    agents, is_request = jnp.arange(num_agents), (numbers < num_pairs)[:, None]
    pairs = jnp.minimum(numbers, num_pairs - 1)
    students, envs = pairs % num_agents, pairs // num_agents
    situation = asked.situation
    allowed = None if situation.allowed is None else choices(situation.allowed[students, envs])
    requests = Request(students, only_allowed(situation.values[students, envs], allowed),
                       asked.num_visits[students, envs], situation.episode[envs], allowed)  # fmt: skip
    seats = mechanism.seats(agents[None, :], situation.episode[envs][:, None])
    seats = jnp.broadcast_to(seats, (len(pairs), num_agents))
    marks = jnp.repeat(asked.marks[students, envs][:, None, :], num_agents, axis=1)
    num_visits = mechanism.counter.lookup(asked.table, marks, seats)
    num_experts = len(outcome.answers_left) - num_agents
    if num_experts:
        num_visits = _with_experts(num_visits, requests.num_visits, num_experts)
    values = ask_teachers(students, envs).swapaxes(0, 1)  # [request, teacher, …]
    teachers = Teachers(only_allowed(values, None if allowed is None else allowed[:, None]), num_visits)
    num_branches = situation.num_branches
    draws = jax.vmap(lambda pair: draws_of(jax.random.fold_in(key, pair), num_agents + num_experts, num_branches))(
        pairs
    )
    replies = jax.vmap(lambda *each: willing(mechanism, *each))(requests, teachers, draws)
    would = (replies == Reply.ANSWERED) & is_request
    has_budget = (jnp.cumsum(would, axis=0) - would) < outcome.answers_left[None, :]
    replies = within_budget(mechanism, replies, has_budget)
    exchanges = jax.vmap(lambda *each: exchanged(mechanism, *each))(requests, teachers, replies, draws)
    answers = ((replies == Reply.ANSWERED) & is_request).astype(jnp.int32)
    student, expert_answers = exchanges.student, outcome.expert_answers
    if num_experts:
        expert_answers = expert_answers.at[numbers].set(answers[:, num_agents:].sum(axis=1), mode="drop")
    return Outcome(
        num_done=outcome.num_done + len(numbers),
        answers_left=outcome.answers_left - answers.sum(axis=0) * mechanism.enforces_answer_budget,
        actions=outcome.actions.at[numbers].set(student.action.astype(jnp.int32), mode="drop"),
        is_advised=outcome.is_advised.at[numbers].set(student.is_advised, mode="drop"),
        num_answers=outcome.num_answers.at[numbers].set(answers.sum(axis=1), mode="drop"),
        taught=outcome.taught.at[envs[:, None] * num_agents + agents[None, :]].add(answers[:, :num_agents]),
        expert_answers=expert_answers,
        records=_noted(outcome.records, numbers, exchanges),
    )


def _with_experts(num_visits: jax.Array, of_students: jax.Array, num_experts: int) -> jax.Array:
    """Return visits [request, teacher] with those of experts beside the team, who have no counts in this run.

    They count as having met an observation exactly as often as the student. So in Eq. 6 only what they expect decides,
    and their prestige (Eq. 7) is comparable to that of agents.
    """
    theirs = jnp.repeat(of_students[:, None], num_experts, axis=1)
    return jnp.concatenate([num_visits, theirs], axis=1)


def _noted(records: Any, numbers: jax.Array, exchanges: Exchange) -> Any:
    if not records:
        return records
    return jax.tree.map(lambda rows, new: rows.at[numbers].set(new, mode="drop"), records, exchanges)


def _blank_records(mechanism: Answering, situation: Situation, num_pairs: int, num_teachers: int) -> Exchange:
    choices_shape = situation.values.shape[2:]
    integer = jnp.zeros((), jnp.int32)
    allowed = None if situation.allowed is None else jnp.ones(choices_shape, bool)
    request = Request(integer, jnp.zeros(choices_shape), integer, integer, allowed)
    teachers = Teachers(jnp.zeros((num_teachers, *choices_shape)), jnp.zeros(num_teachers, jnp.int32))
    shapes = jax.eval_shape(
        lambda key: answer_one(mechanism, key, request, teachers, jnp.zeros(num_teachers, bool)), jax.random.key(0)
    )
    return blank(shapes, num_pairs)
