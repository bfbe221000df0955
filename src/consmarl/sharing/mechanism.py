"""What CONS and AdHocTD have in common: who asks, in which order, and who pays.

Requests are few, so they are gathered into short lists, and teachers are asked about those alone: the cost follows the
number of requests, not the square of the team. Requests are worked off by environment and, within it, by the number
of the student, as if agents acted one after the other; a teacher whose budget runs out answers the earlier ones.
"""

import abc
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from consmarl.environments import validation
from consmarl.errors import UsageError
from consmarl.sharing import equations
from consmarl.sharing.counters import CountTable, count, empty_table, grown, has_room_for, lookup
from consmarl.sharing.fingerprints import fingerprint, of_agent
from consmarl.sharing.interface import AskTeachers, Shared, Sharing, Situation, Traffic
from consmarl.sharing.options import AskGate, AskWhen, TeacherMemory
from consmarl.sharing.record import Reply, StepRecord, StudentRecord, TeacherRecord, blank

NO_LIMIT = 2**31 - 1


class SharingState(NamedTuple):
    """What outlives an episode."""

    table: CountTable
    requests_left: jax.Array  # int32 [agent], b_ask
    answers_left: jax.Array  # int32 [agent], b_give


class Purse(NamedTuple):
    """An agent's budgets."""

    requests: int  # b_ask
    answers: int  # b_give


class Request(NamedTuple):
    """A student's message, and whose it is: m_s = (o, n, max Q)."""

    student: jax.Array  # int32
    values: jax.Array  # float32 [action]
    num_visits: jax.Array  # int32
    episode: jax.Array  # int32


class Teachers(NamedTuple):
    """What every agent knows of a request's observation."""

    values: jax.Array  # float32 [teacher, action]
    num_visits: jax.Array  # int32 [teacher]


class Draws(NamedTuple):
    """Chance in one request, uniform from [0, 1)."""

    whether: jax.Array
    which: jax.Array
    giving: jax.Array  # [teacher]


class Exchange(NamedTuple):
    """What became of a request."""

    student: StudentRecord
    teachers: TeacherRecord


class _Progress(NamedTuple):
    """Where the working off of requests stands."""

    num_done: jax.Array
    answers_left: jax.Array  # int32 [agent]
    actions: jax.Array  # int32 [agent · env], of those who are advised
    is_advised: jax.Array  # bool [agent · env]
    num_answers: jax.Array  # int32 [agent · env]
    taught: jax.Array  # int32 [agent · env]
    records: Any


@dataclass(frozen=True, kw_only=True)
class Mechanism(Sharing):
    """Asking within a budget; what is answered and what becomes of it is the subclass's."""

    ask_scale: float = 0.5  # υ_a
    budget_requests: int = 50_000  # b_ask, each agent's
    budget_answers: int | None = None  # b_give; by default enough for all the others' requests
    start_episode: int = 5_000  # e_i; sharing begins with the episode after it
    ask_gate: AskGate = AskGate.ALWAYS
    ask_when: AskWhen = AskWhen.EVERY_STEP
    has_second_draw: bool = False  # an exploring agent without advice explores with probability ε only, else is greedy
    enforces_answer_budget: bool = True
    teacher_memory: TeacherMemory = TeacherMemory.STUDENT
    initial_places: int = 1 << 20  # of the table of counts, which grows
    requests_at_once: int = 8  # how many requests are worked off together; a matter of speed

    def __post_init__(self) -> None:
        """Check what can be checked."""
        if validation.finite_number("ask_scale", self.ask_scale) <= 0:
            raise UsageError(f"ask_scale must be above 0, not {self.ask_scale}: at 0 everybody always asks.")
        for name in ("budget_requests", "start_episode"):
            validation.whole_number(name, getattr(self, name), least=0)
        if self.budget_answers is not None:
            validation.whole_number("budget_answers", self.budget_answers, least=0)
        for name in ("initial_places", "requests_at_once"):
            validation.whole_number(name, getattr(self, name), least=1)

    @abc.abstractmethod
    def replies(self, request: Request, teachers: Teachers, draws: Draws) -> jax.Array:
        """Return a `Reply` for every teacher, NO_BUDGET and the student itself left aside: uint8 [teacher]."""

    @abc.abstractmethod
    def exchange(self, request: Request, teachers: Teachers, replies: jax.Array, draws: Draws) -> Exchange:
        """Return what the answers lead to."""

    def init(self, num_agents: int, num_actions: int) -> SharingState:
        """Nothing was met, nothing spent."""
        purse = self.purse(num_agents, num_actions)
        return SharingState(
            table=empty_table(self.initial_places),
            requests_left=jnp.full(num_agents, purse.requests, jnp.int32),
            answers_left=jnp.full(num_agents, purse.answers, jnp.int32),
        )

    def purse(self, num_agents: int, num_actions: int) -> Purse:
        """Return each agent's budgets at first."""
        if num_agents < 2 or num_actions < 2:
            raise UsageError(
                f"sharing takes at least 2 agents and 2 actions, not {num_agents} and {num_actions}: train without it."
            )
        answers = self.budget_answers
        if answers is None:
            answers = min(self.budget_requests * (num_agents - 1), NO_LIMIT)
        return Purse(self.budget_requests, answers)

    def begin(self, num_agents: int, num_envs: int, episode_limit: int) -> jax.Array:
        """Return the fingerprints met in this episode, where they matter: [step, agent, env, 2], zeros at first."""
        num_kept = episode_limit if self.ask_when is AskWhen.FIRST_VISIT else 0
        return jnp.zeros((num_kept, num_agents, num_envs, 2), jnp.uint32)

    def report(self, state: SharingState, traffic: Traffic) -> dict[str, jax.Array]:
        """Return the round's traffic [agent, env], budgets left [agent], and how full the table is."""
        table = state.table
        return {
            **traffic._asdict(),
            "requests_left": state.requests_left,
            "answers_left": state.answers_left,
            "num_observations": table.num_filled,
            "num_lost": table.num_lost,
            "table_fill": table.num_filled / table.num_places,
        }

    def facts(self, state: SharingState) -> dict[str, Any]:
        """Return the size of the table."""
        return {"table_places": state.table.num_places}

    def sized(self, state: SharingState, facts: Mapping[str, Any]) -> SharingState:
        """Return a state with an empty table of another size."""
        return state._replace(table=empty_table(facts["table_places"])) if "table_places" in facts else state

    def with_room(self, state: SharingState, num_visits: int) -> SharingState:
        """Enlarge the table where so many visits might fill it."""
        if has_room_for(state.table, num_visits):
            return state
        return state._replace(table=grown(state.table, num_visits))

    def check(self, state: SharingState) -> None:
        """Raise an error if visits were lost."""
        if num_lost := int(state.table.num_lost):
            raise UsageError(
                f"{num_lost} visits found no place in a table of {state.table.num_places}, so counts are no longer "
                "right: call with_room before longer chunks."
            )

    def share(
        self,
        key: jax.Array,
        situation: Situation,
        ask_teachers: AskTeachers,
        state: SharingState,
        memory: jax.Array,
        *,
        is_recording: bool = False,
    ) -> Shared:
        """Count, ask, answer, absorb."""
        key_ask, key_second, key_requests = jax.random.split(key, 3)
        prints = fingerprint(situation.codes)
        num_agents, num_envs = situation.actions.shape
        agents = jnp.arange(num_agents)[:, None]
        is_live = jnp.broadcast_to(situation.is_live[None, :], (num_agents, num_envs))
        table, num_visits = count(state.table, of_agent(prints, agents), is_live.astype(jnp.int32))
        is_asking = self.wants_to_ask(key_ask, situation, num_visits, is_new_now(prints, memory), state.requests_left)
        if self.ask_when is AskWhen.FIRST_VISIT:
            memory = jax.lax.dynamic_update_index_in_dim(memory, prints, situation.step, 0)
        progress = self._work_off(key_requests, is_asking, situation, prints, num_visits, table, ask_teachers, state,
                                  is_recording=is_recording)  # fmt: skip
        apart = (num_envs, num_agents)
        advised_actions, is_advised, num_answers, taught = (rows.reshape(apart).T for rows in progress[2:6])
        alone = self.action_without_advice(key_second, situation)
        actions = jnp.where(is_advised, advised_actions, alone)
        requests_left = state.requests_left - is_advised.sum(axis=1)
        record: Any = ()
        if is_recording:
            student, teachers = jax.tree.map(lambda rows: rows.reshape(*apart, *rows.shape[1:]).swapaxes(0, 1),
                                             progress.records)  # fmt: skip
            everywhere = (num_agents, num_envs)
            record = StepRecord(
                is_asking=is_asking,
                ask_probability=equations.asking_probability(num_visits, self.ask_scale),
                num_visits=num_visits,
                values=situation.values,
                is_exploring=situation.is_exploring,
                own_action=alone.astype(jnp.uint8),
                action=actions.astype(jnp.uint8),
                requests_left=jnp.broadcast_to(requests_left[:, None], everywhere),
                answers_left=jnp.broadcast_to(progress.answers_left[:, None], everywhere),
                student=student,
                teachers=teachers,
            )
        traffic = Traffic(is_asking.astype(jnp.int32), num_answers, taught, is_advised.astype(jnp.int32))
        return Shared(actions, traffic, SharingState(table, requests_left, progress.answers_left), memory, record)

    def wants_to_ask(
        self,
        key: jax.Array,
        situation: Situation,
        num_visits: jax.Array,
        is_new: jax.Array,
        requests_left: jax.Array,
    ) -> jax.Array:
        """Return who asks: bool [agent, env].

        An agent that acts in several environments at once sets aside a unit of its budget for each request of a step,
        so that it cannot overspend; what was not used stays with it.
        """
        probability = equations.asking_probability(num_visits, self.ask_scale)
        wants = jax.random.uniform(key, num_visits.shape) < probability
        wants &= (situation.is_live & (situation.episode > self.start_episode))[None, :]
        if self.ask_gate is AskGate.EXPLORING:
            wants &= situation.is_exploring
        elif self.ask_gate is AskGate.STARTING_TO_EXPLORE:
            wants &= situation.is_starting
        if self.ask_when is AskWhen.FIRST_STEP:
            wants &= situation.step == 0
        elif self.ask_when is AskWhen.FIRST_VISIT:
            wants &= is_new
        set_aside = jnp.cumsum(wants, axis=1) - wants
        return wants & (set_aside < requests_left[:, None])

    def action_without_advice(self, key: jax.Array, situation: Situation) -> jax.Array:
        """Return what agents do that got no knowledge: int32 [agent, env]."""
        if not self.has_second_draw:
            return situation.actions
        explores = jax.random.uniform(key, situation.actions.shape) < situation.epsilon
        greedy = jnp.argmax(situation.values, axis=-1).astype(jnp.int32)
        return jnp.where(situation.is_exploring & ~explores, greedy, situation.actions)

    def answer_one(
        self, key: jax.Array, request: Request, teachers: Teachers, has_budget: jax.Array
    ) -> tuple[jax.Array, Exchange]:
        """Work off one request, given who may still answer: (who answers, what came of it)."""
        draws = draws_of(key, len(has_budget))
        replies = self._budgeted(request, self.replies(request, teachers, draws), has_budget)
        return replies == Reply.ANSWERED, self.exchange(request, teachers, replies, draws)

    def _budgeted(self, request: Request, replies: jax.Array, has_budget: jax.Array) -> jax.Array:
        is_out = (replies == Reply.ANSWERED) & ~has_budget
        if not self.enforces_answer_budget:
            is_out = jnp.zeros_like(is_out)
        is_self = jnp.arange(len(replies)) == request.student
        spent = jnp.where(is_out, jnp.uint8(Reply.NO_BUDGET), replies)
        return jnp.where(is_self, jnp.uint8(Reply.NOT_ASKED), spent)

    def _work_off(
        self,
        key: jax.Array,
        is_asking: jax.Array,
        situation: Situation,
        prints: jax.Array,
        num_visits: jax.Array,
        table: CountTable,
        ask_teachers: AskTeachers,
        state: SharingState,
        *,
        is_recording: bool,
    ) -> _Progress:
        num_agents = is_asking.shape[0]
        num_pairs, at_once = is_asking.size, min(self.requests_at_once, is_asking.size)
        in_order = is_asking.T.reshape(-1)  # environment by environment
        (queue,) = jnp.nonzero(in_order, size=num_pairs, fill_value=num_pairs)
        queue = jnp.concatenate([queue, jnp.full(at_once, num_pairs)]).astype(jnp.int32)
        num_requests = jnp.sum(in_order)
        agents = jnp.arange(num_agents)

        def answer(progress: _Progress) -> _Progress:
            numbers = jax.lax.dynamic_slice_in_dim(queue, progress.num_done, at_once)
            is_request = numbers < num_pairs
            safe = jnp.minimum(numbers, num_pairs - 1)
            students, envs = safe % num_agents, safe // num_agents
            keys = of_agent(prints[students, envs][:, None, :], agents[None, :])
            requests = Request(students, situation.values[students, envs], num_visits[students, envs],
                               situation.episode[envs])  # fmt: skip
            teachers = Teachers(ask_teachers(students, envs).swapaxes(0, 1), lookup(table, keys))
            draws = jax.vmap(lambda number: draws_of(jax.random.fold_in(key, number), num_agents))(safe)
            replies = jax.vmap(self.replies)(requests, teachers, draws)
            would = (replies == Reply.ANSWERED) & is_request[:, None] & (agents[None, :] != students[:, None])
            has_budget = (jnp.cumsum(would, axis=0) - would) < progress.answers_left[None, :]
            replies = jax.vmap(self._budgeted)(requests, replies, has_budget)
            outcome = jax.vmap(self.exchange)(requests, teachers, replies, draws)
            answers = (replies == Reply.ANSWERED) & is_request[:, None]
            num_given = answers.sum(axis=0)
            records = progress.records
            if is_recording:
                records = jax.tree.map(
                    lambda rows, new: rows.at[numbers].set(new, mode="drop"), records, tuple(outcome)
                )
            return _Progress(
                num_done=progress.num_done + at_once,
                answers_left=progress.answers_left - num_given * self.enforces_answer_budget,
                actions=progress.actions.at[numbers].set(outcome.student.action.astype(jnp.int32), mode="drop"),
                is_advised=progress.is_advised.at[numbers].set(outcome.student.is_advised, mode="drop"),
                num_answers=progress.num_answers.at[numbers].set(answers.sum(axis=1), mode="drop"),
                taught=progress.taught.at[(envs[:, None] * num_agents + agents[None, :])].add(answers),
                records=records,
            )

        nothing = jnp.zeros(num_pairs, jnp.int32)
        records: Any = ()
        if is_recording:
            records = self._blank_records(num_agents, situation.values.shape[-1], num_pairs)
        first = _Progress(jnp.zeros((), jnp.int32), state.answers_left, nothing, nothing.astype(bool), nothing, nothing,
                          records)  # fmt: skip
        return jax.lax.while_loop(lambda progress: progress.num_done < num_requests, answer, first)

    def _blank_records(self, num_agents: int, num_actions: int, num_pairs: int) -> Any:
        integer = jnp.zeros((), jnp.int32)
        request = Request(integer, jnp.zeros(num_actions), integer, integer)
        teachers = Teachers(jnp.zeros((num_agents, num_actions)), jnp.zeros(num_agents, jnp.int32))
        has_budget = jnp.zeros(num_agents, bool)
        _, exchange = jax.eval_shape(self.answer_one, jax.random.key(0), request, teachers, has_budget)
        return blank(tuple(exchange), num_pairs)


def draws_of(key: jax.Array, num_agents: int) -> Draws:
    """Draw for one request."""
    drawn = jax.random.uniform(key, (num_agents + 2,))
    return Draws(drawn[0], drawn[1], drawn[2:])


def is_new_now(prints: jax.Array, met: jax.Array) -> jax.Array:
    """Tell whether observations [agent, env, 2] are not among those met in this episode [step, agent, env, 2]."""
    return ~jnp.any(jnp.all(prints[None] == met, axis=-1), axis=0)
