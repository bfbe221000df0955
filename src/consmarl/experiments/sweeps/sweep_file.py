"""Sweep files: {"methods": [...], "envs": [...], "seeds": [...], "vary": {...}, "options": {...}, "set": [...]}."""

from pathlib import Path
from typing import Any

from consmarl.environments.trust import marked
from consmarl.errors import UsageError, nearest
from consmarl.experiments.configuration.config import TrainConfig
from consmarl.experiments.configuration.pairs import setting_name, spelled_alike
from consmarl.experiments.sweeps.plan import Sweep, variants_of
from consmarl.json_files import read_json_object

_LISTS = {"methods": "strings", "envs": "strings", "seeds": "numbers", "set": "strings such as num_agents=4"}
_OBJECTS = {"vary": '{"share.temperature": [0.1, 0.3]}', "options": '{"episodes": 4000}'}


def sweep_from_file(path: Path, *, trust: bool | tuple[str, ...] = False) -> Sweep:
    """Read a sweep: an object with methods, envs, seeds, and optionally vary, options and set.

    Third-party environments named in a file are not run unless `trust` is True or contains their ids.
    """
    if not path.is_file():
        raise UsageError(f"there is no sweep {path}.")
    read = read_json_object(path)
    if trust is not True:
        read = marked(read, str(path), "--envs", but_for=trust or ())
    try:
        return _sweep(read)
    except UsageError as error:
        raise UsageError(f"{path} cannot be used: {error}") from error


def _sweep(read: dict[str, Any]) -> Sweep:
    for name in read:
        if name not in (*_LISTS, *_OBJECTS):
            raise UsageError(f"it has an unknown part {name!r}: {nearest(name, [*_LISTS, *_OBJECTS])}")
    lists = {name: _list(name, read.get(name, [])) for name in _LISTS}
    vary = {name: _values(name, values) for name, values in _settings("vary", read.get("vary", {})).items()}
    options = _settings("options", read.get("options", {}))
    return Sweep(
        envs=lists["envs"],
        variants=variants_of(lists["methods"], vary, options),
        seeds=lists["seeds"],
        base=TrainConfig().with_options({"set": spelled_alike(lists["set"])}),
    )


def _list(name: str, values: Any) -> tuple[Any, ...]:
    kind = int if name == "seeds" else str
    if not isinstance(values, list) or not all(isinstance(each, kind) for each in values):
        raise UsageError(f"{name} must be a list of {_LISTS[name]}, not {values!r}.")
    return tuple(values)


def _settings(part: str, settings: Any) -> dict[str, Any]:
    """Return settings with names as in the code, with underscores."""
    if not isinstance(settings, dict):
        raise UsageError(f"{part} must be an object such as {_OBJECTS[part]}, not {settings!r}.")
    named = {setting_name(name): value for name, value in settings.items()}
    if len(named) < len(settings):
        raise UsageError(f"{part} sets one of {', '.join(settings)} twice: leave one of them out.")
    return named


def _values(name: str, values: Any) -> tuple[Any, ...]:
    if not isinstance(values, list) or not values:
        raise UsageError(f"{name} in vary must be a list of values such as [0.1, 0.3], not {values!r}.")
    return tuple(values)
