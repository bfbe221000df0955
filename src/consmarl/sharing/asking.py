"""When sharing starts, in which episodes agents may ask, and whether an observation is new in the episode."""

import jax
import jax.numpy as jnp

PRACTICE = 20240220  # an arbitrary but fixed seed: which agents practise depends only on the episode
PART_BEFORE_SHARING = 8  # in a run too short for the default start, sharing starts after an eighth


def fitted_start(start_episode: int, num_episodes: int) -> int:
    """Return the start of sharing in a run of this length: the default, or an eighth of a shorter run."""
    return min(start_episode, num_episodes // PART_BEFORE_SHARING)


def never_begins(start_episode: int, num_episodes: int) -> bool:
    """Return whether a run ends before sharing starts; its last episode is number `num_episodes` − 1."""
    return start_episode >= num_episodes - 1


def in_any_branch(flags: jax.Array, num_branches: int) -> jax.Array:
    """Return whether flags hold in any dimension of an action: [agent, env], from [agent, env, …]."""
    return flags if num_branches == 1 else jnp.any(flags, axis=-1)


def asks_in(episodes: jax.Array, num_agents: int, share: float) -> jax.Array:
    """Return which agents may ask in these episodes [env], the same in all steps: bool [agent, env]."""

    def draw(episode: jax.Array) -> jax.Array:
        return jax.random.uniform(jax.random.fold_in(jax.random.key(PRACTICE), episode), (num_agents,))

    return jax.vmap(draw, out_axes=1)(episodes) < share


def is_new_now(prints: jax.Array, met: jax.Array) -> jax.Array:
    """Return whether observations [agent, env, 2] are not among those met in this episode [step, agent, env, 2]."""
    return ~jnp.any(jnp.all(prints[None] == met, axis=-1), axis=0)
