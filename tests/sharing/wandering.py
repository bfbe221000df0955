"""A tiny environment that shows the same states as whole numbers, or as noisy floats with different scales."""

import functools
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from consmarl.environments.interface import Counters, Environment, Outcome

SIDE = 5
MOVES = jnp.array([[0, 0], [0, 1], [0, -1], [1, 0], [-1, 0]])


class Wanderers(NamedTuple):
    cells: jax.Array  # int32 [agent, 2]
    noise: jax.Array  # float32 [agent, code]
    num_steps: jax.Array  # int32


@dataclass(frozen=True)
class Wandering(Environment):
    """Agents on a square that start mostly near one corner; each sees its cell and, if `sees_others`, another agent's.

    `noise` is a standard deviation in cells; if it is None, observations are exact.
    """

    noise: float | None = None
    sees_others: bool = False
    num_agents: int = 2
    episode_limit: int = 20
    id: str = "wandering"
    action_names = ("stay", "right", "left", "down", "up")

    @property
    def observation_scale(self):
        return np.ones(4 if self.sees_others else 2, np.float32)

    @property
    def observation_limit(self):
        return np.full(self.observation_size, SIDE - 1)

    @property
    def observation_dtype(self):
        return np.dtype(np.uint8 if self.noise is None else np.float32)

    def generate_layout(self, key):
        key_cells, key_noise = jax.random.split(key)
        draws = jax.random.uniform(key_cells, (2, self.num_agents, 2))
        return Wanderers((SIDE * draws[0] * draws[1]).astype(jnp.int32), self.draw(key_noise), jnp.zeros((), jnp.int32))

    def begin(self, layout):
        return layout

    def draw(self, key):
        return jax.random.normal(key, (self.num_agents, self.observation_size))

    def observe(self, state):
        codes = state.cells
        if self.sees_others:
            codes = jnp.concatenate([codes, jnp.roll(codes, 1, axis=0)], axis=1)
        if self.noise is None:
            return codes.astype(jnp.uint8)
        units = jnp.array([1.0, 50.0, 0.02, 7.0])[: self.observation_size]
        return (codes + self.noise * state.noise) * units[None] + 3

    def advance(self, state, actions, draws):
        cells = jnp.clip(state.cells + MOVES[actions], 0, SIDE - 1)
        rewards = jnp.all(cells == SIDE - 1, axis=1).astype(jnp.float32)
        following = Wanderers(cells, draws, state.num_steps + 1)
        return following, Outcome(rewards, jnp.zeros((), bool), following.num_steps >= self.episode_limit)

    def counters(self, state):
        del state
        return Counters({}, {})


@functools.cache
def wandered(world, num_rounds, num_envs=4, seed=0):
    """Return both kinds of observations, exact and noisy, of agents that move at random: [step, agent, env, code]."""
    exact = Wandering(sees_others=world.sees_others, num_agents=world.num_agents)

    def play(key):
        key_reset, key_moves, key_steps = jax.random.split(key, 3)
        states = jax.vmap(world.reset)(jax.random.split(key_reset, num_envs))
        moves = jax.random.randint(key_moves, (world.episode_limit, num_envs, world.num_agents), 0, len(MOVES))

        def step(states, now):
            key_now, actions = now
            seen = jax.vmap(exact.observe)(states), jax.vmap(world.observe)(states)
            return jax.vmap(world.step)(jax.random.split(key_now, num_envs), states, actions)[0], seen

        return jax.lax.scan(step, states, (jax.random.split(key_steps, world.episode_limit), moves))[1]

    seen = jax.jit(jax.vmap(play))(jax.random.split(jax.random.key(seed), num_rounds))
    return jax.tree.map(lambda rows: rows.reshape(-1, *rows.shape[2:]).swapaxes(1, 2), seen)


@functools.partial(jax.jit, static_argnums=0)
def counted(way, state, codes, seats, amounts):
    """Count visits [...] in compiled code."""
    return way.count(state, way.marks(codes), seats, amounts)


@functools.partial(jax.jit, static_argnums=0)
def looked_up(way, state, codes, seats):
    """Look up visits in compiled code."""
    return way.lookup(state, way.marks(codes), seats)


@functools.partial(jax.jit, static_argnums=0)
def _counted_in_turn(way, first, codes, seats):
    return jax.lax.scan(lambda state, seen: counted(way, state, seen, seats, jnp.ones_like(seats)), first, codes)


def counts_of(way, codes, num_places=1 << 12):
    """Return the counts after every visit, [step, agent, env], and the state."""
    _, num_agents, num_envs, size = codes.shape
    seats = jnp.broadcast_to(jnp.arange(num_agents)[:, None], (num_agents, num_envs))
    state, counts = _counted_in_turn(way, way.init(num_places, num_agents, size), codes, seats)
    return np.asarray(counts), state
