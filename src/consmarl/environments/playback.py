"""Play given actions through an environment in one compiled call, for pictures, tests and benchmarks."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from consmarl.environments.actions import branch_axis
from consmarl.environments.interface import Environment, Outcome
from consmarl.environments.masks import choices, draw_allowed


class Trajectory(NamedTuple):
    """An episode of `num_steps` steps; rows after its end have no meaning."""

    states: Any  # [step + 1, …], starting with the initial state
    codes: jax.Array  # unsigned [step + 1, agent, code]
    outcomes: Outcome  # [step, …]

    @property
    def num_steps(self) -> int:
        """Number of steps in the episode."""
        return int(jnp.argmax(self.outcomes.done)) + 1

    def state(self, step: int) -> Any:
        """Return the state after this many steps."""
        return jax.tree.map(lambda rows: rows[step], self.states)


@functools.partial(jax.jit, static_argnums=0)
def play_from(world: Environment[Any, Any, Any], key: jax.Array, layout: Any, actions: jax.Array) -> Trajectory:
    """Play `actions` [step, agent] on a layout, for `episode_limit` steps."""

    def step(state: Any, turn: tuple[jax.Array, jax.Array]) -> tuple[Any, Any]:
        key_step, chosen = turn
        state, outcome = world.step(key_step, state, chosen)
        return state, (state, world.observe(state), outcome)

    start = world.begin(layout)
    keys_step = jax.random.split(key, world.episode_limit)
    _, (states, codes, outcomes) = jax.lax.scan(step, start, (keys_step, actions))

    return _trajectory(world, start, states, codes, outcomes)


def _trajectory(
    world: Environment[Any, Any, Any], start: Any, states: Any, codes: jax.Array, outcomes: Outcome
) -> Trajectory:
    def with_start(first: jax.Array, rest: jax.Array) -> jax.Array:
        return jnp.concatenate([first[None], rest])

    return Trajectory(
        states=jax.tree.map(with_start, start, states),
        codes=with_start(world.observe(start), codes),
        outcomes=outcomes,
    )


def play(world: Environment[Any, Any, Any], key: jax.Array, actions: jax.Array) -> Trajectory:
    """Play `actions` [step, agent] on a random layout."""
    key_layout, key_steps = jax.random.split(key)
    return play_from(world, key_steps, world.generate_layout(key_layout), actions)


@functools.partial(jax.jit, static_argnums=0)
def play_at_random(world: Environment[Any, Any, Any], key: jax.Array) -> tuple[Trajectory, jax.Array]:
    """Play uniformly random allowed actions on a random layout; also return the actions, int32 [step, agent]."""
    key_layout, key_steps = jax.random.split(key)
    start = world.reset(key_layout)

    def step(state: Any, key_step: jax.Array) -> tuple[Any, Any]:
        key_choose, key_world = jax.random.split(key_step)
        actions = draw_allowed(key_choose, choices(world.allowed_actions(state)))
        following, outcome = world.step(key_world, state, actions)
        return following, (following, world.observe(following), outcome, actions)

    _, (states, codes, outcomes, actions) = jax.lax.scan(step, start, jax.random.split(key_steps, world.episode_limit))
    return _trajectory(world, start, states, codes, outcomes), actions


def random_actions(world: Environment[Any, Any, Any], key: jax.Array) -> jax.Array:
    """Draw an episode's actions uniformly, for environments without masks: int32 [step, agent, …]."""
    shape = (world.episode_limit, world.num_agents, *branch_axis(world.num_branches))
    return jax.random.randint(key, shape, 0, world.num_actions)
