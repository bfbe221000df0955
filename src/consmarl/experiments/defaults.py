"""What settings come to where nobody set them: by method, preset, world and length of the run.

A run writes down the values and not that they were left open, so that it stays the same run when a later version has
other defaults. Which settings were left open is kept beside them, in `by_default`.
"""

import dataclasses
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from consmarl.environments.foreign import is_foreign
from consmarl.environments.registry import make
from consmarl.errors import UsageError, nearest
from consmarl.experiments.learn_options import LearnOptions
from consmarl.experiments.methods import OF_LOOP
from consmarl.experiments.presets import WorldFamily, family_of
from consmarl.experiments.reading import BY_DEFAULT, changed, every_setting
from consmarl.experiments.settings import settings_from
from consmarl.experiments.sharing_options import ShareOptions, SharingKind, options_of
from consmarl.learners.networks import Weights
from consmarl.learners.optimiser import Optimiser, OptimiserKind
from consmarl.learners.rewards import RewardOf
from consmarl.records import defaults_of
from consmarl.training.parts import RunParts

if TYPE_CHECKING:
    from consmarl.experiments.config import TrainConfig

# Settings that others' defaults hang on.
DECIDING = frozenset(
    {"method", "env", "set", "preset", "episodes", "sharing", "num_envs", "report_every", "share.budget_requests"}
)

# Settings that a preset gives for long runs: `round_episodes` and `sharing_start` fit them to the run.
FITTED = frozenset({"num_envs", "share.start_episode"})


def resolved(config: "TrainConfig", world: Any = None) -> "TrainConfig":
    """Return the configuration with every setting that its method has, and the names of those that were open.

    Somebody else's world is not built for it. What depends on one (answers that agents may give, and how long ga-comm
    explores) stays open until the `world` is given.
    """
    if world is None and not is_foreign(config.env):
        world = make(config.env, **settings_from(config.set))
    filled = with_preset(config)
    known = _defaults(filled, world) | {name: each for name, each in every_setting(filled).items() if each is not None}
    left_open = [name for name, value in every_setting(config).items() if value is None]
    found = {name: known[name] for name in left_open if known.get(name) is not None}
    return changed(config, found | {BY_DEFAULT: (*config.by_default, *found)})


def with_preset(config: "TrainConfig") -> "TrainConfig":
    """Return the configuration with what its preset sets, where nobody set it, but for what has to fit the length."""
    there = every_setting(config)
    found = {name: value for name, value in config.by_preset.items() if there[name] is None and name not in FITTED}
    return changed(config, found) if found else config


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
    """Return settings that can be open: as they are, or their defaults; None where there is none (yet)."""
    return {
        "sharing": config.sharing_kind,
        "exploration": config.exploration_kind,
        "num_envs": config.round_episodes,
        "report_every": config.chunk_episodes,
        "evaluate_every": config.evaluation_period,
        "checkpoint_every": config.checkpoint_period,
        **_epsilon(config, world),
        **learners_own(config),
        **{f"share.{name}": value for name, value in _of_sharing(config, world).items()},
    }


def _epsilon(config: "TrainConfig", world: Any) -> dict[str, Any]:
    schedule = config.epsilon(1 if world is None else world.episode_limit)
    # however long episodes are
    is_known = world is not None or schedule.anneal_steps == config.epsilon(2).anneal_steps
    return {
        "epsilon_start": schedule.start,
        "epsilon_end": schedule.end,
        "epsilon_anneal_steps": schedule.anneal_steps if is_known else None,
        "epsilon_final": schedule.end if schedule.final is None else schedule.final,
    }


def learners_own(config: "TrainConfig") -> dict[str, Any]:
    """Return how the method learns unless preset or user say otherwise.

    A team that acts as one shares weights and reward.
    """
    entry, acts_as_one = config.entry, family_of(config.env) is WorldFamily.TREASURE
    own, of_loop = defaults_of(entry.learner), defaults_of(RunParts)
    optimiser: Optimiser = own["optimiser"]
    found: dict[str, Any] = {
        "optimiser": OptimiserKind.of(optimiser),
        "learning_rate": optimiser.learning_rate,
        "learning_rate_end": optimiser.final_share,
        **{name: own[name] for name in ("hidden_size", "discount", "target_every_updates", "bootstrap_time_limit")},
        **{name: of_loop[name] for name in OF_LOOP},
        "coverage_after": 0.0,
        **{f"learn.{each.name}": own[each.name] for each in dataclasses.fields(LearnOptions) if each.name in own},
    }
    if entry.has("weights"):
        by_world = Weights.SHARED if acts_as_one else Weights.SEPARATE
        found["weights"] = by_world if entry.weights_by_world else own["weights"]
    if entry.has("reward_of"):
        found["reward_of"] = RewardOf.TEAM if acts_as_one else RewardOf.INDIVIDUAL
    return found


def _of_sharing(config: "TrainConfig", world: Any) -> dict[str, Any]:
    """Return every option of the mechanism, as it is built for this run."""
    kind = config.sharing_kind
    if kind is SharingKind.NONE:
        return {}
    mechanism: Any = config.mechanism
    names = [each.name for each in dataclasses.fields(ShareOptions) if each.name in options_of(kind)]
    options = {name: getattr(mechanism, name) for name in names}
    if world is not None:
        options["budget_answers"] = mechanism.purse(world.num_agents, world.num_actions).answers
    return options
