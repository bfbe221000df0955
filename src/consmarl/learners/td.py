"""Temporal-difference learning, an equation a function: unbatched in agents, over whole episodes.

Axes: `[step, episode, …]`, as the recurrent networks have them.
"""

import jax
import jax.numpy as jnp


def step_mask(num_steps: jax.Array, limit: int) -> jax.Array:
    """Return 1 for steps that were played and 0 for padding: float32 [step, episode]."""
    return (jnp.arange(limit)[:, None] < num_steps[None, :]).astype(jnp.float32)


def continues(num_steps: jax.Array, terminated: jax.Array, limit: int, *, bootstrap_time_limit: bool) -> jax.Array:
    """Return 1 where a value follows the step, 0 where the episode ended with it: float32 [step, episode].

    The paper's way ends an episode at its time limit as at any other end; with `bootstrap_time_limit` only an end of
    the task itself is final.
    """
    is_last = jnp.arange(limit)[:, None] == num_steps[None, :] - 1
    is_final = is_last & terminated[None, :] if bootstrap_time_limit else is_last
    return 1.0 - is_final


def chosen_values(values: jax.Array, actions: jax.Array) -> jax.Array:
    """Return Q(o, a) of the actions taken: [..., action], [...] → [...]."""
    is_chosen = actions[..., None] == jnp.arange(values.shape[-1]).reshape((1,) * actions.ndim + (-1,))
    return jnp.sum(jnp.where(is_chosen, values, 0.0), axis=-1)


def q_targets(rewards_t: jax.Array, continues_t: jax.Array, values_t: jax.Array, discount: float) -> jax.Array:
    """The y of Eq. 3: r + γ max_a' Q̄(o', a'), without what follows a final step."""
    return td_targets(rewards_t, continues_t, values_t.max(axis=-1), discount)


def double_q_values(values: jax.Array, online_values: jax.Array) -> jax.Array:
    """Q̄(o, argmax_a Q(o, a)): one network says which action is best, the other what it is worth (double Q-learning)."""
    return chosen_values(values, jnp.argmax(online_values, axis=-1))


def td_targets(rewards_t: jax.Array, continues_t: jax.Array, values_t: jax.Array, discount: float) -> jax.Array:
    """r + γ v', without what follows a final step, for values of states [step, episode]."""
    return rewards_t + discount * continues_t * values_t


def expectile_weights(predictions: jax.Array, targets: jax.Array, expectile: float) -> jax.Array:
    """Return what each squared error counts: the expectile where the target is above the prediction, else the rest."""
    return jnp.where(targets > predictions, expectile, 1 - expectile)


def masked_squared_error(predictions: jax.Array, targets: jax.Array, mask: jax.Array) -> jax.Array:
    """Eq. 3: the mean of (y − Q)² over the steps that were played."""
    return jnp.sum(mask * (predictions - targets) ** 2) / jnp.sum(mask)
