"""What goes together with a method, and what does not."""

from consmarl.errors import UsageError
from consmarl.experiments.configuration.as_json import every_setting
from consmarl.experiments.configuration.defaults import resolved
from consmarl.experiments.configuration.explorations import EXPLORATIONS, ExploreOptions
from consmarl.experiments.configuration.methods import METHODS, owners_of
from consmarl.experiments.configuration.schema import Settings
from consmarl.sharing.mechanism import fitted_start, never_begins
from consmarl.sharing.options import Preset

_NO_CHOICE = {
    "weights": "its networks are what the method says",
    "reward_of": "it learns one value of the whole team, from the team's reward",
}


def check_method(config: Settings) -> None:
    """Refuse settings that the method has not, or that do not go together with it."""
    entry, name = config.entry, config.method
    with_values = ", ".join(method for method, each in METHODS.items() if each.is_value_based)
    if not entry.is_value_based and config.shares_knowledge:
        raise UsageError(
            f"{name} learns a policy, and agents advise each other on values: sharing goes with {with_values}."
        )
    exploration = EXPLORATIONS[config.exploration_kind]
    if exploration.kind.scores is not entry.learner.scores:
        draws = "draws from the policy that it learns" if not entry.is_value_based else "has values and no policy"
        raise UsageError(f"{name} {draws}: exploration cannot be {config.exploration_kind}.")
    for option in config.explore.given():
        if option not in exploration.options:
            having = ", ".join(ExploreOptions.known()[option].owners)
            raise UsageError(f"explore.{option} is an option of {having}: {config.exploration_kind} has no such thing.")
    for setting in ("weights", "reward_of"):
        if getattr(config, setting) is not None and not entry.has(setting):
            raise UsageError(f"{name} has no choice of {setting}: {_NO_CHOICE[setting]}.")
    for setting in ("mirror_episodes", "coverage_bonus"):
        if getattr(config, setting) and entry.learner.is_on_policy:
            raise UsageError(f"{name} learns from the episode just played, not from replay: leave out {setting}.")
    for option in config.learn.given():
        if not entry.has(option):
            raise UsageError(
                f"learn.{option} is an option of {', '.join(owners_of(option))}: {name} has no such thing."
            )


def why_nobody_shares(config: Settings) -> str | None:
    """Say in a sentence that a run is over before sharing begins; None where it is not, or nobody wants to share."""
    start, episodes = config.sharing_start, config.episodes
    if start is None or not never_begins(start, episodes):
        return None
    when = f"sharing begins after episode {start:,}, and the run has {episodes:,} in all"
    if episodes < 2:
        return f"{when}: nobody will share, which takes at least 2 episodes."
    is_given = config.share.start_episode is not None and "share.start_episode" not in config.by_default
    is_papers = config.preset is Preset.PAPER and not is_given
    other = ", or choose a preset whose start fits the run, such as --preset recommended" if is_papers else ""
    return f"{when}: nobody will share; set --share.start-episode {fitted_start(start, episodes)}, for example{other}."


def why_nobody_learns(config: Settings, episode_limit: int) -> str | None:
    """Say in a sentence that a run never has enough in replay to learn from; None where it has."""
    if config.entry.learner.is_on_policy:
        return None
    there = every_setting(resolved(config))
    warmup_steps = there["warmup_steps"]
    needed = warmup_steps // episode_limit + 1  # more steps than `warmup_steps`, in whole episodes
    for number, holder in ((there["replay_episodes"], "replay holds"), (config.episodes, "the run has")):
        if number < needed:
            return (
                f"learning waits for more than {warmup_steps:,} steps, {needed:,} episodes, and {holder} "
                f"{number:,}: nobody will learn; set --warmup-steps 0, for example."
            )
    return None
