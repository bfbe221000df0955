"""The running mean and spread of every number of an observation, so that all of them can be weighted equally.

Unbatched: one `Scales` for all observations added to it. Axes: `[visit, code]`.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

LEAST_VARIANCE = 1e-10  # relative to the square of the mean; below this, a number is constant except for rounding


class Scales(NamedTuple):
    """Mean and spread of every number of an observation."""

    num_seen: jax.Array  # int32
    mean: jax.Array  # float32 [code]
    squares: jax.Array  # float32 [code], sum of squared differences from the mean


def no_scales(observation_size: int) -> Scales:
    """Return scales before the first observation."""
    # two arrays, since one cannot be donated twice
    return Scales(jnp.zeros((), jnp.int32), jnp.zeros(observation_size), jnp.zeros(observation_size))


def having_seen(scales: Scales, codes: jax.Array, is_visit: jax.Array, most: int) -> Scales:
    """Return scales with observations [visit, code] added; unchanged if `most` have already been seen."""
    weights = jnp.where(scales.num_seen < most, is_visit, 0).astype(jnp.int32)
    num_new = jnp.sum(weights)
    num_seen = scales.num_seen + num_new
    mean_of_new = jnp.sum(codes * weights[:, None], axis=0) / jnp.maximum(num_new, 1)
    squares_of_new = jnp.sum(jnp.square(codes - mean_of_new[None]) * weights[:, None], axis=0)
    difference, share = mean_of_new - scales.mean, num_new / jnp.maximum(num_seen, 1)
    added = squares_of_new + jnp.square(difference) * (scales.num_seen * share)
    return Scales(num_seen, scales.mean + difference * share, scales.squares + added)


def deviations(scales: Scales) -> tuple[jax.Array, jax.Array]:
    """Return the standard deviation of every number (1 for constant ones), and how many numbers vary (at least 1)."""
    variance = scales.squares / jnp.maximum(scales.num_seen, 1)
    varies = variance > LEAST_VARIANCE * jnp.maximum(jnp.square(scales.mean), LEAST_VARIANCE)
    return jnp.sqrt(jnp.where(varies, variance, 1.0)), jnp.maximum(jnp.sum(varies), 1)
