"""Settings as people write them on a command line: NAME=VALUE."""

import ast
from typing import Any

from consmarl.errors import UsageError


def setting_name(text: str) -> str:
    """Return a setting's name as the code spells it; help spells it with hyphens, and both are accepted."""
    return text.replace("-", "_")


def settings_from(pairs: tuple[str, ...]) -> dict[str, Any]:
    """Read NAME=VALUE pairs; a value is a Python literal, or else a word."""
    settings: dict[str, Any] = {}
    for pair in pairs:
        text, equals, value = pair.partition("=")
        if not equals or not text:
            raise UsageError(f"a setting is written NAME=VALUE, such as num_agents=8, not {pair!r}.")
        name = setting_name(text)
        if name in settings:
            raise UsageError(f"{name} is set twice: leave one of them out.")
        try:
            settings[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            settings[name] = value
    return settings


def spelled_alike(pairs: tuple[str, ...]) -> tuple[str, ...]:
    """Return NAME=VALUE pairs with their names as the code spells them."""
    parts = [pair.partition("=") for pair in pairs]
    return tuple(f"{setting_name(name)}{equals}{value}" for name, equals, value in parts)
