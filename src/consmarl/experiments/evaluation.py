"""Greedy episodes summed up, however many there are: more than memory should hold at once are played in batches."""

from typing import Any

import jax
import numpy as np

from consmarl.experiments.config import AnyTrainer
from consmarl.experiments.metrics import counter_means
from consmarl.training.rollout import Episodes
from consmarl.training.sizes import episode_bytes

BATCH_BYTES = 500_000_000  # of episodes that are played at once
ALWAYS_AT_ONCE = 1_000  # episodes, whatever they take: published figures come from evaluations of this size


def episodes_at_once(trainer: AnyTrainer) -> int:
    """Return how many greedy episodes are played side by side; the same on every machine, as chance depends on it."""
    return max(BATCH_BYTES // episode_bytes(trainer), ALWAYS_AT_ONCE)


def evaluation_summary(trainer: AnyTrainer, parameters: Any, key: jax.Array, num_episodes: int) -> dict[str, float]:
    """Play greedily and sum up: mean team return, its standard error, and the counters."""
    at_once = episodes_at_once(trainer)
    if num_episodes <= at_once:
        return _summary(*_played(trainer, parameters, key, num_episodes))
    sizes = [min(at_once, num_episodes - first) for first in range(0, num_episodes, at_once)]
    batches = [_played(trainer, parameters, jax.random.fold_in(key, number), size) for number, size in enumerate(sizes)]
    returns, counters = zip(*batches, strict=True)
    return _summary(np.concatenate(returns), jax.tree.map(lambda *each: np.concatenate(each), *counters))


def _played(trainer: AnyTrainer, parameters: Any, key: jax.Array, num_episodes: int) -> tuple[Any, Any]:
    """Return team returns [episode] and counters [episode, …]."""
    episodes: Episodes = trainer.evaluate(parameters, key, num_episodes)
    returns = np.asarray(episodes.batch.rewards.sum(axis=(0, 2)), np.float64)
    return returns, jax.device_get(episodes.counters)


def _summary(returns: Any, counters: Any) -> dict[str, float]:
    error = returns.std() / np.sqrt(len(returns))
    return {
        "return": round(float(returns.mean()), 6),
        "return_error": round(float(error), 6),
        **counter_means(counters, num_leading_axes=1),
    }
