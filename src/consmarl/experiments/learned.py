"""Load the policy of a policy file or a run; for an unfinished run, that of its newest checkpoint."""

import dataclasses
import functools
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from consmarl.environments.trust import Trust
from consmarl.errors import UsageError, shown
from consmarl.experiments.configuration.config import TrainConfig
from consmarl.experiments.directory import read_config
from consmarl.experiments.memory import check_memory_to_resume
from consmarl.experiments.policies import load_policy, policy_config, policy_file
from consmarl.files import CHECKPOINTS, CONFIG, POLICY
from consmarl.training import checkpoints


class Saved(NamedTuple):
    """The policy in a run's newest checkpoint."""

    parameters: Any
    config: TrainConfig
    episode: int  # number of episodes after which it was saved


def learned_policy(policy: Path | str, *, trust: Trust = False) -> tuple[Any, TrainConfig]:
    """Return the parameters and configuration of a policy file or a run; print a note if the run is unfinished.

    Third-party environments named in a file are not run unless `trust` allows it, as in `TrainConfig.from_json`.
    """
    policy = _path_of(policy)
    if not _is_unfinished(policy):
        return load_policy(policy_file(policy), trust=trust)
    saved = newest_policy(policy, trust=trust)
    Console(stderr=True, soft_wrap=True).print(
        f"{policy} has not finished: this is its policy after {saved.episode:,} of {saved.config.episodes:,} episodes.",
        markup=False, highlight=False,
    )  # fmt: skip
    return saved.parameters, saved.config


def named_environment(policy: Path | str) -> str:
    """Return the id of the environment that a policy file or a run names, without building it."""
    policy = _path_of(policy)
    return (read_config(policy) if _is_unfinished(policy) else policy_config(policy_file(policy))).env


def _path_of(policy: Path | str) -> Path:
    if not isinstance(policy, str | Path):
        raise UsageError(f"policy must be the path of a file or of a run, not {shown(policy)}.")
    return Path(policy)


def _is_unfinished(policy: Path) -> bool:
    return (policy / CONFIG).is_file() and not (policy / POLICY).is_file()


def newest_policy(run: Path, *, trust: Trust = False) -> Saved:
    """Return the policy in a run's newest valid checkpoint, finished or not; `trust` as in `learned_policy`."""
    config = read_config(run, trust=trust)
    trainer = dataclasses.replace(config, devices=1).trainer()  # reading a checkpoint needs only one
    check_memory_to_resume(trainer, run)
    restored = checkpoints.restore(run / CHECKPOINTS, functools.partial(trainer.init, config.seed))
    return Saved(trainer.learner.evaluated_parameters(restored.state.learner), config, restored.number)
