"""Whole episodes in several environments side by side: the acting step, and the loop around it.

The acting step is the one place where scores and exploration meet.
Axes: worlds have `[env, agent, …]`, learners `[agent, env, …]`.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from consmarl.environments.interface import Counters, Environment
from consmarl.learners.interface import AnyLearner, EpisodeBatch
from consmarl.training.exploration import Choice, Exploration


class Turn(NamedTuple):
    """What goes from step to step."""

    states: Any  # [env, …]
    codes: jax.Array  # unsigned [env, agent, code]
    memory: Any
    last_actions: jax.Array  # int32 [agent, env], −1 at first
    exploration: Any
    is_live: jax.Array  # bool [env], whose episode goes on


class Episodes(NamedTuple):
    """Episodes played, and what was achieved in them."""

    batch: EpisodeBatch
    counters: Counters  # [env, …]


def act(
    learner: AnyLearner,
    exploration: Exploration,
    parameters: Any,
    turn: Turn,
    epsilon: jax.Array,
    key: jax.Array,
) -> tuple[Any, Choice]:
    """Let every agent in every environment decide: (memory, choice)."""
    key_learner, key_explore = jax.random.split(key)
    codes = turn.codes.swapaxes(0, 1)
    memory, scores = learner.act(parameters, turn.memory, codes, turn.last_actions, key_learner)
    return memory, exploration.choose(key_explore, scores, epsilon, turn.exploration)


def play_episodes(
    world: Environment[Any, Any, Any],
    learner: AnyLearner,
    exploration: Exploration,
    parameters: Any,
    epsilons: jax.Array,
    key: jax.Array,
    num_envs: int,
) -> Episodes:
    """Play one episode in each of `num_envs` environments; `epsilons` [step] is ε in every step."""
    key_reset, key_memory, key_steps = jax.random.split(key, 3)
    states = jax.vmap(world.reset)(jax.random.split(key_reset, num_envs))
    codes = jax.vmap(world.observe)(states)
    first = Turn(
        states=states,
        codes=codes,
        memory=learner.begin(parameters, key_memory, codes.swapaxes(0, 1)),
        last_actions=jnp.full((world.num_agents, num_envs), -1, jnp.int32),
        exploration=exploration.begin(world.num_agents, num_envs),
        is_live=jnp.ones(num_envs, bool),
    )

    def step(turn: Turn, now: tuple[jax.Array, jax.Array]) -> tuple[Turn, Any]:
        key_now, epsilon = now
        key_act, key_world = jax.random.split(key_now)
        memory, choice = act(learner, exploration, parameters, turn, epsilon, key_act)
        keys_world = jax.random.split(key_world, num_envs)
        states, outcomes = jax.vmap(world.step)(keys_world, turn.states, choice.actions.T)
        states = jax.tree.map(lambda new, old: jnp.where(_like(turn.is_live, new), new, old), states, turn.states)
        rewards = jnp.where(turn.is_live[:, None], outcomes.rewards, 0.0)
        ends_by_task = turn.is_live & outcomes.terminated
        codes = jax.vmap(world.observe)(states)
        is_live = turn.is_live & ~outcomes.done
        following = Turn(states, codes, memory, choice.actions, choice.state, is_live)
        return following, (codes, choice.actions, rewards, turn.is_live, ends_by_task)

    now = (jax.random.split(key_steps, world.episode_limit), epsilons)
    last, (codes_t, actions, rewards, is_live, ends_by_task) = jax.lax.scan(step, first, now)
    batch = EpisodeBatch(
        codes=jnp.concatenate([codes[None], codes_t]).transpose(2, 1, 0, 3),
        actions=actions.transpose(1, 2, 0).astype(jnp.uint8),
        rewards=rewards.transpose(2, 1, 0),
        num_steps=is_live.sum(axis=0),
        terminated=ends_by_task.any(axis=0),
    )
    return Episodes(batch, jax.vmap(world.counters)(last.states))


def _like(flags: jax.Array, rows: jax.Array) -> jax.Array:
    return flags.reshape((-1,) + (1,) * (rows.ndim - 1))
