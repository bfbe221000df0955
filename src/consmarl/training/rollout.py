"""Play whole episodes in several environments side by side: the acting step, and the loop around it.

The acting step is the only place where scores, exploration and sharing meet.
Axes: environments use `[env, agent, …]`, learners and sharing `[agent, env, …]`. If actions have several dimensions,
they have a last axis of branches.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from consmarl.environments.actions import branch_axis
from consmarl.environments.interface import Counters, Environment
from consmarl.environments.masks import choices, only_allowed
from consmarl.learners.interface import AnyLearner, EpisodeBatch
from consmarl.sharing.interface import Shared, Sharing, Situation, Traffic
from consmarl.training.exploration import Choice, Exploration
from consmarl.training.teaching import Place, Teachers, both, first_recall, in_students_place, is_anyone


class Actors(NamedTuple):
    """The agents' learner, exploration and sharing. Hashable, and static in compiled code."""

    learner: AnyLearner
    exploration: Exploration
    sharing: Sharing


class Turn(NamedTuple):
    """The data carried from step to step."""

    states: Any  # [env, …]
    codes: jax.Array  # unsigned [env, agent, code]
    memory: Any
    last_actions: jax.Array  # int32 [agent, env, …], −1 at first
    exploration: Any
    sharing: Any
    sharing_memory: Any
    recall: Any  # teachers' memories of students' episodes, a `teaching.Recall`; () if there are none
    is_live: jax.Array  # bool [env], whether the episode is not over
    allowed: Any = None  # bool [env, agent, …, action], allowed actions; None if nothing is ever forbidden


class Moment(NamedTuple):
    """The number of a step, with its ε and its episodes."""

    step: jax.Array  # int32, its number
    epsilon: jax.Array  # scalar, or [agent, 1]
    episode: jax.Array  # int32 [env], the episodes' numbers


class Decision(NamedTuple):
    """The result of a step's decisions."""

    memory: Any
    exploration: Any
    shared: Shared


class Recorded(NamedTuple):
    """A recorded step; [step, …] for whole episodes."""

    step: Any  # `sharing.record.StepRecord`, or `ActRecord` if agents do not share
    states: Any  # [env, …], states before each step and, in one more row, at the end; () if not available
    rewards: jax.Array  # float32 [env, agent]
    is_live: jax.Array  # bool [env]
    epsilon: jax.Array


class Episodes(NamedTuple):
    """Episodes and their results."""

    batch: EpisodeBatch
    counters: Counters  # [env, …]
    traffic: Traffic  # [agent, env], sums over the steps
    sharing: Any  # sharing's state after them
    records: Any  # `Recorded` [step, …], or () if nothing is recorded


def act(
    actors: Actors,
    parameters: Any,
    turn: Turn,
    moment: Moment,
    key: jax.Array,
    *,
    beside: Any = (),
    is_recording: bool = False,
) -> Decision:
    """Return the decisions of all agents in all environments: score, explore, share.

    `beside` are the networks of experts beside the team, who only answer; () if there are none.
    """
    key_learner, key_explore = jax.random.split(key)
    key_share = jax.random.fold_in(key, 2)  # separate from the others, so that sharing changes no other draw
    learner = actors.learner
    codes = turn.codes.swapaxes(0, 1)
    memory, scores = learner.act(parameters, turn.memory, codes, turn.last_actions, key_learner)
    allowed = None if turn.allowed is None else turn.allowed.swapaxes(0, 1)
    choice = _chosen(actors.exploration, key_explore, scores, moment.epsilon, turn.exploration, allowed)
    situation = Situation(
        codes=codes,
        values=scores,
        actions=choice.actions,
        is_exploring=choice.is_exploring,
        is_starting=choice.is_starting,
        is_live=turn.is_live,
        epsilon=moment.epsilon,
        episode=moment.episode,
        step=moment.step,
        allowed=allowed,
    )
    teachers = Teachers(learner, parameters, actors.sharing.teacher_memory, key_learner, beside)
    place = Place(codes, turn.last_actions, turn.memory, memory, moment.step)
    prepare_teachers = in_students_place(teachers, place, turn.recall)
    shared = actors.sharing.share(
        key_share, situation, prepare_teachers, turn.sharing, turn.sharing_memory, is_recording=is_recording
    )
    return Decision(memory, choice.state, shared)


def _chosen(
    exploration: Exploration, key: jax.Array, scores: jax.Array, epsilon: jax.Array, state: Any, allowed: Any
) -> Choice:
    if allowed is None:
        return exploration.choose(key, scores, epsilon, state)
    among = choices(allowed)
    return exploration.choose_allowed(key, only_allowed(scores, among), epsilon, state, among)


def first_turn(actors: Actors, parameters: Any, states: Any, codes: jax.Array, limit: int, sharing: Any,
               key: jax.Array, allowed: Any = None, beside: Any = ()) -> Turn:  # fmt: skip
    """Return the turn before the first step of episodes whose first observations are `codes`."""
    num_envs, num_agents, _ = codes.shape
    by_agent = codes.swapaxes(0, 1)
    memory = actors.learner.begin(parameters, key, by_agent)
    of_teachers = both(memory, actors.learner.begin(beside, key, by_agent)) if is_anyone(beside) else memory
    num_branches = actors.learner.spec.num_branches
    return Turn(
        states=states,
        codes=codes,
        memory=memory,
        last_actions=jnp.full((num_agents, num_envs, *branch_axis(num_branches)), -1, jnp.int32),
        exploration=_first_exploration(actors.exploration, num_agents, num_envs, num_branches),
        sharing=sharing,
        sharing_memory=actors.sharing.begin(num_agents, num_envs, limit),
        recall=first_recall(actors.sharing.teacher_memory, of_teachers, by_agent, limit, num_branches),
        is_live=jnp.ones(num_envs, bool),
        allowed=allowed,
    )


def _first_exploration(exploration: Exploration, num_agents: int, num_envs: int, num_branches: int) -> Any:
    if num_branches == 1:
        return exploration.begin(num_agents, num_envs)
    return exploration.begin_in_branches(num_agents, num_envs, num_branches)


def play_episodes(
    world: Environment[Any, Any, Any],
    actors: Actors,
    parameters: Any,
    sharing: Any,
    epsilons: jax.Array,
    first_episode: jax.Array,
    key: jax.Array,
    num_envs: int,
    *,
    beside: Any = (),
    is_recording: bool = False,
) -> Episodes:
    """Play one episode in each of `num_envs` environments.

    `epsilons` is ε in every step, [step] or [step, agent, 1], `sharing` is sharing's state, `first_episode` is the
    number of the first of these episodes, and `beside` are the networks of experts beside the team.
    """
    key_reset, key_memory, key_steps = jax.random.split(key, 3)
    states = jax.vmap(world.reset)(jax.random.split(key_reset, num_envs))
    codes = jax.vmap(world.observe)(states)
    allowed = _allowed(world, states)
    first = first_turn(actors, parameters, states, codes, world.episode_limit, sharing, key_memory, allowed,
                       beside)  # fmt: skip
    episode = first_episode + jnp.arange(num_envs)

    def step(turn: Turn, now: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[Turn, Any]:
        key_now, epsilon, number = now
        key_act, key_world = jax.random.split(key_now)
        moment = Moment(number, epsilon, episode)
        decision = act(actors, parameters, turn, moment, key_act, beside=beside, is_recording=is_recording)
        shared = decision.shared
        keys_world = jax.random.split(key_world, num_envs)
        states, outcomes = jax.vmap(world.step)(keys_world, turn.states, shared.actions.swapaxes(0, 1))
        states = jax.tree.map(lambda new, old: jnp.where(_like(turn.is_live, new), new, old), states, turn.states)
        rewards = jnp.where(turn.is_live[:, None], outcomes.rewards, 0.0)
        ends_by_task = turn.is_live & outcomes.terminated
        codes = jax.vmap(world.observe)(states)
        is_live = turn.is_live & ~outcomes.done
        following = Turn(states, codes, decision.memory, shared.actions, decision.exploration, shared.state,
                         shared.memory, shared.recall, is_live, _allowed(world, states))  # fmt: skip
        recorded = Recorded(shared.record, turn.states, rewards, turn.is_live, of_team(epsilon)) if is_recording else ()
        seen = (codes, shared.actions, rewards, turn.is_live, ends_by_task, following.allowed)
        return following, (seen, shared.traffic, recorded)

    now = (jax.random.split(key_steps, world.episode_limit), epsilons, jnp.arange(world.episode_limit))
    last, (seen, traffic, records) = jax.lax.scan(step, first, now)
    codes_t, actions, rewards, is_live, ends_by_task, allowed_t = seen
    batch = EpisodeBatch(
        codes=jnp.concatenate([codes[None], codes_t]).transpose(2, 1, 0, 3),
        actions=jnp.moveaxis(actions, 0, 2).astype(jnp.uint8),
        rewards=rewards.transpose(2, 1, 0),
        num_steps=is_live.sum(axis=0),
        terminated=ends_by_task.any(axis=0),
        epsilon=jnp.broadcast_to(jax.vmap(of_team)(epsilons)[None, :], (num_envs, len(epsilons))),
        notes=actors.learner.notes(last.memory),
        allowed=None if allowed is None else jnp.concatenate([allowed[None], allowed_t]).swapaxes(0, 2),
    )
    totals = jax.tree.map(lambda rows: rows.sum(axis=0), traffic)
    if is_recording:
        ended = jax.tree.map(lambda rows, end: jnp.concatenate([rows, end[None]]), records.states, last.states)
        records = records._replace(states=ended)
    return Episodes(batch, jax.vmap(world.counters)(last.states), totals, last.sharing, records)


def _allowed(world: Environment[Any, Any, Any], states: Any) -> jax.Array | None:
    """Return the allowed actions, bool [env, agent, …, action]; None if nothing is ever forbidden."""
    return jax.vmap(world.allowed_actions)(states) if world.masks_actions else None


def of_team(epsilon: jax.Array) -> jax.Array:
    """Return a step's ε, or the mean over agents if each has its own."""
    return jnp.mean(epsilon) if epsilon.ndim else epsilon


def _like(flags: jax.Array, rows: jax.Array) -> jax.Array:
    return flags.reshape((-1,) + (1,) * (rows.ndim - 1))
