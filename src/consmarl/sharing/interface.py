"""The interface between the acting step and any sharing mechanism.

A mechanism is a frozen, hashable dataclass of settings whose methods are pure. Its state (counts and budgets) outlives
an episode; its memory (observations met in this episode) does not. It is independent of networks: it receives the
agents' values, and a function that prepares teachers to give their values in students' situations.

Axes: `[agent, env, …]`. If actions have several dimensions, actions have a last axis of branches; values and masks have
one before their action axis.
"""

import abc
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

import jax

from consmarl.metrics import Metric
from consmarl.sharing.options import TeacherMemory

# (students [request], environments [request]) → every teacher's values in their situation [teacher, request, …]
AskTeachers = Callable[[jax.Array, jax.Array], jax.Array]


class Prepared(NamedTuple):
    """Teachers prepared for certain students."""

    ask_teachers: AskTeachers
    recall: Any = ()  # their memories of students' episodes, passed on to the next step


# which agents ask, bool [agent, env] → teachers prepared for them
PrepareTeachers = Callable[[jax.Array], Prepared]


class Situation(NamedTuple):
    """A step before the agents act."""

    codes: jax.Array  # [agent, env, code], the observations
    values: jax.Array  # float32 [agent, env, …, action], the agents' own
    actions: jax.Array  # int32 [agent, env, …], the agents' actions without advice
    is_exploring: jax.Array  # bool [agent, env]
    is_starting: jax.Array  # bool [agent, env], exploring because of a draw in this step
    is_live: jax.Array  # bool [env]
    epsilon: jax.Array  # float32, a scalar or [agent, 1]
    episode: jax.Array  # int32 [env], the episode's number x
    step: jax.Array  # int32, the number of the step
    allowed: Any = None  # bool [agent, env, …, action], all False for absent agents; None if nothing is ever forbidden

    @property
    def num_branches(self) -> int:
        """Number of dimensions of an action."""
        return self.actions.shape[-1] if self.actions.ndim > self.is_exploring.ndim else 1


class Traffic(NamedTuple):
    """The numbers of messages in a step."""

    requests: jax.Array  # int32 [agent, env], whether the agent asked
    answers: jax.Array  # int32 [agent, env], messages it received
    taught: jax.Array  # int32 [agent, env], messages it gave
    advised: jax.Array  # int32 [agent, env], whether its action was based on others' knowledge
    expert_answers: Any = ()  # int32 [agent, env], messages it received from experts beside the team; () without any


class Shared(NamedTuple):
    """The outcome of sharing in a step."""

    actions: jax.Array  # int32 [agent, env, …]
    traffic: Traffic
    state: Any
    memory: Any
    record: Any  # `record.StepRecord` or `record.ActRecord`, or () if nothing is recorded
    recall: Any = ()  # the teachers' updated memories of students' episodes


class Sharing(abc.ABC):
    """A mechanism for sharing knowledge."""

    teacher_memory: TeacherMemory = TeacherMemory.STUDENT
    num_beside: int = 0  # experts beside the team: teachers without a seat, who follow the agents on the teacher axis
    takes_experts: ClassVar[bool] = False  # whether there may be any
    handles_masks: ClassVar[bool] = False  # whether it respects `Situation.allowed`
    handles_branches: ClassVar[bool] = False  # whether it can be used if actions have several dimensions
    metrics: ClassVar[tuple[Metric, ...]] = ()  # its metrics in result rows, in display order

    @abc.abstractmethod
    def init(self, num_agents: int, num_actions: int) -> Any:
        """Return the state before the first episode."""

    @abc.abstractmethod
    def begin(self, num_agents: int, num_envs: int, episode_limit: int) -> Any:
        """Return the memory at the start of an episode."""

    @abc.abstractmethod
    def share(
        self,
        key: jax.Array,
        situation: Situation,
        prepare_teachers: PrepareTeachers,
        state: Any,
        memory: Any,
        *,
        is_recording: bool = False,
    ) -> Shared:
        """Let agents ask and answer; return the actions they take, with the new state and memory."""

    @property
    def reported_metrics(self) -> tuple[Metric, ...]:
        """The metrics of these settings: `metrics`, and any that only some settings have."""
        return self.metrics

    def for_observations(self, size: int, dtype: Any) -> "Sharing":
        """Return the mechanism, adapted to observations of this length and type; by default unchanged."""
        del size, dtype
        return self

    def report(self, state: Any, traffic: Traffic) -> dict[str, jax.Array]:
        """Return the metrics of a round, from its traffic [agent, env] and the state after it."""
        del state, traffic
        return {}

    def facts(self, state: Any) -> dict[str, Any]:
        """Return facts needed to restore a state: sizes that change during a run."""
        del state
        return {}

    def sized(self, state: Any, facts: Mapping[str, Any]) -> Any:
        """Return an initial state of the size given by `facts`."""
        del facts
        return state

    def with_room(self, state: Any, num_visits: int) -> Any:
        """Return the state with room for this many more visits (outside compiled code)."""
        del num_visits
        return state

    def with_newcomers(self, state: Any, is_new: jax.Array) -> Any:
        """Return the state after agents, bool [agent], were replaced by others."""
        del is_new
        return state

    def check(self, state: Any) -> None:
        """Raise an error if the state is no longer reliable (outside compiled code)."""
        del state
