"""Environments by name: an id stands for a class and the settings in which it differs from the class's defaults."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any

from consmarl.environments.cleanup import Cleanup
from consmarl.environments.gold_miner import GoldMiner
from consmarl.environments.interface import AnyEnvironment, Environment
from consmarl.environments.packages import is_of_package, package_world
from consmarl.environments.treasure import FindTreasure
from consmarl.errors import UsageError, nearest, shown
from consmarl.registry import Registry, check_record, home_of

_MODULE = re.compile(r"[A-Za-z_]\w*(\.\w+)+|\w+_v\d+")  # mpe2.simple_spread_v3, simple_spread_v3


@dataclass(frozen=True)
class WorldEntry:
    """A registered environment."""

    summary: str
    world: type[AnyEnvironment]
    settings: Mapping[str, Any] = field(default_factory=dict)
    presets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def preset(self, name: str) -> dict[str, Any]:
        """Return the run settings that suit this environment in a preset: the class's, and those of this id."""
        return {**self.world.presets.get(name, {}), **self.presets.get(name, {})}

    @property
    def parameters(self) -> dict[str, Any]:
        """Every parameter that `make` accepts, with its value for this id."""
        defaults = {each.name: each.default for each in fields(self.world) if each.name != "id"}  # type: ignore[arg-type]
        return defaults | dict(self.settings)


WORLDS: Registry[WorldEntry] = Registry("world")


def register_world(
    id: str,
    world: type[AnyEnvironment],
    summary: str = "",
    *,
    presets: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
    **settings: Any,
) -> None:
    """Register an environment under an id, for the command line, configurations, sweeps, reports and the viewer.

    `world` is a frozen dataclass derived from `Environment`, or from `GridWorld` or `WalkerWorld`, which do most of the
    work for grids. Its fields are parameters, `--set NAME=VALUE`; `settings` are the values in which this id differs
    from the class's defaults. Class attributes (`family`, `acts_as_one`, `presets`, `painter`) decide how it is trained
    and drawn; `presets` adds settings for runs with this id only.
    """
    what = f"the world {id!r}"
    check_record(what, world, Environment)
    entry = WorldEntry(summary, world, settings, presets)
    names = [each.name for each in fields(world)]  # type: ignore[arg-type]
    if "id" not in names:
        raise UsageError(f'{what} must have a field `id: str = ""`, which says what it is called.')
    for name in settings:
        if name not in names:
            raise UsageError(f"{what} has no parameter {name!r}: {nearest(name, names)}")
    WORLDS.add(id, entry, home_of(world))


register_world(
    "pgm-6ag",
    GoldMiner,
    "Patient Gold Miner: 6 agents, 12×12, gold after 10 paid steps (easier)",
    presets={
        "recommended": {
            # 100,000 steps are 2,000 episodes: within the default 1,000, some agents never find gold
            "epsilon_anneal_steps": 100_000,
            # as long as nobody has found gold, expectations differ by less, and budgets would be spent on chance
            "share.hope_margin": 3.0,
        }
    },
)
register_world(
    "pgm-3ag", GoldMiner, "Patient Gold Miner: 3 agents, 8×9, gold after 8 of 25 steps (harder)",
    grid=(8, 9), num_agents=3, view=(3, 5), episode_limit=25, num_mines=1, num_piles=2, mining_steps=8,
    stones_per_pile=8, gold_reward=20.0,
)  # fmt: skip
register_world("ft", FindTreasure, "Find the Treasure: 4 agents open boxes in pairs, one holds the treasure")
register_world("ft-20", FindTreasure, "Find the Treasure with 20 agents", num_agents=20)
register_world(
    "ft-multi", FindTreasure, "Find the Treasure with 6 green boxes that hold a second treasure", num_green=6
)
register_world("cleanup", Cleanup, "Cleanup: 4 agents, apples grow only while the river is kept clean")


def can_be_drawn(id: str) -> bool:
    """Return whether the environment with this id has a painter."""
    return id in WORLDS and WORLDS[id].world.painter is not None


def world_ids() -> tuple[str, ...]:
    """Return the ids of all registered environments."""
    return tuple(WORLDS)


def _foreign_hint(id: str) -> str | None:
    """Return how to write the id of a third-party environment, if this looks like one."""
    if id.startswith("Foraging"):
        return f"level-based foraging is written lbforaging:{id}."
    if id.startswith(("lbforaging.", "lbforaging-", "lbforaging/")):
        return "level-based foraging is written lbforaging:ID, such as lbforaging:Foraging-8x8-2p-2f-v3."
    if id.startswith("rware-"):
        return f"the multi-robot warehouse is written rware:{id}."
    if _MODULE.fullmatch(id) or id.startswith("pettingzoo."):
        return f"a module that makes a PettingZoo environment is written pettingzoo:{id}."
    return None


def make(id: str, **parameters: Any) -> Any:
    """Return the environment with this id, as pure functions for JAX; `parameters` change its settings.

    >>> make("pgm-6ag", num_agents=8, grid=(16, 16)).observation_size
    78
    """
    if isinstance(id, str) and is_of_package(id):
        return package_world(id, **parameters)
    if not isinstance(id, str) or id not in WORLDS:
        raise UsageError(f"there is no world {shown(id)}: {_foreign_hint(str(id)) or nearest(str(id), WORLDS)}")
    entry = WORLDS[id]
    for name in parameters:
        if name not in entry.parameters:
            raise UsageError(f"{id} has no parameter {name!r}: {nearest(name, entry.parameters)}")
    build: Any = entry.world
    return build(**(dict(entry.settings) | parameters), id=id)
