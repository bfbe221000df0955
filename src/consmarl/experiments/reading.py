"""Configurations as JSON: writing them down, and reading what we or somebody else wrote."""

import dataclasses
import enum
import json
import types
import typing
from collections.abc import Mapping
from typing import Any

from consmarl.errors import UsageError, nearest

GROUPS = {"share": '{"update_rate": 0.6}', "learn": '{"expectile": 0.6}'}  # groups of options, with an example each


def plain(config: Any) -> dict[str, Any]:
    """Return a configuration as JSON has it: enums as their values, single options of a group only where set."""
    values = dataclasses.asdict(config)
    groups = {
        group: {name: _value(each) for name, each in values.pop(group).items() if each is not None} for group in GROUPS
    }
    return {name: _value(each) for name, each in values.items()} | groups


def settings_in(text: str) -> dict[str, Any]:
    """Read JSON, and flatten its groups of options to `share.NAME` and `learn.NAME`."""
    try:
        settings: Any = json.loads(text)
    except json.JSONDecodeError as error:
        raise UsageError(f"the configuration is not JSON: {error}.") from error
    if not isinstance(settings, dict):
        raise UsageError('the configuration must be an object such as {"env": "pgm-3ag"}.')
    for group, example in GROUPS.items():
        options = settings.pop(group, {})
        if not isinstance(options, dict):
            raise UsageError(f"{group} must be an object of options such as {example}.")
        settings |= {f"{group}.{name}": value for name, value in options.items()}
    return settings


def typed_settings(kind: type, settings: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Return settings as a configuration of this kind holds them; unknown names get their nearest neighbours."""
    hints = typing.get_type_hints(kind)
    for name in settings:
        if name not in hints:
            known = [each.name for each in dataclasses.fields(kind)]
            raise UsageError(f"there is no setting {prefix + name!r}: {nearest(name, known)}")
    return {name: _typed(prefix + name, hints[name], value) for name, value in settings.items()}


def _typed(name: str, hint: Any, value: Any) -> Any:
    """Make an enum of its value and a tuple of a list; the rest is checked where it is used."""
    choices = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    if value is None and types.NoneType in choices:
        return None
    for kind in choices:
        if isinstance(kind, type) and issubclass(kind, enum.Enum):
            return value if isinstance(value, kind) else _enum_value(name, kind, value)
        if typing.get_origin(kind) is tuple:
            if not isinstance(value, list | tuple):
                raise UsageError(f"{name} is a list, not {value!r}.")
            items = typing.get_args(kind)[0]
            return tuple(_typed(f"each of {name}", items, each) if items is int else each for each in value)
        if kind is int and isinstance(value, float) and value.is_integer():
            return int(value)  # 1e4, as JSON has it
        if kind is bool and not isinstance(value, bool):
            raise UsageError(f"{name} is true or false, not {value!r}.")
        if kind is str and not isinstance(value, str):
            raise UsageError(f"{name} is a word, not {value!r}.")
    return value


def _enum_value(name: str, kind: type[enum.Enum], value: object) -> enum.Enum:
    values = [each.value for each in kind]
    if value not in values:
        raise UsageError(f"{name} has no value {value!r}: {nearest(str(value), values)}")
    return kind(value)


def _value(each: Any) -> Any:
    return getattr(each, "value", each)
