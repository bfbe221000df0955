"""Settings as people write them on a command line: NAME=VALUE."""

import ast
import re
import warnings
from typing import Any

from consmarl.errors import UsageError

_SCIENTIFIC = re.compile(r"[+-]?\d+[eE]\+?\d{1,2}")


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
        settings[name] = _literal(value)
    return settings


def spelled_alike(pairs: tuple[str, ...]) -> tuple[str, ...]:
    """Return NAME=VALUE pairs with their names as the code spells them."""
    parts = [pair.partition("=") for pair in pairs]
    return tuple(f"{setting_name(name)}{equals}{value}" for name, equals, value in parts)


def _literal(text: str) -> Any:
    try:
        with warnings.catch_warnings():  # what Python thinks of a word is nobody's concern
            warnings.simplefilter("ignore")
            value = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return text
    # people write whole numbers as 1e4, and nobody a fraction
    is_whole = isinstance(value, float) and value.is_integer() and _SCIENTIFIC.fullmatch(text) is not None
    return int(value) if is_whole else value
