"""Build a run's parts from its configuration."""

import dataclasses
from typing import Any, cast

from consmarl.environments.foreign import foreign_world, is_foreign
from consmarl.environments.registry import make
from consmarl.experiments.configuration.checks import check_fits_world
from consmarl.experiments.configuration.defaults import resolved
from consmarl.experiments.configuration.explorations import EXPLORATIONS
from consmarl.experiments.configuration.limits import check_steps
from consmarl.experiments.configuration.methods import COMMON, OF_LOOP
from consmarl.experiments.configuration.pairs import settings_from
from consmarl.experiments.configuration.schema import Settings
from consmarl.learners.interface import AnyLearner, TeamSpec
from consmarl.sharing.interface import Sharing
from consmarl.sharing.mechanism import Mechanism
from consmarl.training.loop import Trainer
from consmarl.training.python_loop import PythonTrainer

AnyTrainer = Trainer | PythonTrainer


def build_trainer(config: Settings) -> AnyTrainer:
    """Build the run's environment and learning team from the values that `resolved` returns."""
    settings = settings_from(config.set)
    if is_foreign(config.env):
        foreign = foreign_world(config.env, **settings)
        check_steps(config.episodes, config.round_episodes, foreign)
        parts = _parts(resolved(config, foreign), foreign)
        return PythonTrainer(world=foreign, num_envs=config.round_episodes, **parts)
    world = make(config.env, **settings)
    check_steps(config.episodes, config.round_episodes, world)
    parts = _parts(resolved(config, world), world)
    return Trainer(world=world, num_envs=config.round_episodes, num_devices=config.devices, **parts)


def _parts(config: Settings, world: Any) -> dict[str, Any]:
    """Return the arguments of a trainer other than the environment, from a fully resolved configuration."""
    check_fits_world(config, world)
    experts = config.experts(world.num_agents)
    return dict(
        learner=_learner(config, TeamSpec.of(world)),
        exploration=EXPLORATIONS[config.exploration_kind].kind(**config.explore.given()),
        epsilon=config.epsilon(world.episode_limit),
        sharing=_sharing(config, experts, world.num_agents),
        experts=experts,
        newcomers=config.those_new,
        join_episode=config.join or None,
        **{name: getattr(config, name) for name in OF_LOOP if getattr(config, name) is not None},
        coverage_start=_coverage_start(config),
    )


def _sharing(config: Settings, experts: tuple[int, ...], num_agents: int) -> Sharing:
    mechanism: Any = config.mechanism
    if not isinstance(mechanism, Mechanism):
        return mechanism
    return dataclasses.replace(
        mechanism,
        experts=experts,
        num_beside=num_agents if config.beside else 0,  # they were a team of this size
        newcomers=config.those_new,
        join_episode=config.join or None,
    )


def _coverage_start(config: Settings) -> int:
    """Return the episode after which the bonus applies; 0 without a bonus, so that such runs share a program."""
    return int((config.coverage_after or 0) * config.episodes) if config.coverage_bonus else 0


def _learner(config: Settings, spec: TeamSpec) -> AnyLearner:
    settings = {name: getattr(config, name) for name in COMMON if config.entry.has(name)}
    build: Any = config.entry.learner
    learner = build(spec, **settings, **config.learn.given())
    kind: Any = config.optimiser
    num_updates = config.episodes * (config.updates_per_episode or 1)  # None for methods without replay
    end: Any = config.learning_rate_end
    optimiser = kind.like(
        learner.optimiser,
        learning_rate=config.learning_rate,
        final_share=end,
        # a constant rate needs no number of updates, so runs of any length share a program
        anneal_updates=num_updates if end < 1 else 1,
    )
    changes: dict[str, Any] = {"optimiser": optimiser}
    if getattr(learner, "settle_after", 1) < 1:
        changes["run_updates"] = num_updates
    return cast("AnyLearner", dataclasses.replace(learner, **changes))
