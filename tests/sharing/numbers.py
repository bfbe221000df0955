"""Numbers for the tests of equations: helpers for fixed ones, and strategies for random ones."""

import functools

import hypothesis
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st

from consmarl.sharing import equations

BEFORE_ONE = np.nextafter(np.float32(1), np.float32(0))  # the largest possible draw
SIZES = (2, 3, 5, 7, 12)  # of action spaces; each size compiles once

close = functools.partial(pytest.approx, rel=1e-5, abs=1e-6)  # single precision, after a few operations
some_examples = hypothesis.settings(max_examples=80, suppress_health_check=[hypothesis.HealthCheck.too_slow])

boltzmann_policy = jax.jit(equations.boltzmann_policy)
policy_confidence = jax.jit(equations.policy_confidence)


def floats(*numbers):
    return jnp.array(numbers, jnp.float32)


# Compiled code treats numbers below 2⁻¹²⁶ as 0.
singles = functools.partial(st.floats, width=32, allow_subnormal=False)


def values_of(size, least=-30.0, most=30.0):
    return st.lists(singles(least, most), min_size=size, max_size=size).map(lambda row: np.array(row, np.float32))


policies = st.sampled_from(SIZES).flatmap(values_of).map(boltzmann_policy)
fractions = singles(0.0, 1.0).map(np.float32)
