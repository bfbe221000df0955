"""Settings written as NAME=VALUE on the command line."""

import ast
import re
import warnings
from collections.abc import Mapping
from typing import Any

from consmarl.errors import UsageError

_SCIENTIFIC = re.compile(r"[+-]?\d+[eE]\+?\d{1,2}")


def setting_name(text: str) -> str:
    """Return a setting's name as in the code, with underscores; help texts use hyphens, and both are accepted."""
    return text.replace("-", "_")


def settings_from(pairs: tuple[str, ...]) -> dict[str, Any]:
    """Return the settings in NAME=VALUE pairs; a value that is not a Python literal is a string."""
    settings: dict[str, Any] = {}
    for pair in pairs:
        text, equals, value = pair.partition("=")
        if not equals or not text:
            raise UsageError(f"a setting must be written as NAME=VALUE, such as num_agents=8, not {pair!r}.")
        name = setting_name(text)
        if name in settings:
            raise UsageError(f"{name} is set twice: leave one of them out.")
        settings[name] = _literal(value)
    return settings


def pairs_of(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Return settings as NAME=VALUE pairs, as on the command line."""
    return tuple(f"{name}={str(value).replace(' ', '')}" for name, value in settings.items())


def spelled_alike(pairs: tuple[str, ...]) -> tuple[str, ...]:
    """Return NAME=VALUE pairs with names as in the code, with underscores."""
    parts = [pair.partition("=") for pair in pairs]
    return tuple(f"{setting_name(name)}{equals}{value}" for name, equals, value in parts)


def _literal(text: str) -> Any:
    try:
        with warnings.catch_warnings():  # ignore Python's syntax warnings
            warnings.simplefilter("ignore")
            value = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return text
    # 1e4 counts as a whole number, but 10000.0 does not
    is_whole = isinstance(value, float) and value.is_integer() and _SCIENTIFIC.fullmatch(text) is not None
    return int(value) if is_whole else value
