"""Action masks: bool [..., action], True where an action is allowed.

An agent without any allowed action is absent. It still takes action 0, because arrays have an entry for it, and
learners leave that step out.
"""

import jax
import jax.numpy as jnp

NOTHING = 0  # the action that absent agents take


def is_present(allowed: jax.Array) -> jax.Array:
    """Return where an agent is present, that is, has an allowed action: bool [...]."""
    return jnp.any(allowed, axis=-1)


def choices(allowed: jax.Array) -> jax.Array:
    """Return the actions to choose from: the allowed ones, or `NOTHING` for absent agents: bool [..., action]."""
    is_nothing = jnp.arange(allowed.shape[-1]) == NOTHING
    return allowed | (~is_present(allowed)[..., None] & is_nothing.reshape((1,) * (allowed.ndim - 1) + (-1,)))


def only_allowed(values: jax.Array, allowed: jax.Array | None) -> jax.Array:
    """Return action values with −∞ for forbidden actions; with None, nothing is forbidden."""
    return values if allowed is None else jnp.where(allowed, values, -jnp.inf)


def draw_allowed(key: jax.Array, allowed: jax.Array) -> jax.Array:
    """Draw uniformly among the allowed actions, of which there must be at least one: int32 [...]."""
    number = jax.random.randint(key, allowed.shape[:-1], 0, jnp.sum(allowed, axis=-1))
    return nth_allowed(allowed, number)


def nth_allowed(allowed: jax.Array, number: jax.Array) -> jax.Array:
    """Return the allowed action with this number, counting allowed actions from 0: int32 [...]."""
    return jnp.argmax(jnp.cumsum(allowed, axis=-1) > number[..., None], axis=-1).astype(jnp.int32)


def is_allowed(allowed: jax.Array, actions: jax.Array) -> jax.Array:
    """Return whether actions [...] are allowed: bool [...]."""
    return jnp.take_along_axis(allowed, actions[..., None], axis=-1)[..., 0]
