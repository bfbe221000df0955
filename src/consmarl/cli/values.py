"""The values that a run's settings really have, where the configuration leaves them to method, preset or world."""

import dataclasses
from typing import Any

from consmarl.environments.foreign import is_foreign
from consmarl.experiments.config import TrainConfig
from consmarl.experiments.sharing_options import options_of

_STAND_IN = "pgm-3ag"  # for others' worlds, which are not built for the sake of a help page


def real_values(config: TrainConfig) -> dict[str, Any]:
    """Return every setting's value by name, such as share.temperature; None where only the world itself knows."""
    plain = {name: value for name, value in vars(config).items() if name not in ("share", "learn")}
    return plain | _of_the_run(config) | _of_the_parts(config)


def _of_the_run(config: TrainConfig) -> dict[str, Any]:
    return {
        "sharing": config.sharing_kind,
        "exploration": config.exploration_kind,
        "num_envs": config.round_episodes,
        "report_every": config.chunk_episodes,
        "evaluate_every": config.evaluation_period,
        "checkpoint_every": config.checkpoint_period,
    }


def _of_the_parts(config: TrainConfig) -> dict[str, Any]:
    """Return what only shows once learner and sharing are built."""
    foreign = is_foreign(config.env)
    own: dict[str, Any] = dict(env=_STAND_IN, set=()) if foreign else {}
    trainer = dataclasses.replace(config, **own).trainer()
    learner, sharing, world = trainer.learner, trainer.sharing, trainer.world
    values: dict[str, Any] = {
        "epsilon_start": trainer.epsilon.start,
        "epsilon_end": trainer.epsilon.end,
        "learning_rate": getattr(getattr(learner, "optimiser", None), "learning_rate", None),
    }
    depends_on_world = config.entry.epsilon(1) != config.entry.epsilon(2)
    values["epsilon_anneal_steps"] = None if foreign and depends_on_world else trainer.epsilon.anneal_steps
    for name in ("weights", "reward_of"):
        values[name] = getattr(learner, name, None)
    for name in vars(config.learn):
        values[f"learn.{name}"] = getattr(learner, name, None)
    for name in vars(config.share):
        values[f"share.{name}"] = getattr(sharing, name, None)
    if not foreign and "budget_answers" in options_of(config.sharing_kind):
        values["share.budget_answers"] = sharing.purse(world.num_agents, world.num_actions).answers  # type: ignore[attr-defined]
    return values


def has_setting(config: TrainConfig, name: str) -> bool:
    """Whether a setting means anything to this run's method and sharing."""
    group, _, option = name.rpartition(".")
    if group == "share":
        return option in options_of(config.sharing_kind)
    if group == "learn" or name in ("weights", "reward_of"):
        return config.entry.has(option)
    if name in ("sharing", "exploration"):
        return config.entry.is_value_based
    if name in ("batch_episodes", "replay_episodes", "warmup_steps"):
        return not config.entry.learner.is_on_policy
    return True
