"""What settings come to where nobody set them: by method, preset, world and length of the run.

A run writes down the values and not that they were left open, so that it stays the same run when a later version has
other defaults. Which settings were left open is kept beside them, in `by_default`.
"""

import dataclasses
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from consmarl.environments.foreign import is_foreign
from consmarl.environments.registry import make
from consmarl.environments.treasure import FindTreasure
from consmarl.errors import UsageError, nearest
from consmarl.experiments.learn_options import LearnOptions
from consmarl.experiments.methods import MethodEntry
from consmarl.experiments.reading import BY_DEFAULT, changed, every_setting
from consmarl.experiments.settings import settings_from
from consmarl.experiments.sharing_options import ShareOptions, SharingKind, options_of
from consmarl.learners.networks import Weights
from consmarl.learners.rewards import RewardOf
from consmarl.records import default_of

if TYPE_CHECKING:
    from consmarl.experiments.config import TrainConfig

# Settings that others' defaults hang on.
DECIDING = frozenset(
    {"method", "env", "set", "preset", "episodes", "sharing", "num_envs", "report_every", "share.budget_requests"}
)


def resolved(config: "TrainConfig", world: Any = None) -> "TrainConfig":
    """Return the configuration with every setting that its method has, and the names of those that were open.

    Somebody else's world is not built for it. What depends on one (answers that agents may give, and how long ga-comm
    explores) stays open until the `world` is given.
    """
    if world is None and not is_foreign(config.env):
        world = make(config.env, **settings_from(config.set))
    there = every_setting(config)
    found = {name: value for name, value in _defaults(config, world).items() if there[name] is None}
    found = {name: value for name, value in found.items() if value is not None}
    return changed(config, found | {BY_DEFAULT: (*config.by_default, *found)})


def departing(config: "TrainConfig", names: Iterable[str]) -> "TrainConfig":
    """Return a configuration that is about to be changed in these settings.

    They are by default no longer. If defaults of others hang on one of them, these are open again.
    """
    if not config.by_default:
        return config
    named = set(names)
    left = [name for name in config.by_default if name not in named]
    if not named & DECIDING:
        return dataclasses.replace(config, by_default=tuple(left))
    return changed(config, dict.fromkeys(left) | {BY_DEFAULT: ()})


def check_names(config: "TrainConfig") -> None:
    """Refuse names in `by_default` of settings that cannot be left open."""
    if not config.by_default:
        return
    can_be_open = [name for name, value in every_setting(type(config)()).items() if value is None]
    for name in config.by_default:
        if name not in can_be_open:
            raise UsageError(f"{BY_DEFAULT} names no setting that can be left open: {nearest(name, can_be_open)}")


def _defaults(config: "TrainConfig", world: Any) -> dict[str, Any]:
    """Return all settings that can be open: as they are, or their defaults; None where there is none (yet)."""
    return {
        "sharing": config.sharing_kind,
        "exploration": config.exploration_kind,
        "num_envs": config.round_episodes,
        "report_every": config.chunk_episodes,
        "evaluate_every": config.evaluation_period,
        "checkpoint_every": config.checkpoint_period,
        **_epsilon(config, world),
        **_of_learner(config.entry, acts_as_one=isinstance(world, FindTreasure)),
        **{f"share.{name}": value for name, value in _of_sharing(config, world).items()},
    }


def _epsilon(config: "TrainConfig", world: Any) -> dict[str, Any]:
    schedule = config.epsilon(1 if world is None else world.episode_limit)
    is_known = world is not None or schedule == config.epsilon(2)  # however long episodes are
    return {
        "epsilon_start": schedule.start,
        "epsilon_end": schedule.end,
        "epsilon_anneal_steps": schedule.anneal_steps if is_known else None,
    }


def _of_learner(entry: MethodEntry, *, acts_as_one: bool) -> dict[str, Any]:
    """Return the learner's own defaults; a team that acts as one shares weights and reward."""
    own = {each.name: default_of(each) for each in dataclasses.fields(entry.learner)}  # type: ignore[arg-type]
    common: dict[str, Any] = {"learning_rate": own["optimiser"].learning_rate}
    if entry.has("weights"):
        by_world = Weights.SHARED if acts_as_one else Weights.SEPARATE
        common["weights"] = by_world if entry.weights_by_world else own["weights"]
    if entry.has("reward_of"):
        common["reward_of"] = RewardOf.TEAM if acts_as_one else RewardOf.INDIVIDUAL
    single = [each.name for each in dataclasses.fields(LearnOptions) if each.name in own]
    return common | {f"learn.{name}": own[name] for name in single}


def _of_sharing(config: "TrainConfig", world: Any) -> dict[str, Any]:
    """Return every option of the mechanism, as it is built for this run."""
    kind = config.sharing_kind
    if kind is SharingKind.NONE:
        return {}
    begun = dataclasses.replace(config.share, start_episode=config.sharing_start)
    mechanism: Any = begun.mechanism(kind, config.preset, world)
    names = [each.name for each in dataclasses.fields(ShareOptions) if each.name in options_of(kind)]
    options = {name: getattr(mechanism, name) for name in names}
    if world is not None:
        options["budget_answers"] = mechanism.purse(world.num_agents, world.num_actions).answers
    return options
