"""The presets: settings that belong together.

The settings listed here apply to all methods that have action values and the setting in question. An environment may
define more for a preset (`Environment.presets`), which override these; user settings override both. All other settings
keep the defaults of the method's learner, which are the paper's. The sharing settings of a preset are defined in
`sharing/`, where they can be used without the other settings.

docs/guide/presets.md shows the resulting values; after a change, update its table with
`python docs/make_preset_table.py`.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from consmarl.environments.registry import WORLDS
from consmarl.experiments.configuration.methods import METHODS
from consmarl.experiments.configuration.sharings import NOBODY
from consmarl.learners.iql import TargetMemory
from consmarl.learners.optimiser import OptimiserKind
from consmarl.learners.td import Target
from consmarl.networks.drqn import Head
from consmarl.sharing.options import Preset


class PresetEntry(NamedTuple):
    """A preset's description and settings."""

    summary: str
    # Names are those of TrainConfig, including `learn.NAME`. A setting with the prefix `if_sharing.` applies only to
    # teams that share, and one with `if_taught.` only to newcomers among experienced teachers.
    settings: Mapping[str, Any]


# A preset may set all settings that can be None, except periods and settings that decide which others apply.
NOT_FOR_PRESETS = frozenset({"sharing", "report_every", "evaluate_every", "checkpoint_every"})

# Prefixes of settings that apply only if agents share ("if_sharing.epsilon_anneal_steps"), or only if newcomers share
# with experienced teachers.
IF_SHARING, IF_TAUGHT = "if_sharing.", "if_taught."

PRESETS: dict[Preset, PresetEntry] = {
    Preset.PAPER: PresetEntry("as in the paper; used for its figures", {}),
    Preset.RELEASE: PresetEntry("as in the authors' code", {}),
    Preset.RECOMMENDED: PresetEntry(
        "what learns best, in our experience; the default",
        {
            "learn.target": Target.OPTIMISTIC,
            "learn.trace_decay": 0.8,
            "learn.settle_after": 0.3,
            "learn.target_memory": TargetMemory.WHOLE_EPISODE,
            "learn.head": Head.DUELING,
            "learn.averages_weights": True,
            "optimiser": OptimiserKind.ADAM,
            "learning_rate": 1e-3,
            "learning_rate_end": 0.1,
            "exploration": "epsilon-greedy",
        },
    ),
}


def settings_of(preset: Preset, method: str, sharing: str, env: str, *, is_taught: bool = False) -> dict[str, Any]:
    """Return the settings of a preset for a method with this sharing mechanism in an environment.

    `is_taught` says whether newcomers share with experienced teachers.
    """
    entry = METHODS[method]
    if not entry.is_value_based:
        return {}
    of_world = WORLDS[env].preset(preset.value) if env in WORLDS else {}
    shares = sharing != NOBODY
    cases = [case for case, holds in ((IF_SHARING, shares), (IF_TAUGHT, shares and is_taught)) if holds]
    found = _chosen(PRESETS[preset].settings, cases) | _chosen(of_world, cases)
    return {name: value for name, value in found.items() if entry.has_setting(name, sharing)}


def _chosen(settings: Mapping[str, Any], cases: Iterable[str]) -> dict[str, Any]:
    """Return the unconditional settings, overridden by those of the given cases; later cases take precedence."""
    found = {name: value for name, value in settings.items() if not name.startswith((IF_SHARING, IF_TAUGHT))}
    for case in cases:
        found |= {name.removeprefix(case): value for name, value in settings.items() if name.startswith(case)}
    return found
