"""Read configurations written by older versions such that they keep their meaning."""

from collections.abc import Mapping
from typing import Any

from consmarl.experiments.configuration.as_json import BY_DEFAULT, changed, every_setting
from consmarl.experiments.configuration.defaults import SettingsT, learners_own, with_options
from consmarl.experiments.configuration.sharings import ShareOptions
from consmarl.sharing.counting import EXACT
from consmarl.sharing.options import AskGate, Preset, TeacherMemory

# Options of sharing that did not exist at first.
ADDED_TO_SHARING = ("eligibility", "hope_margin", "counting", "ask_share")
# Options of the preset `recommended` at the time when runs did not yet record every option of sharing.
ONCE_RECOMMENDED: Mapping[str, Mapping[str, Any]] = {
    "cons": {"ask_gate": AskGate.EXPLORING, "temperature": 0.3, "teacher_memory": TeacherMemory.STUDENT},
    "adhoc-td": {"ask_gate": AskGate.ALWAYS, "teacher_memory": TeacherMemory.STUDENT},
}


def from_settings(usual: SettingsT, settings: Mapping[str, Any], *, is_run: bool) -> SettingsT:
    """Return a configuration with these settings on top of `usual`.

    Runs record all their settings, and `by_default` identifies a run's configuration even outside its directory.
    Settings missing from it did not exist yet, so the preset does not set them.
    """
    if not is_run and BY_DEFAULT not in settings:
        return with_options(usual, settings)
    return _as_begun(with_options(usual, {"preset": Preset.PAPER} | dict(settings)))  # once the only preset


def _as_begun(config: SettingsT) -> SettingsT:
    """Return a run's configuration with the values that it had when the run started.

    Learning settings that it does not record have the learner's own defaults. If it does not record when sharing
    starts, that is after 5,000 episodes, even in a shorter run. Options of sharing that did not exist yet have the
    mechanism's defaults.
    """
    there = every_setting(config)
    learned = learners_own(config) | {"epsilon_final": config.epsilon_end}  # after annealing, ε used to be constant
    found = {name: value for name, value in learned.items() if there[name] is None and value is not None}
    if config.sharing_kind in ONCE_RECOMMENDED:
        mechanism: Any = ShareOptions().mechanism(config.sharing_kind, config.preset)
        own = {name: getattr(type(mechanism), name) for name in ("start_episode", *ADDED_TO_SHARING)}
        own["counting"] = EXACT  # for all kinds of observations
        if config.preset is Preset.RECOMMENDED:
            own |= ONCE_RECOMMENDED[config.sharing_kind]
        begun = {f"share.{name}": value for name, value in own.items()}
        found |= {name: value for name, value in begun.items() if there[name] is None}
    return changed(config, found | {BY_DEFAULT: (*config.by_default, *found)}) if found else config
