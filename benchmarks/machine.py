"""The yardstick: one pinned core, and what a large matrix multiplication reaches on it in the same run."""

import os
import time
from collections.abc import Callable


def pin_to_one_core() -> None:
    """Keep this process on one core; call it before JAX starts its threads."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    else:
        print("This system cannot pin a process to a core: JAX may use several.")


def best_seconds(work: Callable[[], object], *, repeats: int = 5, at_least: float = 0.3) -> float:
    """Return the shortest time of `work`, each try being repeated until it lasts long enough to measure."""
    import jax

    jax.block_until_ready(work())  # compile
    best = float("inf")
    for _ in range(repeats):
        start, calls = time.perf_counter(), 0
        while (elapsed := time.perf_counter() - start) < at_least or calls == 0:
            jax.block_until_ready(work())
            calls += 1
        best = min(best, elapsed / calls)
    return best


def sgemm_rate(side: int = 1024) -> float:
    """Return the floating-point operations a second of a large single-precision matrix multiplication."""
    import jax
    import jax.numpy as jnp

    left = jax.random.normal(jax.random.key(0), (side, side))
    multiply = jax.jit(jnp.matmul)
    return 2 * side**3 / best_seconds(lambda: multiply(left, left))
