"""Teachers in a student's situation: compute every teacher's action values there, with a suitable memory.

Networks differ, so one network's hidden state means nothing to another. With `TeacherMemory.HISTORY`, a teacher's own
network has processed the student's episode. These memories are updated only for students that ask, and continue where
they stopped. So no step is processed twice, and the steps after a student's last request are not processed at all: the
cost depends on the requests. All memories are updated together in a small team, as soon as any student asks, and in a
large one if at least half of the students ask: that takes hardly longer than updating a few. See
docs/decisions/0012-what-teachers-remember.md.

Experts beside the team, if there are any, follow the agents on the teacher axis.

Axes: a pair is a student in an environment, `[pair]` being `[student · env]`; memories have `[teacher, pair, …]`.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from consmarl.environments.actions import branch_axis
from consmarl.learners.interface import AnyLearner
from consmarl.sharing.interface import Prepared, PrepareTeachers
from consmarl.sharing.options import TeacherMemory

MOST_TOGETHER = 32  # up to this many pairs, all memories are updated together
LISTS = (32, 4)  # with more pairs: how many are updated at once while many ask, and for the rest


class Teachers(NamedTuple):
    """The agents and any experts beside them as teachers: their networks and the memory that they use."""

    learner: AnyLearner
    parameters: Any
    remember: TeacherMemory
    key: jax.Array  # the learner's key in this step
    beside: Any = ()  # the networks of experts beside the team, like `parameters`; () if there are none

    @property
    def num_teachers(self) -> int:
        """Number of teachers."""
        return self.learner.spec.num_agents * (2 if is_anyone(self.beside) else 1)

    def act(self, memory: Any, codes: jax.Array, last_actions: jax.Array) -> tuple[Any, jax.Array]:
        """Return all teachers' memories and values in the same situations.

        Memory is [teacher, row, …], codes [row, code], last actions [row].
        """
        num_agents = self.learner.spec.num_agents

        def everybodys(rows: jax.Array) -> jax.Array:
            return jnp.broadcast_to(rows[None], (num_agents, *rows.shape))

        # a teacher simply acts on another agent's observation
        situation = everybodys(codes), everybodys(last_actions), self.key
        if not is_anyone(self.beside):
            return self.learner.act(self.parameters, memory, *situation)
        of_team, of_experts = (jax.tree.map(lambda leaf, part=part: leaf[part], memory)
                               for part in (slice(num_agents), slice(num_agents, None)))  # fmt: skip
        team = self.learner.act(self.parameters, of_team, *situation)
        return both(team, self.learner.act(self.beside, of_experts, *situation))


class Place(NamedTuple):
    """The agents' situation before a step; [agent, env, …]."""

    codes: jax.Array
    last_actions: jax.Array
    memory: Any  # each agent's own
    memory_after: Any  # each agent's own, after the step
    step: jax.Array  # int32


class Recall(NamedTuple):
    """Teachers' memories of students' episodes."""

    memory: Any  # [teacher, pair, …]
    num_steps: jax.Array  # int32 [pair], number of steps of the episode that the memory covers
    codes: jax.Array  # [step, pair, code], the students' observations
    last_actions: jax.Array  # int32 [step, pair, …], their previous actions


def is_anyone(beside: Any) -> bool:
    """Return whether these are networks of experts beside the team; () stands for none."""
    return bool(jax.tree.leaves(beside))


def both(team: Any, experts: Any) -> Any:
    """Join what agents [agent, …] and experts beside them [expert, …] have into [teacher, …]."""
    return jax.tree.map(lambda *parts: jnp.concatenate(parts), team, experts)


def first_recall(
    remember: TeacherMemory, memory: Any, codes: jax.Array, episode_limit: int, num_branches: int = 1
) -> Any:
    """Return the initial recall for codes [agent, env, code]; () unless `remember` is `HISTORY`.

    `memory` is every teacher's at the start of an episode, [teacher, env, …].
    """
    if remember is not TeacherMemory.HISTORY:
        return ()
    num_agents, num_envs, size = codes.shape
    num_pairs = num_agents * num_envs

    def of_every_student(leaf: jax.Array) -> jax.Array:
        """Give a teacher its own initial memory for every student."""
        num_teachers = leaf.shape[0]
        repeated = jnp.broadcast_to(leaf[:, None], (num_teachers, num_agents, *leaf.shape[1:]))
        return repeated.reshape(num_teachers, num_pairs, *leaf.shape[2:])

    return Recall(
        memory=jax.tree.map(of_every_student, memory),
        num_steps=jnp.zeros(num_pairs, jnp.int32),
        codes=jnp.zeros((episode_limit, num_pairs, size), codes.dtype),
        last_actions=jnp.zeros((episode_limit, num_pairs, *branch_axis(num_branches)), jnp.int32),
    )


def in_students_place(teachers: Teachers, place: Place, recall: Any) -> PrepareTeachers:
    """Return a function that prepares teachers for the students that ask, given bool [agent, env]."""
    if teachers.remember is TeacherMemory.HISTORY:
        noted = _noted(recall, place)
        return lambda is_asking: _with_history(teachers, place, noted, is_asking.reshape(-1))
    return lambda _is_asking: Prepared(_with_memory_of_now(teachers, place), recall)


def _with_memory_of_now(teachers: Teachers, place: Place) -> Any:
    def of_students(leaf: jax.Array, students: jax.Array, envs: jax.Array) -> jax.Array:
        rows = leaf[students, envs]
        return jnp.broadcast_to(rows[None], (teachers.num_teachers, *rows.shape))

    def ask_teachers(students: jax.Array, envs: jax.Array) -> jax.Array:
        if teachers.remember is TeacherMemory.OWN:
            memory = jax.tree.map(lambda leaf: leaf[:, envs], place.memory)
        else:
            is_after = teachers.remember is TeacherMemory.STUDENT_AFTER_STEP
            remembered = place.memory_after if is_after else place.memory
            memory = jax.tree.map(lambda leaf: of_students(leaf, students, envs), remembered)
        return teachers.act(memory, place.codes[students, envs], place.last_actions[students, envs])[1]

    return ask_teachers


def _with_history(teachers: Teachers, place: Place, recall: Recall, is_asking: jax.Array) -> Prepared:
    num_envs = place.last_actions.shape[1]
    go_on = _go_on_together if is_asking.size <= MOST_TOGETHER else _go_on_by_lists
    recall = go_on(teachers, recall, is_asking, place.step)

    def ask_teachers(students: jax.Array, envs: jax.Array) -> jax.Array:
        memory = jax.tree.map(lambda leaf: leaf[:, students * num_envs + envs], recall.memory)
        return teachers.act(memory, place.codes[students, envs], place.last_actions[students, envs])[1]

    return Prepared(ask_teachers, recall)


def _noted(recall: Recall, place: Place) -> Recall:
    """Store the students' current observations and last actions."""
    seen = place.codes.reshape(recall.codes.shape[1:])
    return recall._replace(
        codes=jax.lax.dynamic_update_index_in_dim(recall.codes, seen, place.step, 0),
        last_actions=jax.lax.dynamic_update_index_in_dim(
            recall.last_actions, place.last_actions.reshape(recall.last_actions.shape[1:]), place.step, 0
        ),
    )


def _go_on_together(teachers: Teachers, recall: Recall, is_asking: jax.Array, step: jax.Array) -> Recall:
    """Update all memories up to this step, if any student asks."""
    return _with_all(teachers, recall, jnp.any(is_asking), step)


def _with_all(teachers: Teachers, recall: Recall, is_due: jax.Array, step: jax.Array) -> Recall:
    """Update all memories up to this step, if `is_due`."""
    memory = _advanced(teachers, recall, slice(None), jnp.where(is_due, recall.num_steps, step), step)
    return recall._replace(memory=memory, num_steps=jnp.where(is_due, step, recall.num_steps))


def _go_on_by_lists(teachers: Teachers, recall: Recall, is_asking: jax.Array, step: jax.Array) -> Recall:
    """Update the requested memories up to this step: list by list, or all of them if most are requested."""
    # memories that all stand at the same step need a single pass; those in a list rarely do
    recall = _with_all(teachers, recall, 2 * jnp.sum(is_asking) >= is_asking.size, step)
    is_asking &= recall.num_steps < step
    # the memories furthest behind come first, so that those in a list need about equally many steps
    queue = jnp.argsort(jnp.where(is_asking, recall.num_steps, jnp.iinfo(jnp.int32).max))
    num_asking = jnp.sum(is_asking)

    def next_ones(length: int, progress: tuple[jax.Array, Recall]) -> tuple[jax.Array, Recall]:
        num_done, recall = progress
        pairs = jax.lax.dynamic_slice_in_dim(queue, num_done, length)
        return num_done + length, _with_list(teachers, recall, pairs, is_asking[pairs], step)

    progress = (jnp.zeros((), jnp.int32), recall)
    for length in LISTS:
        # a full list takes little longer than half of one, so half-filled lists are worthwhile
        least = length // 2 if length != LISTS[-1] else 1

        def is_worth_it(progress: tuple[jax.Array, Recall], least: int = least) -> jax.Array:
            return num_asking - progress[0] >= least

        progress = jax.lax.while_loop(is_worth_it, functools.partial(next_ones, length), progress)
    return progress[1]


def _with_list(teachers: Teachers, recall: Recall, pairs: jax.Array, is_asking: jax.Array, step: jax.Array) -> Recall:
    """Update the memories of some pairs up to this step."""
    begin = recall.num_steps[pairs]
    first = jnp.min(jnp.where(is_asking, begin, step))
    is_going = begin >= first  # all that ask, and any others in the list that are at least as far along
    memory = _advanced(teachers, recall, pairs, jnp.where(is_going, begin, step), step)
    return recall._replace(
        memory=jax.tree.map(lambda leaf, rows: leaf.at[:, pairs].set(rows), recall.memory, memory),
        num_steps=recall.num_steps.at[pairs].set(jnp.where(is_going, step, begin)),
    )


def _advanced(teachers: Teachers, recall: Recall, pairs: Any, begin: jax.Array, step: jax.Array) -> Any:
    """Return the memories of some pairs, advanced from their steps `begin` [pair] up to this step."""

    def next_step(number: jax.Array, memory: Any) -> Any:
        after, _ = teachers.act(memory, recall.codes[number, pairs], recall.last_actions[number, pairs])
        is_due = begin <= number
        return jax.tree.map(lambda new, old: jnp.where(_like(is_due, new), new, old), after, memory)

    memory = jax.tree.map(lambda leaf: leaf[:, pairs], recall.memory)
    return jax.lax.fori_loop(jnp.min(begin), step, next_step, memory)


def _like(flags: jax.Array, rows: jax.Array) -> jax.Array:
    """Reshape flags [pair] to broadcast against rows [teacher, pair, …]."""
    return flags.reshape((1, -1) + (1,) * (rows.ndim - 2))
