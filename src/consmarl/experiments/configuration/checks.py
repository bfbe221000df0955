"""Checks of a configuration. Most of them do not need the environment to be built."""

from typing import Any

from consmarl.environments import validation
from consmarl.environments.foreign import is_foreign
from consmarl.errors import UsageError
from consmarl.experiments.configuration.explorations import EXPLORATIONS
from consmarl.experiments.configuration.limits import num_evaluated
from consmarl.experiments.configuration.methods import METHODS
from consmarl.experiments.configuration.schema import Settings
from consmarl.experiments.configuration.sharings import SHARINGS
from consmarl.sharing.mechanism import Mechanism
from consmarl.sharing.options import Eligibility, TeacherMemory

_LEAST = {
    "episodes": 1, "seed": 0, "hidden_size": 1, "target_every_updates": 1, "batch_episodes": 1,
    "updates_per_episode": 1, "replay_episodes": 1, "warmup_steps": 0, "keep_checkpoints": 1, "devices": 1,
    "num_envs": 1, "report_every": 1, "evaluate_every": 1, "checkpoint_every": 1, "epsilon_anneal_steps": 1, "join": 0,
}  # fmt: skip


def check_numbers(config: Settings) -> None:
    """Raise an error for numbers out of range; None stands for a default."""
    for name, least in _LEAST.items():
        if getattr(config, name) is not None:
            validation.whole_number(name, getattr(config, name), least=least)
    for name in ("evaluation_episodes", "final_episodes"):
        num_evaluated(name, getattr(config, name))
    for name in ("epsilon_start", "epsilon_end", "epsilon_final"):
        if getattr(config, name) is not None:
            validation.probability(name, getattr(config, name))
    for name in ("discount", "coverage_after"):
        if getattr(config, name) is not None:
            validation.fraction(name, getattr(config, name))
    rate, end = config.learning_rate, config.learning_rate_end
    if rate is not None and validation.finite_number("learning_rate", rate) <= 0:
        raise UsageError(f"learning_rate must be above 0, not {rate}.")
    if end is not None and not 0 < validation.finite_number("learning_rate_end", end) <= 1:
        raise UsageError(
            f"learning_rate_end must be above 0 and at most 1, not {end}: it is the part of the learning rate that is "
            "left at the end of the run, and the rate cannot increase."
        )
    bonus = config.coverage_bonus
    if bonus is not None and validation.finite_number("coverage_bonus", bonus) < 0:
        raise UsageError(f"coverage_bonus must be at least 0, not {bonus}.")
    for number in config.record:
        if validation.whole_number("each episode to record", number, least=0) >= config.episodes:
            raise UsageError(f"episode {number} cannot be recorded: the run has only {config.episodes} episodes.")


def check_company(config: Settings) -> None:
    """Raise an error for experienced agents and newcomers that cannot come together."""
    for agent in config.newcomers:
        validation.whole_number("each newcomer", agent, least=0)
    if config.beside:
        _check_beside(config)
    if config.teachers and config.join:
        raise UsageError("newcomers join the team of another run (--teachers) or of this one (--join), not both.")
    if config.newcomers and not config.those_new:
        raise UsageError(
            "newcomers join experienced agents: name those with --teachers RUN, or set --join EPISODES in this run."
        )


def _check_beside(config: Settings) -> None:
    """Raise an error if nobody can stand beside the team, or would ever answer there."""
    if not config.teachers:
        raise UsageError("experts beside the team come from another run: name it with --teachers RUN.")
    for name, option in (("newcomers", "--newcomers"), ("join", "--join")):
        if getattr(config, name):
            raise UsageError(f"with --beside no agent is replaced and all of them learn: leave out {option}.")
    able = ", ".join(each for each, entry in SHARINGS.items() if entry.mechanism.takes_experts)
    if not config.shares_knowledge:
        raise UsageError(
            "experts beside the team only answer, and nobody asks in a run without sharing: set --sharing to one of "
            f"{able}."
        )
    mechanism = config.mechanism
    if not mechanism.takes_experts:
        raise UsageError(
            f"sharing {config.sharing_kind} asks only agents of the team, not experts beside it: set --sharing to one "
            f"of {able}."
        )
    if mechanism.teacher_memory is TeacherMemory.OWN:
        raise UsageError(
            "experts beside the team do not act, so they have no memory of their own: share.teacher_memory must be "
            "history, student or student-after-step."
        )
    if isinstance(mechanism, Mechanism) and mechanism.eligibility is Eligibility.MORE_FAMILIAR:
        raise UsageError(
            "experts beside the team count as having met an observation as often as the student, so they would never "
            "answer: share.eligibility must not be more-familiar."
        )


def check_world(config: Settings) -> None:
    """Raise an error for settings that third-party environments do not support."""
    if is_foreign(config.env) and config.devices != 1:
        raise UsageError(f"{config.env} steps in Python, on one device: devices must be 1, not {config.devices}.")


def check_fits_world(config: Settings, world: Any) -> None:
    """Raise an error for settings that this environment, once it is built, does not support."""
    _check_newcomers(config, world.num_agents)
    _check_masks(config, world)
    _check_branches(config, world)
    if config.mirror_episodes and not getattr(world, "symmetries", ()):
        raise UsageError(f"{config.env} is not symmetric: mirror_episodes must be off.")
    if config.learn.footprints and getattr(world, "ground", None) is None:
        raise UsageError(
            f"observations in {config.env} do not start with an agent's row and column: learn.footprints must be off."
        )
    if config.coverage_bonus and not getattr(world, "num_places", 0):
        raise UsageError(f"observations in {config.env} do not say which cells are in view: coverage_bonus must be 0.")


def _check_branches(config: Settings, world: Any) -> None:
    if world.num_branches == 1:
        return
    for name, part in _parts_of(config).items():
        if not part.handles_branches:
            raise UsageError(
                f"actions in {config.env} have {world.num_branches} dimensions, which {name} cannot choose in: choose "
                f"one of {', '.join(_able(config, name))}."
            )


def _able(config: Settings, name: str) -> list[str]:
    """Return alternatives to a part, such as "method NAME", that can choose actions of several dimensions."""
    kind = name.partition(" ")[0]
    if kind == "method":
        return [each for each, entry in METHODS.items() if entry.learner.handles_branches]
    if kind == "exploration":
        scores = config.entry.learner.scores
        return [each for each, entry in EXPLORATIONS.items()
                if entry.kind.handles_branches and entry.kind.scores is scores]  # fmt: skip
    return [each for each, entry in SHARINGS.items() if entry.mechanism.handles_branches]


def _parts_of(config: Settings) -> dict[str, Any]:
    """Return the parts that choose actions, by kind and name."""
    return {
        f"method {config.method}": config.entry.learner,
        f"exploration {config.exploration_kind}": EXPLORATIONS[config.exploration_kind].kind,
        f"sharing {config.sharing_kind}": config.mechanism,
    }


def _check_masks(config: Settings, world: Any) -> None:
    if not world.masks_actions:
        return
    for name, part in _parts_of(config).items():
        if not part.handles_masks:
            raise UsageError(
                f"{config.env} may forbid actions, which {name} does not heed: choose another one, or say in its class "
                "that it does, by handles_masks."
            )


def _check_newcomers(config: Settings, num_agents: int) -> None:
    for agent in config.newcomers:
        if agent >= num_agents:
            raise UsageError(f"newcomers must be agents from 0 to {num_agents - 1}, not {agent}.")
    if config.those_new and len(set(config.those_new)) == num_agents:
        raise UsageError(f"all {num_agents} agents are newcomers: at least one has to be experienced.")


def check_periods(config: Settings) -> None:
    """Check that all periods are multiples of a chunk: if all chunks have the same length, they are compiled once."""
    if config.episodes % config.round_episodes:
        raise UsageError(
            f"episodes must be a multiple of num_envs ({config.round_episodes}), not {config.episodes}: "
            f"{_next_multiple(config.episodes, config.round_episodes)} is the next."
        )
    if config.chunk_episodes % config.round_episodes:
        raise UsageError(
            f"report_every must be a multiple of num_envs ({config.round_episodes}), not {config.report_every}."
        )
    if config.join % config.round_episodes or config.join >= config.episodes:
        raise UsageError(
            f"join must be a multiple of num_envs ({config.round_episodes}) below the run's {config.episodes:,} "
            f"episodes, not {config.join:,}."
        )
    for name in ("episodes", "evaluate_every", "checkpoint_every"):
        period = getattr(config, name)
        if period is not None and period % config.chunk_episodes:
            raise UsageError(
                f"{name} must be a multiple of report_every ({config.chunk_episodes}), not {period}: "
                f"{_next_multiple(period, config.chunk_episodes)} is the next."
            )


def _next_multiple(number: int, of: int) -> int:
    return -(-number // of) * of
