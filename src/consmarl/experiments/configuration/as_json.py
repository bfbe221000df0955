"""Convert configurations to and from JSON, and read and change settings by name."""

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar

from consmarl.errors import UsageError
from consmarl.records import replaced

# groups of options, with an example of each
GROUPS = {"share": '{"update_rate": 0.6}', "learn": '{"expectile": 0.6}', "explore": '{"share": 0.5}'}
BY_DEFAULT = "by_default"  # the field with the names of settings that were not set

ConfigT = TypeVar("ConfigT")


def plain(config: Any) -> dict[str, Any]:
    """Return a configuration as plain JSON: enums as their values, options of a group only if they are set.

    In a resolved configuration, settings that are still None do not apply to the method and are omitted.
    """
    values = {each.name: getattr(config, each.name) for each in dataclasses.fields(config)}
    groups = {group: {name: _value(each) for name, each in values.pop(group).given().items()} for group in GROUPS}
    by_default = list(values.pop(BY_DEFAULT))
    if not by_default:
        return {name: _value(each) for name, each in values.items()} | groups
    known = {name: _value(each) for name, each in values.items() if each is not None}
    return known | groups | {BY_DEFAULT: by_default}


def flat_settings(read: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings from JSON with those of groups flattened: `share.NAME`, `learn.NAME`, `explore.NAME`."""
    settings = dict(read)
    for group, example in GROUPS.items():
        options = settings.pop(group, {})
        if not isinstance(options, dict):
            raise UsageError(f"{group} must be an object of options such as {example}.")
        settings |= {f"{group}.{name}": value for name, value in options.items()}
    return settings


def every_setting(config: Any) -> dict[str, Any]:
    """Return all settings by name; those of groups are named `share.NAME`, `learn.NAME` and `explore.NAME`."""
    flat: dict[str, Any] = {}
    for each in dataclasses.fields(config):
        value = getattr(config, each.name)
        if each.name in GROUPS:
            flat |= {f"{each.name}.{name}": option for name, option in value.every().items()}
        elif each.name != BY_DEFAULT:
            flat[each.name] = value
    return flat


def changed(config: ConfigT, changes: Mapping[str, Any]) -> ConfigT:
    """Return a copy with some settings changed by name; a dict for a group changes only the options that it names."""
    rest = dict(changes)
    for group in GROUPS:
        prefix = f"{group}."
        own = {name.removeprefix(prefix): rest.pop(name) for name in changes if name.startswith(prefix)}
        if isinstance(rest.get(group), Mapping):
            own = {**rest.pop(group), **own}
        rest[group] = rest.get(group, getattr(config, group)).changed(own)
    return replaced(config, rest)


def _value(each: Any) -> Any:
    return getattr(each, "value", each)
