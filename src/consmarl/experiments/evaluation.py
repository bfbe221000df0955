"""Play and summarise any number of greedy episodes, in batches if they would not fit in memory."""

import dataclasses
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

from consmarl.experiments.configuration.config import AnyTrainer
from consmarl.experiments.metrics import counter_means, rounded
from consmarl.sharing.interface import Sharing, Traffic
from consmarl.sharing.none import ALONE
from consmarl.training.rollout import Episodes
from consmarl.training.sizes import episode_bytes, recall_bytes

BATCH_BYTES = 500_000_000  # of episodes played at once
ALWAYS_AT_ONCE = 1_000  # episodes in one batch, however large: published figures come from evaluations of this size


class Played(NamedTuple):
    """The data kept from greedy episodes."""

    returns: NDArray[np.float64]  # [episode], the team's
    counters: Any  # [episode, …]
    messages: dict[str, NDArray[np.int64]]  # [episode], by kind; empty unless agents consult each other


def episodes_at_once(trainer: AnyTrainer, sharing: Sharing = ALONE) -> int:
    """Return how many greedy episodes are played side by side.

    The number is the same on every machine, since the random keys of episodes depend on it.
    """
    alone = max(BATCH_BYTES // episode_bytes(trainer), ALWAYS_AT_ONCE)
    if sharing == ALONE:
        return alone
    # teammates' memories of each other grow with the square of the team: a hundred agents would need gigabytes
    return min(alone, max(BATCH_BYTES // evaluation_recall_bytes(trainer, sharing), 1))


def evaluation_recall_bytes(trainer: AnyTrainer, sharing: Sharing) -> int:
    """Return how many bytes teammates' memories of each other's episodes need in one greedy episode."""
    return recall_bytes(dataclasses.replace(trainer, sharing=sharing, num_envs=1))


def evaluation_summary(
    trainer: AnyTrainer, parameters: Any, key: jax.Array, num_episodes: int, sharing: Sharing = ALONE
) -> dict[str, float]:
    """Play greedily and return means over episodes: team return, its standard error, counters, and any messages."""
    at_once = episodes_at_once(trainer, sharing)
    if num_episodes <= at_once:
        return _summary(_played(trainer, parameters, key, num_episodes, sharing))
    sizes = [min(at_once, num_episodes - first) for first in range(0, num_episodes, at_once)]
    batches = [
        _played(trainer, parameters, jax.random.fold_in(key, number), size, sharing)
        for number, size in enumerate(sizes)
    ]
    return _summary(jax.tree.map(lambda *each: np.concatenate(each), *batches))


def _played(trainer: AnyTrainer, parameters: Any, key: jax.Array, num_episodes: int, sharing: Sharing) -> Played:
    episodes: Episodes = trainer.evaluate(parameters, key, num_episodes, sharing)
    returns = np.asarray(episodes.batch.rewards.sum(axis=(0, 2)), np.float64)
    messages = {} if sharing == ALONE else _messages(jax.device_get(episodes.traffic))
    return Played(returns, jax.device_get(episodes.counters), messages)


def _messages(traffic: Traffic) -> dict[str, NDArray[np.int64]]:
    """Return the numbers of requests and of answers, each [episode]."""
    return {name: getattr(traffic, name).sum(axis=0, dtype=np.int64) for name in ("requests", "answers")}


def _summary(played: Played) -> dict[str, float]:
    returns = played.returns
    error = returns.std() / np.sqrt(len(returns))
    return {
        "return": rounded(returns.mean()),
        "return_error": rounded(error),
        **counter_means(played.counters, num_leading_axes=1),
        **{name: rounded(counts.mean()) for name, counts in played.messages.items()},
    }
