"""The sharing mechanisms for any Q-learner: NumPy in, NumPy out.

The caller may use any learning method. In every step it passes its agents' observations, Q-values and intended actions,
and a function that returns a teammate's Q-values in a student's situation; it gets back the action that each agent
should take. The function receives the student's observation or, with `TeacherMemory.HISTORY`, the student's episode so
far, for a recurrent network to process.
"""

import dataclasses
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from consmarl.environments import validation
from consmarl.environments.actions import branch_axis
from consmarl.errors import UsageError
from consmarl.sharing.advisor_inputs import Team, check_call, finite_numbers, mask, whole_actions
from consmarl.sharing.asking import fitted_start, never_begins
from consmarl.sharing.cons import Cons
from consmarl.sharing.counting import EXACT
from consmarl.sharing.histories import Histories
from consmarl.sharing.interface import Situation
from consmarl.sharing.mechanism import Mechanism
from consmarl.sharing.options import TeacherMemory
from consmarl.sharing.record import Reply
from consmarl.sharing.requests import Exchange, Request, Teachers, answer_one
from consmarl.sharing.tallies import CountingTally, ExactTally, Observations, Tally, fitting_tally, tally_for
from consmarl.sharing.visits import Visits

# (teacher, student, the student's observation or `History`) → the teacher's Q-values there, one per action
AskTeacher = Callable[[int, int, Any], ArrayLike]
VISITS, COUNTS, MET = "visits.", "counts.", "met."  # prefixes of a state's exact counts, other counts, and episode
MOST_AGENTS, MOST_ACTIONS = 10_000, 256  # an exchange stores an action in one byte


class Advisor:
    """Lets a team of Q-learners share knowledge: call `begin_episode` once per episode and `advise` once per step.

    Unless `sharing` says how to count visits, the type of the first observations decides: floats are counted by a
    codebook of similar ones, as they hardly ever repeat, and everything else exactly, by its bytes. Always use the same
    dtype. Floats that represent whole numbers, such as cells of a grid, are better counted exactly:
    `Cons(counting="exact")`.
    """

    def __init__(
        self,
        num_agents: int,
        num_actions: int,
        sharing: Mechanism | None = None,
        *,
        seed: int = 0,
        episodes: int | None = None,
        num_dimensions: int = 1,
    ) -> None:
        """Start with full budgets; `sharing` is `Cons(…)` by default, or `AdHocTD(…)`.

        `episodes` is the number of episodes you are going to play. If it is below 40,000, sharing starts after an
        eighth of them instead of after 5,000. A `start_episode` of your own is kept. If actions have several dimensions
        (`num_dimensions`), values and masks are [..., dimension, action] and actions [..., dimension]; `num_actions` is
        the number of choices in the dimension with the most.
        """
        if sharing is not None and not isinstance(sharing, Mechanism):
            raise UsageError(f"sharing must be a mechanism such as Cons() or AdHocTD(), not {sharing!r}.")
        self.sharing = _fitting(Cons() if sharing is None else sharing, episodes)
        validation.whole_number("seed", seed, least=0)
        validation.whole_number("num_agents", num_agents, least=1, most=MOST_AGENTS)
        validation.whole_number("num_actions", num_actions, least=1, most=MOST_ACTIONS)
        validation.whole_number("num_dimensions", num_dimensions, least=1, most=MOST_ACTIONS)
        if num_dimensions > 1 and not self.sharing.handles_branches:
            raise UsageError(f"{type(self.sharing).__name__} cannot advise on actions of several dimensions.")
        purse = self.sharing.purse(num_agents, num_actions)
        self.num_agents, self.num_actions, self.seed = num_agents, num_actions, seed
        self._team = Team(num_agents, num_actions, branch_axis(num_dimensions))
        self.requests_left = np.full(num_agents, purse.requests, np.int64)
        self.answers_left = np.full(num_agents, purse.answers, np.int64)
        self.episode = -1
        self.step = 0
        self.exchanges: dict[int, Exchange] = {}
        """The last step's requests, by student, and their outcomes."""
        self._tally: Tally | None = None  # its type depends on the first observations
        self._met = [Visits() for _ in range(num_agents)]
        self._histories = self._no_histories()

    @property
    def is_advised(self) -> NDArray[np.bool_]:
        """Which agents' last actions came from others' knowledge: [agent]."""
        return np.array(
            [agent in self.exchanges and np.any(self.exchanges[agent].student.is_advised) for agent in self._agents]
        )

    @property
    def _agents(self) -> range:
        return range(self.num_agents)

    def begin_episode(self) -> None:
        """Start the next episode; the first is number 0."""
        self.episode += 1
        self.step = 0
        self._met = [Visits() for _ in self._agents]
        self._histories = self._no_histories()

    def _no_histories(self) -> Histories | None:
        remembers = self.sharing.teacher_memory is TeacherMemory.HISTORY
        return Histories(self.num_agents, self._team.branches) if remembers else None

    def advise(
        self,
        observations: Observations,
        values: ArrayLike,
        actions: ArrayLike,
        ask_teacher: AskTeacher,
        *,
        is_exploring: ArrayLike | None = None,
        epsilon: float | None = None,
        allowed: ArrayLike | None = None,
    ) -> NDArray[np.int64]:
        """Return the action each agent should take: its own, or one that comes from others' knowledge.

        `values` [agent, action] are the agents' own Q-values, and `actions` [agent] their intended actions.
        `is_exploring` [agent] says which agents are exploring (with the gate `starting-to-explore`, which start to); it
        is needed unless all agents may ask. `allowed` [agent, action] says which actions each agent may take, if not
        all. No agent is advised to take another one. An agent without any allowed action is absent: it does not ask,
        and its observation is not counted. The returned actions are assumed to be taken.
        """
        situation = self._situation(observations, values, actions, is_exploring, epsilon, allowed)
        advised = self.decide(_key_of(self.seed, self.episode, self.step), situation, observations, ask_teacher)
        self.step += 1
        return advised

    def decide(
        self, key: jax.Array, situation: Situation, observations: Observations, ask_teacher: AskTeacher
    ) -> NDArray[np.int64]:
        """Do the same as `advise` with a given key; with this key, the compiled loop draws the same numbers."""
        key_ask, key_second, key_requests = jax.random.split(key, 3)
        there = np.ones(self.num_agents, bool)
        if situation.allowed is not None:
            there = situation.allowed[:, 0].any(axis=-1).reshape(self.num_agents, -1).all(axis=-1)
        if self._tally is None:
            self._tally = fitting_tally(self.sharing, self.num_agents, observations)
        num_visits: Any = self._tally.add(observations, there)
        is_new = np.array([met.add(each) == 1 for met, each in zip(self._met, observations, strict=True)])
        left = np.minimum(self.requests_left, np.iinfo(np.int32).max).astype(np.int32)
        if self._histories:
            self._histories.see(observations)
        is_asking = _asks(self.sharing, key_ask, situation, num_visits[:, None], is_new[:, None], left)
        chosen = np.array(_alone(self.sharing, key_second, situation))[:, 0].astype(np.int64)
        self.exchanges = {}
        for student in np.flatnonzero(np.asarray(is_asking)[:, 0]).tolist():
            allowed = None if situation.allowed is None else situation.allowed[student, 0]
            values: Any = situation.values[student, 0]
            values = values if allowed is None else np.where(allowed, values, -np.inf)
            request = Request(jnp.int32(student), values, num_visits[student], situation.episode[0], allowed)
            met = self._tally.counts(observations[student])
            exchange = self._exchange(key_requests, request, met, observations[student], ask_teacher)
            self.exchanges[student] = exchange
            if np.any(exchange.student.is_advised):
                self.requests_left[student] -= 1
                chosen[student] = np.where(exchange.student.is_advised, exchange.student.action, chosen[student])
        if self._histories:
            self._histories.act(chosen)
        return chosen

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Return everything that future behaviour depends on, as arrays."""
        state = {
            "size": np.array([self.num_agents, self.num_actions, *self._team.branches]),
            "place": np.array([self.seed, self.episode, self.step]),
            "requests_left": self.requests_left.copy(),
            "answers_left": self.answers_left.copy(),
        }
        tally = self._tally or ExactTally.empty(self.num_agents)
        kept = {MET: ExactTally(self._met), VISITS if isinstance(tally, ExactTally) else COUNTS: tally}
        state |= {name + part: rows for name, each in kept.items() for part, rows in each.to_arrays().items()}
        if self._histories:
            for agent in self._agents:
                state |= {f"history.{agent}.{part}": rows for part, rows in self._histories.to_arrays(agent).items()}
        return state

    def load_state_dict(self, state: dict[str, NDArray[Any]]) -> None:
        """Continue from a state returned by `state_dict`."""
        here = {name: rows for name, rows in self.state_dict().items() if not name.startswith((VISITS, COUNTS))}
        if missing := [name for name in here if name not in state]:
            raise UsageError(
                f"the state lacks {missing[0]!r}: it is of another team, of other settings, or not an Advisor's."
            )
        if state["size"].tolist() != here["size"].tolist():
            theirs, ours = (" × ".join(map(str, each["size"][1:].tolist())) for each in (state, here))
            raise UsageError(
                f"the state is of {state['size'][0]} agents with {theirs} actions, "
                f"and this Advisor has {self.num_agents} with {ours}."
            )
        self._tally = self._tally_from(state)
        self.seed, self.episode, self.step = (int(number) for number in state["place"])
        self.requests_left = np.array(state["requests_left"], np.int64)
        self.answers_left = np.array(state["answers_left"], np.int64)
        self.exchanges = {}
        self._met = ExactTally.from_arrays(self.num_agents, _those(MET, state)).visits
        if self._histories:
            parts = Histories.PARTS
            self._histories = Histories.from_arrays(
                [{part: state[f"history.{agent}.{part}"] for part in parts} for agent in self._agents],
                self._team.branches,
            )

    def _tally_from(self, state: dict[str, NDArray[Any]]) -> Tally | None:
        """Return the counts of a state; None if nothing has been counted yet."""
        if counts := _those(COUNTS, state):
            size, is_float = counts[CountingTally.ABOUT].tolist()
            tally = tally_for(self.sharing, self.num_agents, int(size), is_float=bool(is_float))
            if isinstance(tally, CountingTally):
                tally.restore(counts)
                return tally
        visits = _those(VISITS, state)
        if not visits or self.sharing.counting not in (None, EXACT):
            raise UsageError("the state was counted in another way: pass the `counting` that it was counted by.")
        exact = ExactTally.from_arrays(self.num_agents, visits)
        return None if exact.is_empty else exact

    def _exchange(
        self,
        key: jax.Array,
        request: Request,
        num_visits: NDArray[np.int32],
        observation: ArrayLike,
        ask_teacher: AskTeacher,
    ) -> Exchange:
        student = int(request.student)
        has_budget = self.answers_left > 0
        values: Any = np.zeros((self.num_agents, *self._team.choices), np.float32)
        values[student] = request.values
        shown = self._histories.of(student) if self._histories else observation
        for teacher in self._agents:
            # only agents that may answer are asked
            if teacher != student and (has_budget[teacher] or not self.sharing.enforces_answer_budget):
                answer = ask_teacher(teacher, student, shown)
                values[teacher] = finite_numbers("a teacher's values", answer, self._team.choices)
        if request.allowed is not None:
            values = np.where(request.allowed, values, np.float32(-np.inf))
        met: Any = num_visits
        exchange: Exchange = jax.device_get(
            _answered(self.sharing, key, student, request, Teachers(values, met), has_budget)
        )
        if self.sharing.enforces_answer_budget:
            self.answers_left -= exchange.teachers.reply == Reply.ANSWERED
        return exchange

    def _situation(
        self,
        observations: Observations,
        values: ArrayLike,
        actions: ArrayLike,
        is_exploring: ArrayLike | None,
        epsilon: float | None,
        allowed: ArrayLike | None,
    ) -> Situation:
        """Return the validated input of a step, with one environment; a refused call has no effect."""
        if self.episode < 0:
            raise UsageError("call begin_episode before the first advise.")
        team = self._team
        check_call(self.sharing, team, observations, is_exploring, epsilon)
        for memory in (self._tally, self._histories):
            if memory is not None:
                memory.check(observations)
        own = finite_numbers("values", values, (self.num_agents, *team.choices))
        intended = whole_actions(team, actions)
        explores = np.broadcast_to(False if is_exploring is None else np.asarray(is_exploring, bool), self.num_agents)
        facts: dict[str, Any] = dict(
            codes=(),  # observations are counted outside compiled code
            values=own[:, None],
            actions=intended.astype(np.int32)[:, None],
            is_exploring=explores[:, None],
            is_starting=explores[:, None],
            is_live=np.ones(1, bool),
            epsilon=np.float32(0.0 if epsilon is None else epsilon),
            episode=np.array([self.episode], np.int32),
            step=np.int32(self.step),
            allowed=None if allowed is None else mask(self.sharing, team, allowed, intended)[:, None],
        )
        return Situation(**facts)


def _those(prefix: str, state: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(prefix): rows for name, rows in state.items() if name.startswith(prefix)}


def _fitting(sharing: Mechanism, episodes: int | None) -> Mechanism:
    """Return the mechanism with its start fitted to the run's length; warn if sharing starts late or never."""
    is_usual = sharing.start_episode == Mechanism.start_episode
    if episodes is None:
        if is_usual:
            _warn(
                f"nothing is shared until episode {sharing.start_episode:,} is over: pass "
                f"{type(sharing).__name__}(start_episode=0) to share from the second episode on, or episodes=… to let "
                "the start fit your run."
            )
        return sharing
    validation.whole_number("episodes", episodes, least=1)
    if is_usual:
        sharing = dataclasses.replace(sharing, start_episode=fitted_start(sharing.start_episode, episodes))
    if never_begins(sharing.start_episode, episodes):
        _warn(
            f"nothing will be shared in {episodes:,} episodes: sharing begins after episode {sharing.start_episode:,}, "
            "so pass a smaller start_episode."
        )
    return sharing


def _warn(sentence: str) -> None:
    warnings.warn(sentence, UserWarning, stacklevel=4)  # the line that created the Advisor


@jax.jit
def _key_of(seed: int, episode: int, step: int) -> jax.Array:
    return jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), episode), step)


@partial(jax.jit, static_argnums=0)
def _asks(sharing: Mechanism, key: Any, situation: Any, num_visits: Any, is_new: Any, left: Any) -> jax.Array:
    return sharing.wants_to_ask(key, situation, num_visits, is_new, left)


@partial(jax.jit, static_argnums=0)
def _alone(sharing: Mechanism, key: Any, situation: Any) -> jax.Array:
    return sharing.action_without_advice(key, situation)


@partial(jax.jit, static_argnums=0)
def _answered(sharing: Mechanism, key: Any, number: Any, request: Any, teachers: Any, has_budget: Any) -> Exchange:
    return answer_one(sharing, jax.random.fold_in(key, number), request, teachers, has_budget)
