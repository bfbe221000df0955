"""Write the table of guide/presets.md, from what runs really have: `.venv/bin/python docs/make_preset_table.py`."""

import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from consmarl import Preset, TrainConfig
from consmarl.environments.interface import Environment
from consmarl.environments.registry import WORLDS
from consmarl.experiments.configuration.as_json import every_setting
from consmarl.experiments.configuration.methods import METHODS

PAGE = Path(__file__).parent / "guide" / "presets.md"
BEGIN, END = "<!-- docs/make_preset_table.py writes from here -->\n", "<!-- to here -->\n"
# a world of each family, and both of the one in which ids differ; somebody else's is not built for it
FAMILIES = {
    "`pgm-3ag`": "pgm-3ag",
    "`pgm-6ag`": "pgm-6ag",
    WORLDS["ft"].world.family: "ft",
    WORLDS["cleanup"].world.family: "cleanup",
    Environment.family: "pettingzoo:any",
}
FEW_METHODS = 2  # so many are left out by name rather than all others listed

Place = tuple[str, str]  # method, family of worlds


def table() -> str:
    """Return a line for every setting that presets set or disagree on, and for every group of methods and worlds."""
    head = ["setting", "methods", "environments", *(preset.value for preset in Preset)]
    lines = [head, ["---"] * len(head)]
    for name, by_place in sorted(_values().items(), key=lambda each: each[0].startswith("share.")):
        for values in dict.fromkeys(by_place.values()):
            places = [place for place, there in by_place.items() if there == values]
            lines += [[_option(name), *where, *map(_written, values)] for where in _groups(places)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def with_table(page: str) -> str:
    """Return the page with the table that is true now."""
    before, _, rest = page.partition(BEGIN)
    return before + BEGIN + "\n" + table() + "\n" + END + rest.partition(END)[2]


def _values() -> dict[str, dict[Place, tuple[Any, ...]]]:
    """Return each such setting's values, one for every preset, by method and world."""
    found: dict[str, dict[Place, tuple[Any, ...]]] = {}
    for method, family in itertools.product(METHODS, FAMILIES):
        runs = [TrainConfig(method=method, env=FAMILIES[family], preset=preset) for preset in Preset]
        is_set = set().union(*(run.by_preset for run in runs))
        settings = [every_setting(run.resolved()) for run in runs]
        for name in settings[0]:
            values = tuple(each[name] for each in settings)
            if name != "preset" and (name in is_set or len(set(values)) > 1):
                found.setdefault(name, {})[method, family] = values
    return found


def _groups(places: list[Place]) -> Iterable[tuple[str, str]]:
    """Yield methods and worlds that hold these places between them."""
    by_methods: dict[tuple[str, ...], list[str]] = {}
    for family in dict.fromkeys(family for _, family in places):
        methods = tuple(method for method, there in places if there == family)
        by_methods.setdefault(methods, []).append(family)
    for methods, families in by_methods.items():
        worlds = "all" if len(families) == len(FAMILIES) else ", ".join(families)
        yield _named(methods), worlds


def _named(methods: tuple[str, ...]) -> str:
    others = [method for method in METHODS if method not in methods]
    if len(others) > FEW_METHODS:
        return ", ".join(f"`{method}`" for method in methods)
    return "all but " + ", ".join(f"`{method}`" for method in others) if others else "all"


def _option(name: str) -> str:
    return f"`--{name.replace('_', '-')}`"


def _written(value: Any) -> str:
    if value is None:  # there is no such setting
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}".replace("-", "−")
    return f"{value:,}" if isinstance(value, int) else f"`{getattr(value, 'value', value)}`"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
