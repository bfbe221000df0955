"""What the acting step asks of a sharing mechanism, whichever it is.

A mechanism is a frozen, hashable record of settings whose methods are pure. What outlives an episode (counts and
budgets) is its state; what does not (what was met in this episode) is its memory. It knows nothing of networks: it is
handed the agents' values, and a function that gets teachers ready to tell their values in students' places.

Axes: `[agent, env, …]`.
"""

import abc
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

import jax

from consmarl.metrics import Metric
from consmarl.sharing.options import TeacherMemory

# (students [request], environments [request]) → every teacher's values in their place [teacher, request, action]
AskTeachers = Callable[[jax.Array, jax.Array], jax.Array]


class Prepared(NamedTuple):
    """Teachers who are ready for certain students."""

    ask_teachers: AskTeachers
    recall: Any = ()  # what they remember of students' episodes, to be handed on to the next step


# who asks, bool [agent, env] → teachers who are ready for them
PrepareTeachers = Callable[[jax.Array], Prepared]


class Situation(NamedTuple):
    """A step before anybody acts."""

    codes: jax.Array  # [agent, env, code], the observations
    values: jax.Array  # float32 [agent, env, action], the agents' own
    actions: jax.Array  # int32 [agent, env], what each would do without advice
    is_exploring: jax.Array  # bool [agent, env]
    is_starting: jax.Array  # bool [agent, env], exploring by a draw of this step
    is_live: jax.Array  # bool [env]
    epsilon: jax.Array  # float32, one for all, or [agent, 1]
    episode: jax.Array  # int32 [env], the number x of the episode
    step: jax.Array  # int32, the number of the step
    allowed: Any = None  # bool [agent, env, action], none for whoever is absent; None where nothing is forbidden


class Traffic(NamedTuple):
    """How much was said."""

    requests: jax.Array  # int32 [agent, env], whether the agent asked
    answers: jax.Array  # int32 [agent, env], messages that it got
    taught: jax.Array  # int32 [agent, env], messages that it gave
    advised: jax.Array  # int32 [agent, env], whether its action came of others' knowledge


class Shared(NamedTuple):
    """What became of a step."""

    actions: jax.Array  # int32 [agent, env]
    traffic: Traffic
    state: Any
    memory: Any
    record: Any  # `record.StepRecord` or `record.ActRecord`, or () where nothing is recorded
    recall: Any = ()  # what teachers remember of students' episodes now


class Sharing(abc.ABC):
    """A way of sharing knowledge."""

    teacher_memory: TeacherMemory = TeacherMemory.STUDENT
    handles_masks: ClassVar[bool] = False  # whether it heeds `Situation.allowed`
    metrics: ClassVar[tuple[Metric, ...]] = ()  # what rows hold of its reports, in the order that a reader wants

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
        """Let agents ask and answer, and say what each does."""

    def report(self, state: Any, traffic: Traffic) -> dict[str, jax.Array]:
        """Return what is worth reporting of a round: its traffic, [agent, env], and the state after it."""
        del state, traffic
        return {}

    def facts(self, state: Any) -> dict[str, Any]:
        """Return what has to be known of a state before it can be read back: sizes that change in a run."""
        del state
        return {}

    def sized(self, state: Any, facts: Mapping[str, Any]) -> Any:
        """Return a first state of the size that `facts` tell."""
        del facts
        return state

    def with_room(self, state: Any, num_visits: int) -> Any:
        """Return the state with room for so many further visits (outside compiled code)."""
        del num_visits
        return state

    def with_newcomers(self, state: Any, is_new: jax.Array) -> Any:
        """Return the state after agents, bool [agent], were replaced by others."""
        del is_new
        return state

    def check(self, state: Any) -> None:
        """Raise an error if the state is not to be relied on (outside compiled code)."""
        del state
