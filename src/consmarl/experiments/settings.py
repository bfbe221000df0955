"""Parameters of a world as people write them on a command line: NAME=VALUE."""

import ast
from typing import Any

from consmarl.errors import UsageError


def settings_from(pairs: tuple[str, ...]) -> dict[str, Any]:
    """Read NAME=VALUE pairs; a value is a Python literal, or else a word."""
    settings: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise UsageError(f"a setting is written NAME=VALUE, such as num_agents=8, not {pair!r}.")
        try:
            settings[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):  # no literal, or none that ends
            settings[name] = value
    return settings
