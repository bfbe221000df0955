"""Defaults of settings, which depend on the method, preset, environment and length of the run.

A run records the resolved values, so that later versions with other defaults do not change it. The names of settings
that the user left at None are recorded next to them, in `by_default`.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from consmarl.environments.foreign import is_foreign
from consmarl.environments.registry import WORLDS, make
from consmarl.errors import UsageError, nearest
from consmarl.experiments.configuration.as_json import BY_DEFAULT, changed, every_setting
from consmarl.experiments.configuration.explorations import EXPLORATIONS
from consmarl.experiments.configuration.methods import COMMON, OF_LOOP, LearnOptions
from consmarl.experiments.configuration.pairs import settings_from
from consmarl.experiments.configuration.schema import Settings
from consmarl.experiments.configuration.sharings import SHARINGS
from consmarl.learners.optimiser import Optimiser, OptimiserKind
from consmarl.learners.rewards import RewardOf
from consmarl.learners.team_networks import Weights
from consmarl.options import option_names
from consmarl.records import defaults_of
from consmarl.sharing.mechanism import Mechanism
from consmarl.training.parts import RunParts

SettingsT = TypeVar("SettingsT", bound=Settings)

# Settings that the defaults of other settings depend on.
DECIDING = frozenset(
    {
        "method", "env", "set", "preset", "episodes", "sharing", "num_envs", "report_every", "share.budget_requests",
        "share.counting", "teachers",
    }
)  # fmt: skip


def resolved(config: SettingsT, world: Any = None) -> SettingsT:
    """Return a copy with a value for every setting of its method; those that were None are named in `by_default`.

    A third-party environment is not built for this. Settings that depend on one (answers that agents may give, and how
    long ga-comm explores) stay None until `world` is given.
    """
    if world is None and not is_foreign(config.env):
        world = make(config.env, **settings_from(config.set))
    filled = config.with_preset()
    known = _defaults(filled, world) | {name: each for name, each in every_setting(filled).items() if each is not None}
    left_open = [name for name, value in every_setting(config).items() if value is None]
    found = {name: known[name] for name in left_open if known.get(name) is not None}
    return changed(config, found | {BY_DEFAULT: (*config.by_default, *found)})


def with_options(config: SettingsT, options: Mapping[str, Any]) -> SettingsT:
    """Return a copy with other settings by name; filled-in defaults that depend on them are reset."""
    return changed(departing(config, options), options)


def departing(config: SettingsT, names: Iterable[str]) -> SettingsT:
    """Return a copy in which these settings can be changed.

    They no longer count as defaults. If defaults of other settings depend on one of them, all defaults are reset.
    """
    if not config.by_default:
        return config
    named = set(names)
    left = [name for name in config.by_default if name not in named]
    if not named & DECIDING:
        return dataclasses.replace(config, by_default=tuple(left))
    return changed(config, dict.fromkeys(left) | {BY_DEFAULT: ()})


def check_names(config: Settings) -> None:
    """Raise an error if `by_default` names a setting that cannot be None."""
    if not config.by_default:
        return
    can_be_open = [name for name, value in every_setting(type(config)()).items() if value is None]
    for name in config.by_default:
        if name not in can_be_open:
            raise UsageError(f"{BY_DEFAULT} names a setting without a default: {nearest(name, can_be_open)}")


def _defaults(config: Settings, world: Any) -> dict[str, Any]:
    """Return all settings that can be None, with their values or defaults; None if these are unknown so far."""
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
        **{f"explore.{name}": value for name, value in _of_exploration(config).items()},
    }


def _epsilon(config: Settings, world: Any) -> dict[str, Any]:
    schedule = config.epsilon(1 if world is None else world.episode_limit)
    # known without the environment if it does not depend on the length of episodes
    is_known = world is not None or schedule.anneal_steps == config.epsilon(2).anneal_steps
    return {
        "epsilon_start": schedule.start,
        "epsilon_end": schedule.end,
        "epsilon_anneal_steps": schedule.anneal_steps if is_known else None,
        "epsilon_final": schedule.end if schedule.final is None else schedule.final,
    }


def learners_own(config: Settings) -> dict[str, Any]:
    """Return the defaults of the method's learning settings, which preset and user can override.

    In environments with `acts_as_one`, agents share weights and learn from the team's reward.
    """
    entry, acts_as_one = config.entry, config.env in WORLDS and WORLDS[config.env].world.acts_as_one
    own, of_loop = defaults_of(entry.learner), defaults_of(RunParts)
    optimiser: Optimiser = own["optimiser"]
    found: dict[str, Any] = {
        "optimiser": OptimiserKind.of(optimiser),
        "learning_rate": optimiser.learning_rate,
        "learning_rate_end": optimiser.final_share,
        **{name: own[name] for name in COMMON if entry.has(name)},
        **{name: of_loop[name] for name in OF_LOOP},
        "coverage_after": 0.0,
        **{f"learn.{name}": own[name] for name in LearnOptions.known() if entry.has(name)},
    }
    if entry.has("weights") and entry.weights_by_world:
        found["weights"] = Weights.SHARED if acts_as_one else Weights.SEPARATE
    if entry.has("reward_of"):
        found["reward_of"] = RewardOf.TEAM if acts_as_one else RewardOf.INDIVIDUAL
    return found


def _of_sharing(config: Settings, world: Any) -> dict[str, Any]:
    """Return every option of the mechanism and of its way to count, with their values in this run."""
    config = _with_counting(config, world)
    mechanism: Any = config.mechanism
    options = {name: getattr(mechanism, name) for name in SHARINGS[config.sharing_kind].options}
    if options.get("counting") is not None:
        options |= {name: getattr(mechanism.counter, name) for name in option_names(type(mechanism.counter))}
    if world is not None and "budget_answers" in options:
        options["budget_answers"] = mechanism.purse(world.num_agents, world.num_actions).answers
    return options


def _with_counting(config: Settings, world: Any) -> Settings:
    """Return the configuration with a way to count that fits the environment; unchanged without an environment."""
    mechanism = config.mechanism
    if world is None or not isinstance(mechanism, Mechanism):
        return config
    fitted = mechanism.for_observations(world.observation_size, world.observation_dtype)
    return changed(config, {"share.counting": fitted.counting_kind})


def _of_exploration(config: Settings) -> dict[str, Any]:
    """Return every option of the exploration with its default."""
    return defaults_of(EXPLORATIONS[config.exploration_kind].kind)
