"""The presets: settings that belong together, by method and by family of worlds.

A preset is a list of rows. A row holds for all methods and worlds unless it names some. If two rows set the same thing,
the later one wins, and whatever the user sets wins over both. A method goes without settings that it does not have.
What no row sets is left to the method: its learner's own defaults are the paper's. How agents share in a preset is
written in `sharing/`, where it can be used without the rest; a row may set `share.NAME` as well.

docs/guide/presets.md shows what all this comes to. After a change, `python docs/make_preset_table.py` writes its table.
"""

import enum
from collections.abc import Mapping
from typing import Any, NamedTuple

from consmarl.environments.cleanup import Cleanup
from consmarl.environments.gold_miner import GoldMiner
from consmarl.environments.registry import WORLDS
from consmarl.environments.treasure import FindTreasure
from consmarl.experiments.explorations import ExplorationKind
from consmarl.experiments.methods import METHODS, Method
from consmarl.experiments.sharing_options import SharingKind
from consmarl.learners.iql import TargetMemory
from consmarl.learners.optimiser import OptimiserKind
from consmarl.learners.td import Target
from consmarl.networks.drqn import Head
from consmarl.sharing.options import Preset


class WorldFamily(enum.Enum):
    """Worlds that presets treat alike."""

    GOLD_MINER = "Patient Gold Miner"
    TREASURE = "Find the Treasure"
    CLEANUP = "Cleanup"
    OTHER = "other environments"


class Row(NamedTuple):
    """Some settings, and where they hold."""

    settings: Mapping[str, Any]  # named as in TrainConfig, options of a group as `learn.NAME` and `share.NAME`
    worlds: tuple[WorldFamily, ...] = tuple(WorldFamily)
    methods: tuple[Method, ...] = tuple(Method)


class PresetEntry(NamedTuple):
    """What a preset's name stands for."""

    summary: str
    rows: tuple[Row, ...]


# A row may set whatever can be left open, except for what decides which rows hold, and periods.
NOT_FOR_PRESETS = frozenset({"sharing", "report_every", "evaluate_every", "checkpoint_every"})

_WITH_VALUES = tuple(method for method, entry in METHODS.items() if entry.is_value_based)  # all but ga-comm

_SHARING_BY_WORLD = (  # the paper's values
    Row({"share.weight_shape": 0.3}, worlds=(WorldFamily.TREASURE,)),
    Row({"share.weight_shape": -0.5, "share.ask_scale": 0.01}, worlds=(WorldFamily.CLEANUP,)),
)

PRESETS: dict[Preset, PresetEntry] = {
    Preset.PAPER: PresetEntry("as the paper says; its figures are made with it", _SHARING_BY_WORLD),
    Preset.RELEASE: PresetEntry(
        "as the authors' code does",
        (
            Row({"share.weight_shape": 0.7}, worlds=(WorldFamily.TREASURE,)),
            Row({"share.weight_shape": -0.5}, worlds=(WorldFamily.CLEANUP,)),
        ),
    ),
    Preset.RECOMMENDED: PresetEntry(
        "our choice of what learns best; the default",
        (
            *_SHARING_BY_WORLD,
            Row(
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
                },
                methods=_WITH_VALUES,
            ),
            Row({"mirror_episodes": True}, worlds=(WorldFamily.GOLD_MINER, WorldFamily.TREASURE)),
            Row(
                {
                    "learn.trace_decay": 0.9,
                    "learn.settle_after": 0.4,
                    "learn.trace_tolerance": 0.5,
                    "learn.footprints": True,
                    "coverage_bonus": 0.3,
                    "coverage_after": 0.4,
                    "epsilon_end": 0.02,
                    "epsilon_final": 0.01,
                },
                worlds=(WorldFamily.GOLD_MINER,),
                methods=_WITH_VALUES,
            ),
            Row({"exploration": ExplorationKind.EPSILON_GREEDY}),
            Row({"exploration": ExplorationKind.EPSILON_Z_GREEDY}, worlds=(WorldFamily.GOLD_MINER,)),
            Row(
                {"exploration": ExplorationKind.EPSILON_GREEDY_TOGETHER, "epsilon_anneal_steps": 150_000},
                worlds=(WorldFamily.TREASURE,),
                methods=_WITH_VALUES,
            ),
        ),
    ),
}

_FAMILIES: dict[type, WorldFamily] = {
    GoldMiner: WorldFamily.GOLD_MINER,
    FindTreasure: WorldFamily.TREASURE,
    Cleanup: WorldFamily.CLEANUP,
}


def family_of(env: str) -> WorldFamily:
    """Return the family of a world by its id; nothing is built."""
    return _FAMILIES.get(WORLDS[env].world, WorldFamily.OTHER) if env in WORLDS else WorldFamily.OTHER


def settings_of(preset: Preset, method: Method, sharing: SharingKind, env: str) -> dict[str, Any]:
    """Return what a preset sets for a method with this sharing in a world."""
    family, entry = family_of(env), METHODS[method]
    found: dict[str, Any] = {}
    for row in PRESETS[preset].rows:
        if family in row.worlds and method in row.methods:
            found |= row.settings
    return {name: value for name, value in found.items() if entry.has_setting(name, sharing)}
