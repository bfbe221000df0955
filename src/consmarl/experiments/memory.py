"""Check whether a run fits into this machine's memory before anything is allocated.

The sizes of a run's permanent arrays are exact, since JAX computes shapes without allocating arrays. Temporary memory
is estimated by formulae whose factors were measured: peaks of resident memory, IQL in pgm-3ag, on a CPU.
"""

import dataclasses
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax

from consmarl.errors import UsageError
from consmarl.experiments.configuration.as_json import every_setting
from consmarl.experiments.configuration.config import AnyTrainer, TrainConfig
from consmarl.experiments.evaluation import episodes_at_once, evaluation_recall_bytes
from consmarl.experiments.machine import available_bytes
from consmarl.sharing.codebook import Codebook
from consmarl.sharing.counters import CountTable, places_for
from consmarl.sharing.interface import Sharing
from consmarl.sharing.none import ALONE
from consmarl.sharing.simhash import HashedCounts
from consmarl.training.sizes import episode_bytes, recall_bytes, tree_bytes

RESERVE_BYTES = 500_000_000  # for compilation; at most as much as the arrays, so that small runs are not rejected
GRADIENT_COPIES = 2  # of the networks, during an update
HIDDEN_COPIES, INPUT_COPIES = 14, 2  # of each step's activations, during an update
PLAYED_COPIES = 2  # of episodes: as played, and as passed on
RECALL_COPIES = 3  # of teammates' memories: before a step, after it, and for the teachers that are asked
CODEBOOK_SIZE = "share.codebook_size"
PLACE_BYTES = 12  # per slot in the table of counts: 8 for the key, 4 for the count


class Need(NamedTuple):
    """A part of a run that needs memory."""

    what: str
    setting: str  # the setting that determines its size
    value: int  # of the setting
    num_bytes: int


def check_memory(config: TrainConfig, trainer: AnyTrainer) -> None:
    """Raise an error if a run needs more memory than is available; the message says what would fit."""
    config = config.resolved(trainer.world)
    free = available_bytes()
    if free is None or total_bytes(needs := needs_of(config, trainer)) <= free:
        return
    worst = max(needs, key=lambda need: need.num_bytes)

    def fits(value: int) -> bool:
        return total_bytes(needs_of(*_changed(config, trainer, worst.setting, value))) <= free

    option = f"--{worst.setting.replace('_', '-')}"
    most = _rounded_down(_largest(fits, worst.value))
    if worst.setting == "num_envs":
        most = next((each for each in range(most, 0, -1) if config.chunk_episodes % each == 0), 0)
    would_do = f"{option} {most} fits" if most else f"even {option} 1 does not fit"
    raise UsageError(
        f"{worst.what} needs {gigabytes(worst.num_bytes)} of memory, and {gigabytes(free)} are free: {would_do}."
    )


def check_memory_to_resume(trainer: AnyTrainer, out: Path) -> None:
    """Raise an error if a run's checkpoint does not fit in memory, which holds it twice while it is being read."""
    free, need = available_bytes(), 2 * tree_bytes(trainer.shapes())
    if free is not None and need > free:
        raise UsageError(
            f"resuming {out} needs {gigabytes(need)} of memory, and {gigabytes(free)} are free: "
            "free some memory, or copy the run to a larger machine."
        )


def check_evaluation_memory(trainer: AnyTrainer, num_episodes: int, sharing: Sharing = ALONE) -> None:
    """Raise an error if an evaluation needs more memory than is available."""
    free, need = available_bytes(), _evaluation_bytes(trainer, num_episodes, sharing)
    if free is not None and need > free:
        raise UsageError(
            f"{num_episodes:,} episodes at once need {gigabytes(need)} of memory, and {gigabytes(free)} are free: "
            f"--episodes {max(num_episodes * free // need, 1)} fits."
        )


def needs_of(config: TrainConfig, trainer: AnyTrainer) -> list[Need]:
    """Return the memory needs of a run with a fully resolved configuration, part by part."""
    return [*_kept(config, trainer), *_passing(config, trainer)]


def total_bytes(needs: list[Need]) -> int:
    """Return a run's peak memory, including the reserve for compilation."""
    arrays = sum(need.num_bytes for need in needs)
    return arrays + min(arrays, RESERVE_BYTES)


def _kept(config: TrainConfig, trainer: AnyTrainer) -> Iterator[Need]:
    """Yield the needs that last for the whole run: replay, learner and counts."""
    state = trainer.shapes()
    parameters = jax.eval_shape(trainer.learner.parameters, state.learner)
    capacity = trainer.replay.capacity
    setting = "num_envs" if trainer.learner.is_on_policy else "replay_episodes"
    what = f"a replay of {capacity:,} episode{'s' * (capacity > 1)}"
    yield Need(what, setting, capacity, tree_bytes(state.replay))
    setting, width = max(_widths(config).items(), key=lambda each: each[1])
    learning = tree_bytes(state.learner) + GRADIENT_COPIES * tree_bytes(parameters) + tree_bytes(state.beside)
    yield Need(f"learning with networks {width:,} wide", setting, width, learning)
    yield from _counts(config, trainer, getattr(state.sharing, "table", None))


def _counts(config: TrainConfig, trainer: AnyTrainer, counts: Any) -> Iterator[Need]:
    """Yield the memory needed for counting: a table that grows, or codebooks of constant size."""
    table = counts.table if isinstance(counts, HashedCounts) else counts
    if isinstance(table, CountTable):
        chunk = trainer.num_visits(max(config.chunk_episodes // trainer.num_envs, 1))
        places = places_for(table.num_places, chunk)
        what = f"counting observations in {config.chunk_episodes:,} episodes"
        yield Need(what, "report_every", config.chunk_episodes, PLACE_BYTES * places)
    if isinstance(counts, Codebook):
        size = counts.counts.shape[1]
        what = f"a codebook of {size:,} observations for every agent"
        yield Need(what, CODEBOOK_SIZE, size, tree_bytes(counts))


def _widths(config: TrainConfig) -> dict[str, int]:
    """Return the settings that determine the sizes of networks, with their values."""
    return {
        name: value
        for name, value in every_setting(config).items()
        if name.endswith(("_size", "num_strategies")) and value is not None
    }


def _passing(config: TrainConfig, trainer: AnyTrainer) -> Iterator[Need]:
    """Yield the largest of the temporary needs, which never occur at the same time."""
    batch = trainer.batch_episodes
    evaluated = max(("evaluation_episodes", "final_episodes"), key=lambda name: getattr(config, name))
    num_evaluated = min(getattr(config, evaluated), episodes_at_once(trainer))
    playing = trainer.num_envs * PLAYED_COPIES * episode_bytes(trainer) + recall_bytes(trainer)
    evaluation = _evaluation_bytes(trainer, num_evaluated)
    several = [
        Need(f"{trainer.num_envs:,} episodes side by side", "num_envs", trainer.num_envs, playing),
        Need(f"an evaluation of {num_evaluated:,} episodes", evaluated, num_evaluated, evaluation),
    ]
    if not trainer.learner.is_on_policy:
        update = _update_bytes(config, trainer)
        several.append(Need(f"an update on {batch:,} episodes", "batch_episodes", batch, update))
    yield max(several, key=lambda need: need.num_bytes)


def _evaluation_bytes(trainer: AnyTrainer, num_episodes: int, sharing: Sharing = ALONE) -> int:
    of_an_episode = PLAYED_COPIES * episode_bytes(trainer)
    if sharing != ALONE:
        of_an_episode += RECALL_COPIES * evaluation_recall_bytes(trainer, sharing)
    return min(num_episodes, episodes_at_once(trainer, sharing)) * of_an_episode


def _update_bytes(config: TrainConfig, trainer: AnyTrainer) -> int:
    """Return the memory that an update needs: for the episodes, and one agent's activations in all of their steps."""
    world = trainer.world
    inputs = world.observation_size + world.num_actions * world.num_branches
    activations = (
        4 * (world.episode_limit + 1) * (INPUT_COPIES * inputs + HIDDEN_COPIES * _widths(config)["hidden_size"])
    )
    return trainer.batch_episodes * (episode_bytes(trainer) + activations)


def _changed(config: TrainConfig, trainer: AnyTrainer, setting: str, value: int) -> tuple[TrainConfig, AnyTrainer]:
    """Return a run with another value of a setting and the same environment, since third-party ones build slowly."""
    width = setting.removeprefix("learn.")
    if setting in _widths(config):
        learner: Any = trainer.learner
        trainer = dataclasses.replace(trainer, learner=dataclasses.replace(learner, **{width: value}))
    elif setting in ("replay_episodes", "batch_episodes", "num_envs"):
        sizes: dict[str, Any] = {setting: value}
        trainer = dataclasses.replace(trainer, **sizes)
    if setting == CODEBOOK_SIZE:
        sharing: Any = trainer.sharing
        options = dict(sharing.counting_options) | {"codebook_size": value}
        trainer = dataclasses.replace(trainer, sharing=dataclasses.replace(sharing, counting_options=options))
    if setting == "num_envs":  # the configuration would reject values that do not divide other settings
        return config, trainer
    if setting == "report_every":
        return _with_chunk(config, value), trainer
    return config.with_options({setting: value}), trainer


def _with_chunk(config: TrainConfig, value: int) -> TrainConfig:
    """Return a configuration that reports every `value` episodes, with periods and length adjusted to that."""
    value = max(value // config.round_episodes, 1) * config.round_episodes
    return dataclasses.replace(
        config, report_every=value, episodes=value, evaluate_every=None, checkpoint_every=None, record=()
    )


def _largest(fits: Callable[[int], bool], most: int) -> int:
    """Return about the largest number below `most` that fits, or 0 if none does; if a number fits, smaller ones do."""
    if most <= 1 or not fits(1):
        return 0
    least = 1
    while most - least > max(least // 100, 1):  # to within 1 %, since it will be rounded
        middle = max(math.isqrt(least * most), least + 1)  # bisects on a logarithmic scale
        least, most = (middle, most) if fits(middle) else (least, middle)
    return least


def _rounded_down(number: int) -> int:
    """Return a number rounded down to two significant digits."""
    unit = 10 ** max(len(str(number)) - 2, 0)
    return number // unit * unit


def gigabytes(num_bytes: int) -> str:
    """Return a size as text: in GB, or in TB from 1 TB on."""
    return f"{num_bytes / 1e9:,.1f} GB" if num_bytes < 1e12 else f"{num_bytes / 1e12:,.0f} TB"
