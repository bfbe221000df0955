"""The policy that a file or a run holds: of a run that has not finished, the newest that it saved."""

import dataclasses
import functools
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from consmarl.errors import UsageError, shown
from consmarl.experiments.config import TrainConfig
from consmarl.experiments.directory import read_config
from consmarl.experiments.memory import check_memory_to_resume
from consmarl.experiments.policies import load_policy, policy_file
from consmarl.files import CHECKPOINTS, CONFIG, POLICY
from consmarl.training import checkpoints


class Saved(NamedTuple):
    """What a run's newest checkpoint acts by."""

    parameters: Any
    config: TrainConfig
    episode: int  # after which it was saved


def learned_policy(policy: Path | str) -> tuple[Any, TrainConfig]:
    """Return parameters and configuration of a policy file or of a run; say so where the run has not finished."""
    if not isinstance(policy, str | Path):
        raise UsageError(f"policy must be the path of a file or of a run, not {shown(policy)}.")
    policy = Path(policy)
    if not (policy / CONFIG).is_file() or (policy / POLICY).is_file():
        return load_policy(policy_file(policy))
    saved = newest_policy(policy)
    Console(stderr=True, soft_wrap=True).print(
        f"{policy} has not finished: this is its policy after {saved.episode:,} of {saved.config.episodes:,} episodes.",
        markup=False, highlight=False,
    )  # fmt: skip
    return saved.parameters, saved.config


def newest_policy(run: Path) -> Saved:
    """Return the policy in a run's newest whole checkpoint, finished or not."""
    config = read_config(run)
    trainer = dataclasses.replace(config, devices=1).trainer()  # reading takes one, however many it was made with
    check_memory_to_resume(trainer, run)
    restored = checkpoints.restore(run / CHECKPOINTS, functools.partial(trainer.init, config.seed))
    return Saved(trainer.learner.parameters(restored.state.learner), config, restored.number)
