"""What runs have written means what it did then, whatever later versions add to settings and presets."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from consmarl.experiments.defaults import learners_own
from consmarl.experiments.reading import BY_DEFAULT, changed, every_setting
from consmarl.experiments.sharing_options import ShareOptions, SharingKind
from consmarl.sharing.options import AskGate, Preset, TeacherMemory

if TYPE_CHECKING:
    from consmarl.experiments.config import TrainConfig

ADDED_TO_SHARING = ("eligibility", "hope_margin")  # options that the first runs with sharing did not have
# What `recommended` was while runs did not yet write down every option of sharing.
ONCE_RECOMMENDED: Mapping[SharingKind, Mapping[str, Any]] = {
    SharingKind.CONS: {"ask_gate": AskGate.EXPLORING, "temperature": 0.3, "teacher_memory": TeacherMemory.STUDENT},
    SharingKind.ADHOC_TD: {"ask_gate": AskGate.ALWAYS, "teacher_memory": TeacherMemory.STUDENT},
}


def from_settings(usual: "TrainConfig", settings: Mapping[str, Any], *, is_run: bool) -> "TrainConfig":
    """Return a configuration with these settings.

    Runs write down every setting that they have; `by_default` gives such a file away, wherever it lies. What is missing
    there did not exist yet, so the preset does not set it.
    """
    if not is_run and BY_DEFAULT not in settings:
        return usual.with_options(settings)
    return _as_begun(usual.with_options({"preset": Preset.PAPER} | dict(settings)))  # at first there was no other


def _as_begun(config: "TrainConfig") -> "TrainConfig":
    """Return a run's configuration with what it had when it was begun.

    Where it does not say how it learns, as the learner itself does. Where it does not say when sharing begins, after
    5,000 episodes, however short it is. Options of sharing that there were not yet are as sharing itself has them.
    """
    there = every_setting(config)
    learned = learners_own(config) | {"epsilon_final": config.epsilon_end}  # ε used to stay where it was
    found = {name: value for name, value in learned.items() if there[name] is None and value is not None}
    if config.sharing_kind is not SharingKind.NONE:
        mechanism: Any = ShareOptions().mechanism(config.sharing_kind, config.preset)
        own = {name: getattr(type(mechanism), name) for name in ("start_episode", *ADDED_TO_SHARING)}
        if config.preset is Preset.RECOMMENDED:
            own |= ONCE_RECOMMENDED[config.sharing_kind]
        begun = {f"share.{name}": value for name, value in own.items()}
        found |= {name: value for name, value in begun.items() if there[name] is None}
    return changed(config, found | {BY_DEFAULT: (*config.by_default, *found)}) if found else config
