"""Policy gradients, one function per equation."""

import jax
import jax.numpy as jnp


def mixed_log_policy(logits: jax.Array, epsilon: jax.Array) -> jax.Array:
    """Return log π of π = (1 − ε) softmax(logits) + ε / A: [..., action]; ε is one number or has the logits' axes."""
    num_actions = logits.shape[-1]
    # by logarithms, so that neither ε = 0 nor a probability too small to write down spoils the gradient
    return jnp.logaddexp(jnp.log1p(-epsilon) + jax.nn.log_softmax(logits), jnp.log(epsilon / num_actions))


def policy_gradient_loss(log_probabilities: jax.Array, advantages: jax.Array, mask: jax.Array) -> jax.Array:
    """Return −mean(A · log π(a)) over the steps that were played; advantages are not differentiated."""
    return -jnp.sum(mask * jax.lax.stop_gradient(advantages) * log_probabilities) / jnp.sum(mask)
