"""The presets: settings that belong together.

Settings of a preset here apply to all methods that have action values and the setting in question. An environment may
set more for a preset (`Environment.presets`), which overrides these; user settings override both. Everything else is
left to the method, whose learner's defaults are the paper's. The sharing settings of a preset are defined in
`sharing/`, where they can be used without the rest.

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
    # for all methods that have action values and the setting; named as in TrainConfig, and `learn.NAME`; with
    # `if_sharing.` in front for teams that share, and `if_taught.` for newcomers among experts
    settings: Mapping[str, Any]


# A preset may set anything that can be left open, except periods and settings that decide which others apply.
NOT_FOR_PRESETS = frozenset({"sharing", "report_every", "evaluate_every", "checkpoint_every"})

# Settings with one of these in front of their names hold only where agents share, "if_sharing.epsilon_anneal_steps", or
# where newcomers share with experienced teachers.
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
    """Return what a preset sets for a method with this sharing in an environment.

    `is_taught` says that newcomers share with experienced teachers.
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
    """Return the settings that always hold, and in their place those of the given cases; later cases win."""
    found = {name: value for name, value in settings.items() if not name.startswith((IF_SHARING, IF_TAUGHT))}
    for case in cases:
        found |= {name.removeprefix(case): value for name, value in settings.items() if name.startswith(case)}
    return found
