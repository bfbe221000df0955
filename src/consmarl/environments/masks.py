"""Which actions are allowed, as arrays: bool [..., action].

An agent that may do nothing at all is absent. It takes action 0 all the same, because arrays have a place for it, and
whoever learns leaves that step out.
"""

import jax
import jax.numpy as jnp

NOTHING = 0  # the action that absent agents take


def is_present(allowed: jax.Array) -> jax.Array:
    """Return where an agent is there, which is where it may do something: bool [...]."""
    return jnp.any(allowed, axis=-1)


def choices(allowed: jax.Array) -> jax.Array:
    """Return among what to choose: what is allowed, and `NOTHING` for those who are absent."""
    is_nothing = jnp.arange(allowed.shape[-1]) == NOTHING
    return allowed | (~is_present(allowed)[..., None] & is_nothing.reshape((1,) * (allowed.ndim - 1) + (-1,)))


def only_allowed(values: jax.Array, allowed: jax.Array | None) -> jax.Array:
    """Return values of actions, −∞ for those that are forbidden; None forbids nothing."""
    return values if allowed is None else jnp.where(allowed, values, -jnp.inf)


def draw_allowed(key: jax.Array, allowed: jax.Array) -> jax.Array:
    """Draw uniformly among what is allowed, of which there has to be something: int32 [...]."""
    number = jax.random.randint(key, allowed.shape[:-1], 0, jnp.sum(allowed, axis=-1))
    return nth_allowed(allowed, number)


def nth_allowed(allowed: jax.Array, number: jax.Array) -> jax.Array:
    """Return the allowed action with this number, counted from 0: int32 [...]."""
    return jnp.argmax(jnp.cumsum(allowed, axis=-1) > number[..., None], axis=-1).astype(jnp.int32)


def is_allowed(allowed: jax.Array, actions: jax.Array) -> jax.Array:
    """Return whether actions [...] are allowed: bool [...]."""
    return jnp.take_along_axis(allowed, actions[..., None], axis=-1)[..., 0]
