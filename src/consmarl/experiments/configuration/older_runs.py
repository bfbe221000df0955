"""Keep the meaning of configurations that older versions wrote, whatever later versions add."""

from collections.abc import Mapping
from typing import Any

from consmarl.experiments.configuration.as_json import BY_DEFAULT, changed, every_setting
from consmarl.experiments.configuration.defaults import SettingsT, learners_own, with_options
from consmarl.experiments.configuration.sharings import ShareOptions
from consmarl.sharing.counting import EXACT
from consmarl.sharing.options import AskGate, Preset, TeacherMemory

# Options that the first runs with sharing did not have.
ADDED_TO_SHARING = ("eligibility", "hope_margin", "counting", "ask_share")
# The preset `recommended` before runs recorded every option of sharing.
ONCE_RECOMMENDED: Mapping[str, Mapping[str, Any]] = {
    "cons": {"ask_gate": AskGate.EXPLORING, "temperature": 0.3, "teacher_memory": TeacherMemory.STUDENT},
    "adhoc-td": {"ask_gate": AskGate.ALWAYS, "teacher_memory": TeacherMemory.STUDENT},
}


def from_settings(usual: SettingsT, settings: Mapping[str, Any], *, is_run: bool) -> SettingsT:
    """Return a configuration with these settings.

    Runs record every setting that they have; `by_default` identifies such a file, wherever it is. Settings missing from
    it did not exist yet, so the preset does not set them.
    """
    if not is_run and BY_DEFAULT not in settings:
        return with_options(usual, settings)
    return _as_begun(with_options(usual, {"preset": Preset.PAPER} | dict(settings)))  # the only preset at first


def _as_begun(config: SettingsT) -> SettingsT:
    """Return a run's configuration with the values it had when it started.

    If it does not record how it learns, the learner's own defaults apply. If it does not record when sharing starts,
    that is after 5,000 episodes, however short the run. Options of sharing that did not exist yet have the mechanism's
    defaults.
    """
    there = every_setting(config)
    learned = learners_own(config) | {"epsilon_final": config.epsilon_end}  # ε used to stay constant afterwards
    found = {name: value for name, value in learned.items() if there[name] is None and value is not None}
    if config.sharing_kind in ONCE_RECOMMENDED:
        mechanism: Any = ShareOptions().mechanism(config.sharing_kind, config.preset)
        own = {name: getattr(type(mechanism), name) for name in ("start_episode", *ADDED_TO_SHARING)}
        own["counting"] = EXACT  # whatever the observations
        if config.preset is Preset.RECOMMENDED:
            own |= ONCE_RECOMMENDED[config.sharing_kind]
        begun = {f"share.{name}": value for name, value in own.items()}
        found |= {name: value for name, value in begun.items() if there[name] is None}
    return changed(config, found | {BY_DEFAULT: (*config.by_default, *found)}) if found else config
