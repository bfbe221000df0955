"""Worlds by name: an id is a world class and the settings in which it differs from the class's defaults."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any

from consmarl.environments.cleanup import Cleanup
from consmarl.environments.gold_miner import GoldMiner
from consmarl.environments.grid import GridWorld
from consmarl.environments.treasure import FindTreasure
from consmarl.errors import UsageError, nearest, shown

_MODULE = re.compile(r"[A-Za-z_]\w*(\.\w+)+|\w+_v\d+")  # mpe2.simple_spread_v3, simple_spread_v3


@dataclass(frozen=True)
class WorldEntry:
    """One registered world."""

    summary: str
    world: type[GridWorld[Any, Any, Any]]
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def parameters(self) -> dict[str, Any]:
        """Every setting that `make` takes, with its value for this id."""
        defaults = {each.name: each.default for each in fields(self.world) if each.name != "id"}
        return defaults | dict(self.settings)


WORLDS: Mapping[str, WorldEntry] = MappingProxyType(
    {
        "pgm-6ag": WorldEntry("Patient Gold Miner: 6 agents, 12×12, gold after 10 paid steps (easier)", GoldMiner),
        "pgm-3ag": WorldEntry(
            "Patient Gold Miner: 3 agents, 8×9, gold after 8 of 25 steps (harder)",
            GoldMiner,
            dict(
                grid=(8, 9), num_agents=3, view=(3, 5), episode_limit=25, num_mines=1, num_piles=2,
                mining_steps=8, stones_per_pile=8, gold_reward=20.0,
            ),
        ),
        "ft": WorldEntry("Find the Treasure: 4 agents open boxes in pairs, one holds the treasure", FindTreasure),
        "ft-20": WorldEntry("Find the Treasure with 20 agents", FindTreasure, dict(num_agents=20)),
        "ft-multi": WorldEntry(
            "Find the Treasure with 6 green boxes that hold a second treasure", FindTreasure, dict(num_green=6)
        ),
        "cleanup": WorldEntry("Cleanup: 4 agents, apples grow only while the river is kept clean", Cleanup),
    }
)  # fmt: skip


def world_ids() -> tuple[str, ...]:
    """Return the ids that `make` knows."""
    return tuple(WORLDS)


def _foreign_hint(id: str) -> str | None:
    """Return how to write the name of somebody else's world, if this looks like one."""
    if id.startswith("Foraging"):
        return f"level-based foraging is written lbforaging:{id}."
    if id.startswith(("lbforaging.", "lbforaging-", "lbforaging/")):
        return "level-based foraging is written lbforaging:ID, such as lbforaging:Foraging-8x8-2p-2f-v3."
    if _MODULE.fullmatch(id) or id.startswith("pettingzoo."):
        return f"a module that makes a PettingZoo environment is written pettingzoo:{id}."
    return None


def make(id: str, **parameters: Any) -> GridWorld[Any, Any, Any]:
    """Return the world with this id, its settings changed by `parameters`.

    >>> make("pgm-6ag", num_agents=8, grid=(16, 16)).observation_size
    78
    """
    if not isinstance(id, str) or id not in WORLDS:
        raise UsageError(f"there is no world {shown(id)}: {_foreign_hint(str(id)) or nearest(str(id), WORLDS)}")
    entry = WORLDS[id]
    for name in parameters:
        if name not in entry.parameters:
            raise UsageError(f"{id} has no parameter {name!r}: {nearest(name, entry.parameters)}")
    return entry.world(**(dict(entry.settings) | parameters), id=id)
