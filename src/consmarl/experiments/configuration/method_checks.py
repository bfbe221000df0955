"""Check that a run's settings apply to its method, and that it is long enough to learn and share."""

from consmarl.errors import UsageError
from consmarl.experiments.configuration.as_json import every_setting
from consmarl.experiments.configuration.defaults import resolved
from consmarl.experiments.configuration.explorations import EXPLORATIONS, ExploreOptions
from consmarl.experiments.configuration.methods import METHODS, owners_of
from consmarl.experiments.configuration.schema import Settings
from consmarl.learners.team_networks import Weights
from consmarl.sharing.asking import fitted_start, never_begins
from consmarl.sharing.mechanism import Mechanism
from consmarl.sharing.options import Preset, TeacherMemory

_NO_CHOICE = {
    "weights": "the method determines its networks",
    "reward_of": "it learns one value for the whole team, from the team's reward",
}


def check_method(config: Settings) -> None:
    """Raise an error for settings that the method does not have, or that are incompatible with it."""
    entry, name = config.entry, config.method
    with_values = ", ".join(method for method, each in METHODS.items() if each.is_value_based)
    if not entry.is_value_based and config.shares_knowledge:
        raise UsageError(
            f"{name} learns a policy, but agents advise each other on values: use sharing with {with_values}."
        )
    exploration = EXPLORATIONS[config.exploration_kind]
    if exploration.kind.scores is not entry.learner.scores:
        draws = "samples from the policy it learns" if not entry.is_value_based else "has values and no policy"
        raise UsageError(f"{name} {draws}: exploration cannot be {config.exploration_kind}.")
    for option in config.explore.given():
        if option not in exploration.options:
            having = ", ".join(ExploreOptions.known()[option].owners)
            raise UsageError(f"explore.{option} is an option of {having}, not of {config.exploration_kind}.")
    for setting in ("weights", "reward_of"):
        if getattr(config, setting) is not None and not entry.has(setting):
            raise UsageError(f"{name} has no choice of {setting}: {_NO_CHOICE[setting]}.")
    for setting in ("mirror_episodes", "coverage_bonus"):
        if getattr(config, setting) and entry.learner.is_on_policy:
            raise UsageError(f"{name} learns from the episode just played, not from replay: leave out {setting}.")
    for option in config.learn.given():
        if not entry.has(option):
            raise UsageError(f"learn.{option} is an option of {', '.join(owners_of(option))}, not of {name}.")


def why_nobody_shares(config: Settings) -> str | None:
    """Return a warning if a run ends before sharing starts; None if it does not, or if nobody is to share."""
    start, episodes = config.sharing_start, config.episodes
    if start is None or not never_begins(start, episodes):
        return None
    when = f"sharing starts after episode {start:,}, and the run has only {episodes:,} episodes"
    if episodes < 2:
        return f"{when}: nobody will share, which needs at least 2 episodes."
    is_given = config.share.start_episode is not None and "share.start_episode" not in config.by_default
    is_papers = config.preset is Preset.PAPER and not is_given
    other = ", or choose a preset whose start fits the run, such as --preset recommended" if is_papers else ""
    return f"{when}: nobody will share; set --share.start-episode {fitted_start(start, episodes)}, for example{other}."


def why_nobody_knows_more(config: Settings) -> str | None:
    """Return a warning if teachers can tell students nothing new; None otherwise.

    That is so if agents share one network and a teacher judges with the student's past: only its id differs then.
    """
    mechanism = config.mechanism
    if not isinstance(mechanism, Mechanism) or config.teachers or mechanism.teacher_memory is TeacherMemory.OWN:
        return None
    if every_setting(resolved(config))["weights"] is not Weights.SHARED:
        return None
    return (
        "agents share one network, and a teacher that judges with the student's memory knows only what the student "
        "knows: set --weights separate, or --share.teacher-memory own, so that teachers use what they have seen "
        "themselves."
    )


def why_nobody_learns(config: Settings, episode_limit: int) -> str | None:
    """Return a warning if replay never holds enough episodes for learning to start; None otherwise."""
    if config.entry.learner.is_on_policy:
        return None
    there = every_setting(resolved(config))
    warmup_steps = there["warmup_steps"]
    needed = warmup_steps // episode_limit + 1  # more than `warmup_steps`, in whole episodes
    for number, holder in ((there["replay_episodes"], "replay holds"), (config.episodes, "the run has")):
        if number < needed:
            return (
                f"learning waits for more than {warmup_steps:,} steps, {needed:,} episodes, and {holder} "
                f"{number:,}: nobody will learn; set --warmup-steps 0, for example."
            )
    return None
