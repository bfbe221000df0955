"""The common base of CONS and AdHocTD: counting, asking and budgets."""

import abc
import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np

from consmarl.environments import validation
from consmarl.environments.branches import is_there, of_every_branch
from consmarl.environments.masks import choices, only_allowed
from consmarl.environments.validation import Fraction
from consmarl.errors import UsageError
from consmarl.metrics import Metric
from consmarl.records import OneOf, internal, replaced, settle, typed
from consmarl.sharing import equations, reported
from consmarl.sharing.asking import asks_in, in_any_branch, is_new_now
from consmarl.sharing.counting import COUNTINGS, EXACT, Counting, usual_counting, way_to_count
from consmarl.sharing.counts import NEWCOMER
from consmarl.sharing.fingerprints import fingerprint
from consmarl.sharing.interface import PrepareTeachers, Shared, Sharing, Situation, Traffic
from consmarl.sharing.options import AskGate, AskWhen, Eligibility, Preset, TeacherMemory
from consmarl.sharing.record import Reply, StepRecord
from consmarl.sharing.requests import Asked, Draws, Exchange, Outcome, Request, Teachers, work_off

NO_LIMIT = 2**31 - 1


class SharingState(NamedTuple):
    """The state that outlives an episode: counts and budgets."""

    table: Any  # the counts: a `CountTable` if they are exact
    requests_left: jax.Array  # int32 [agent], b_ask
    answers_left: jax.Array  # int32 [teacher], b_give


class Purse(NamedTuple):
    """An agent's budgets."""

    requests: int  # b_ask
    answers: int  # b_give


@dataclass(frozen=True, kw_only=True)
class Mechanism(Sharing):
    """Asking within a budget; answers and their effects are defined by subclasses."""

    ask_scale: float = 0.5
    """Upsilon_a of Eq. 1: how quickly familiarity stops agents from asking [P: 0.5, in Cleanup 0.01; C: 0.5; ours:
    0.03 in Patient Gold Miner]."""
    budget_requests: int = 50_000
    """Successful requests that each agent may make in a run, b_ask [P: 50,000]."""
    budget_answers: int | None = None
    """Answers that each agent may give in a run, b_give [P: 50,000 for each of the others]."""
    start_episode: int = 5_000
    """Episode after which sharing starts, e_i [P: 5,000; ours: 1,000, or an eighth of a short run]."""
    ask_gate: AskGate = AskGate.ALWAYS
    """When an agent may consider asking [P: always; C: exploring; ours: exploiting]."""
    ask_when: AskWhen = AskWhen.EVERY_STEP
    """The steps in which agents may ask [P: every-step; C: first-step]."""
    ask_share: Fraction = 1.0
    """Fraction of episodes in which an agent may ask; in the others it practises on its own [P: 1; ours: 0.5]."""
    has_second_draw: bool = False
    """Whether exploring agents without advice draw epsilon a second time [P: no; C: yes]."""
    enforces_answer_budget: bool = True
    """Whether answering costs budget [P: yes; C: no]."""
    teacher_memory: TeacherMemory = TeacherMemory.STUDENT
    """What teachers remember when they judge a student's observation [C: student, before the step; ours: history,
    their own networks' memory of the student's episode]."""
    eligibility: Eligibility = Eligibility.ANYONE
    """Who may teach, by the halves of Eq. 6 [P: either in CONS, anyone in AdHocTD; ours: only one half]."""
    hope_margin: float = 0.0
    """By how much a teacher's max Q must exceed the student's to count as expecting more [P: 0]."""
    counting: Annotated[str | None, OneOf(COUNTINGS)] = None
    """How visits are counted [P: exact; ours: codebook where observations are floats, which are hardly ever met
    twice]."""
    counting_options: tuple[tuple[str, Any], ...] = internal(())  # of the way to count, by name; may be given as a dict
    observation_size: int = internal(0)  # 0 until it is known; exact counts do not need it
    experts: tuple[int, ...] = internal(())  # agents that never ask
    num_beside: int = internal(0)  # experts beside the team, who hold no seat and only answer
    newcomers: tuple[int, ...] = internal(())  # agents that are replaced by others, without any visits
    join_episode: int | None = internal(None)  # number of episodes after which they are replaced
    initial_places: int = internal(1 << 20)  # initial size of the table of counts, which grows
    requests_at_once: int = internal(8)  # how many requests are processed together; affects only speed

    PRESETS: ClassVar[Mapping[Preset, Mapping[str, Any]]] = {}  # differences from the fields' defaults, which are PAPER
    metrics: ClassVar[tuple[Metric, ...]] = reported.METRICS
    takes_experts: ClassVar[bool] = True

    @classmethod
    def preset(cls, preset: Preset | str, **changes: Any) -> Self:
        """Return the settings of a preset, with changes; a preset may be given by name."""
        return replaced(cls(**cls.PRESETS.get(typed("preset", Preset, preset), {})), changes)

    def __post_init__(self) -> None:
        """Convert values to their types, and validate them."""
        if isinstance(self.counting_options, Mapping):
            object.__setattr__(self, "counting_options", tuple(sorted(self.counting_options.items())))
        settle(self)
        way_to_count(self.counting_kind, dict(self.counting_options))  # refuses options that it does not have
        if validation.finite_number("ask_scale", self.ask_scale) <= 0:
            raise UsageError(f"ask_scale must be above 0, not {self.ask_scale}: at 0 everybody always asks.")
        if validation.finite_number("hope_margin", self.hope_margin) < 0:
            raise UsageError(
                f"hope_margin must be at least 0, not {self.hope_margin}: it is how much more a teacher hopes for."
            )
        for name in ("budget_requests", "start_episode"):
            validation.whole_number(name, getattr(self, name), least=0)
        if self.budget_answers is not None:
            validation.whole_number("budget_answers", self.budget_answers, least=0)
        for name in ("initial_places", "requests_at_once"):
            validation.whole_number(name, getattr(self, name), least=1)

    @abc.abstractmethod
    def replies(self, request: Request, teachers: Teachers, draws: Draws) -> jax.Array:
        """Return a `Reply` for every teacher, ignoring NO_BUDGET and the student itself: uint8 [teacher]."""

    @abc.abstractmethod
    def exchange(self, request: Request, teachers: Teachers, replies: jax.Array, draws: Draws) -> Exchange:
        """Return the outcome of the answers."""

    def may_teach(self, request: Request, teachers: Teachers) -> jax.Array:
        """Return ANSWERED for every eligible teacher, and for the others why they are not: uint8 [teacher]."""
        visits, values = (teachers.num_visits, request.num_visits), (teachers.values, request.values)
        if self.eligibility is Eligibility.ANYONE:
            return jnp.full(teachers.num_visits.shape, Reply.ANSWERED, jnp.uint8)
        if self.eligibility is Eligibility.MORE_FAMILIAR:
            is_eligible = jax.vmap(equations.is_more_familiar, (0, None))(*visits)
            reason = Reply.NOT_MORE_FAMILIAR
        elif self.eligibility is Eligibility.MORE_HOPEFUL:
            is_eligible = jax.vmap(equations.is_more_hopeful, (0, None, None))(*values, self.hope_margin)
            reason = Reply.NOT_MORE_HOPEFUL
        else:
            by_either = jax.vmap(equations.has_more_or_better_experience, (0, None, 0, None, None))
            is_eligible, reason = by_either(*visits, *values, self.hope_margin), Reply.KNOWS_LESS
        return jnp.where(is_eligible, jnp.uint8(Reply.ANSWERED), jnp.uint8(reason))

    @property
    def reported_metrics(self) -> tuple[Metric, ...]:
        """The metrics, with the answers from experts if there are any beside the team."""
        return (*self.metrics, reported.EXPERT_ANSWERS) if self.num_beside else self.metrics

    @property
    def counting_kind(self) -> str:
        """The name of the way to count."""
        return self.counting or EXACT

    @property
    def counter(self) -> Counting:
        """The way to count."""
        return way_to_count(self.counting_kind, dict(self.counting_options))

    def for_observations(self, size: int, dtype: Any) -> Self:
        """Return the mechanism with a way to count such observations: its own, or the default for their type."""
        kind = self.counting or usual_counting(dtype)
        if kind == EXACT:
            return self
        return dataclasses.replace(self, counting=kind, observation_size=size)

    def init(self, num_agents: int, num_actions: int) -> SharingState:
        """Return the initial state: no visits, full budgets."""
        purse = self.purse(num_agents, num_actions)
        return SharingState(
            table=self.counter.init(self.initial_places, num_agents, self.observation_size),
            requests_left=jnp.full(num_agents, purse.requests, jnp.int32),
            answers_left=jnp.full(num_agents + self.num_beside, purse.answers, jnp.int32),
        )

    def purse(self, num_agents: int, num_actions: int) -> Purse:
        """Return each agent's initial budgets; an expert beside the team may give as many answers as an agent."""
        if num_agents < 2 or num_actions < 2:
            raise UsageError(
                f"sharing takes at least 2 agents and 2 actions, not {num_agents} and {num_actions}: train without it."
            )
        answers = self.budget_answers
        if answers is None:
            answers = min(self.budget_requests * (num_agents - 1), NO_LIMIT)
        return Purse(self.budget_requests, answers)

    def begin(self, num_agents: int, num_envs: int, episode_limit: int) -> jax.Array:
        """Return an empty list of the fingerprints met in this episode: zeros [step, agent, env, 2].

        It has no steps unless `ask_when` needs it.
        """
        num_kept = episode_limit if self.ask_when is AskWhen.FIRST_VISIT else 0
        return jnp.zeros((num_kept, num_agents, num_envs, 2), jnp.uint32)

    def report(self, state: SharingState, traffic: Traffic) -> dict[str, jax.Array]:
        """Return the round's traffic [agent, env], budgets left and spent [agent], and how full the table is."""
        told = {name: counts for name, counts in traffic._asdict().items() if not isinstance(counts, tuple)}
        return {
            **told,
            "requests_left": state.requests_left,
            "requests_spent": self.budget_requests - state.requests_left,
            "answers_left": self._of_team(state.answers_left),
            **self.counter.report(state.table),
        }

    def _of_team(self, by_teacher: jax.Array) -> jax.Array:
        """Return the rows [agent] of an array [teacher], without those of experts beside the team."""
        return by_teacher[: -self.num_beside] if self.num_beside else by_teacher

    def facts(self, state: SharingState) -> dict[str, Any]:
        """Return the facts needed to restore the counts."""
        return self.counter.facts(state.table)

    def sized(self, state: SharingState, facts: Mapping[str, Any]) -> SharingState:
        """Return a state whose counts have the size given by `facts`."""
        return state._replace(table=self.counter.sized(state.table, facts))

    def with_room(self, state: SharingState, num_visits: int) -> SharingState:
        """Return the state with room for this many more visits."""
        return state._replace(table=self.counter.with_room(state.table, num_visits))

    def check(self, state: SharingState) -> None:
        """Raise an error if visits were lost."""
        self.counter.check(state.table)

    def share(
        self,
        key: jax.Array,
        situation: Situation,
        prepare_teachers: PrepareTeachers,
        state: SharingState,
        memory: jax.Array,
        *,
        is_recording: bool = False,
    ) -> Shared:
        """Count visits, process requests and answers, and charge budgets; return the agents' actions."""
        key_ask, key_second, key_requests = jax.random.split(key, 3)
        marks = self.counter.marks(situation.codes)
        agents = jnp.arange(situation.actions.shape[0])[:, None]
        is_visit = jnp.broadcast_to(situation.is_live[None, :], situation.is_exploring.shape)
        if situation.allowed is not None:
            is_visit &= is_there(situation.allowed, situation.num_branches)
        is_visit = is_visit.astype(jnp.int32)
        seats = jnp.broadcast_to(self.seats(agents, situation.episode[None, :]), is_visit.shape)
        table, num_visits = self.counter.count(state.table, marks, seats, is_visit)
        prints = fingerprint(situation.codes)
        is_asking = self.wants_to_ask(key_ask, situation, num_visits, is_new_now(prints, memory), state.requests_left)
        if self.ask_when is AskWhen.FIRST_VISIT:
            memory = jax.lax.dynamic_update_index_in_dim(memory, prints, situation.step, 0)
        asked = Asked(situation, is_asking, marks, num_visits, table)
        ready = prepare_teachers(is_asking)
        outcome = work_off(self, key_requests, asked, ready.ask_teachers, state.answers_left, is_recording=is_recording)
        alone = self.action_without_advice(key_second, situation)
        actions = jnp.where(outcome.is_advised, outcome.actions, alone)
        is_advised = in_any_branch(outcome.is_advised, situation.num_branches)
        left = SharingState(table, state.requests_left - is_advised.sum(axis=1), outcome.answers_left)
        traffic = Traffic(
            requests=is_asking.astype(jnp.int32),
            answers=outcome.num_answers,
            taught=outcome.taught,
            advised=is_advised.astype(jnp.int32),
            expert_answers=outcome.expert_answers,
        )
        record = self._record(asked, outcome, left, alone, actions) if is_recording else ()
        return Shared(actions, traffic, left, memory, record, ready.recall)

    def seats(self, agents: jax.Array, episodes: jax.Array) -> jax.Array:
        """Return the ids under which agents' visits are counted: newcomers have other ids than their predecessors."""
        if self.join_episode is None:
            return agents
        is_new = jnp.isin(agents, jnp.array(self.newcomers)) & (episodes >= self.join_episode)
        return jnp.where(is_new, NEWCOMER + agents, agents)

    def with_newcomers(self, state: SharingState, is_new: jax.Array) -> SharingState:
        """Return the state with full budgets and no visits for newcomers."""
        purse = self.purse(len(is_new), 2)
        return state._replace(
            table=self.counter.with_newcomers(state.table, is_new),
            requests_left=jnp.where(is_new, purse.requests, state.requests_left),
            answers_left=jnp.where(is_new, purse.answers, state.answers_left),
        )

    def wants_to_ask(
        self,
        key: jax.Array,
        situation: Situation,
        num_visits: jax.Array,
        is_new: jax.Array,
        requests_left: jax.Array,
    ) -> jax.Array:
        """Return which agents ask: bool [agent, env].

        An agent that acts in several environments at once reserves a unit of its budget for each request of a step,
        so that it cannot overspend; unused units are returned.
        """
        probability = equations.asking_probability(num_visits, self.ask_scale)
        wants = jax.random.uniform(key, num_visits.shape) < probability
        wants &= (situation.is_live & (situation.episode > self.start_episode))[None, :]
        if self.ask_gate is AskGate.EXPLORING:
            wants &= situation.is_exploring
        elif self.ask_gate is AskGate.STARTING_TO_EXPLORE:
            wants &= situation.is_starting
        elif self.ask_gate is AskGate.EXPLOITING:
            wants &= ~situation.is_exploring
        if situation.allowed is not None:  # an agent with a single allowed action has nothing to ask about
            wants &= in_any_branch(jnp.sum(situation.allowed, axis=-1) > 1, situation.num_branches)
        if self.ask_share < 1:
            wants &= asks_in(situation.episode, len(wants), self.ask_share)
        if self.experts:
            wants &= ~np.isin(np.arange(len(wants)), self.experts)[:, None]
        if self.ask_when is AskWhen.FIRST_STEP:
            wants &= situation.step == 0
        elif self.ask_when is AskWhen.FIRST_VISIT:
            wants &= is_new
        set_aside = jnp.cumsum(wants, axis=1) - wants
        return wants & (set_aside < requests_left[:, None])

    def action_without_advice(self, key: jax.Array, situation: Situation) -> jax.Array:
        """Return the actions of agents that gained no knowledge: int32 [agent, env, …]."""
        if not self.has_second_draw:
            return situation.actions
        explores = jax.random.uniform(key, situation.is_exploring.shape) < situation.epsilon
        allowed = None if situation.allowed is None else choices(situation.allowed)
        greedy = jnp.argmax(only_allowed(situation.values, allowed), axis=-1).astype(jnp.int32)
        is_greedy = of_every_branch(situation.is_exploring & ~explores, greedy)
        return jnp.where(is_greedy, greedy, situation.actions)

    def _record(
        self, asked: Asked, outcome: Outcome, left: SharingState, alone: jax.Array, actions: jax.Array
    ) -> StepRecord:
        student, teachers = outcome.records
        return StepRecord(
            is_asking=asked.is_asking,
            ask_probability=equations.asking_probability(asked.num_visits, self.ask_scale),
            num_visits=asked.num_visits,
            values=asked.situation.values,
            is_exploring=asked.situation.is_exploring,
            own_action=alone.astype(jnp.uint8),
            action=actions.astype(jnp.uint8),
            requests_left=jnp.broadcast_to(left.requests_left[:, None], asked.is_asking.shape),
            answers_left=jnp.broadcast_to(self._of_team(left.answers_left)[:, None], asked.is_asking.shape),
            student=student,
            teachers=teachers,
            allowed=asked.situation.allowed,
        )
