"""Policy gradients, one function per equation."""

import jax
import jax.numpy as jnp

from consmarl.environments.masks import choices, only_allowed

FORBIDDEN = -1e9  # a logit with probability 0 and, unlike −∞, a defined gradient


def mixed_log_policy(logits: jax.Array, epsilon: jax.Array, allowed: jax.Array | None = None) -> jax.Array:
    """Return log π of π = (1 − ε) softmax(logits) + ε / A: [..., action]; ε is one number or has the logits' axes.

    With `allowed`, both terms cover the allowed actions only; absent agents have a single action.
    """
    if allowed is None:
        num_actions: jax.Array | int = logits.shape[-1]
    else:
        allowed = choices(allowed)
        logits = jnp.where(allowed, logits, FORBIDDEN)
        num_actions = jnp.sum(allowed, axis=-1, keepdims=True)
    # in logarithms, so that neither ε = 0 nor an underflowing probability spoils the gradient
    mixed = jnp.logaddexp(jnp.log1p(-epsilon) + jax.nn.log_softmax(logits), jnp.log(epsilon / num_actions))
    return only_allowed(mixed, allowed)


def policy_gradient_loss(log_probabilities: jax.Array, advantages: jax.Array, mask: jax.Array) -> jax.Array:
    """Return −mean(A · log π(a)) over the steps that were played; advantages are not differentiated."""
    return -jnp.sum(mask * jax.lax.stop_gradient(advantages) * log_probabilities) / jnp.sum(mask)
