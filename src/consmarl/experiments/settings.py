"""Parameters of a world as people write them on a command line: NAME=VALUE."""

import ast
import re
import warnings
from typing import Any

from consmarl.errors import UsageError

_SCIENTIFIC = re.compile(r"[+-]?\d+[eE]\+?\d{1,2}")


def settings_from(pairs: tuple[str, ...]) -> dict[str, Any]:
    """Read NAME=VALUE pairs; a value is a Python literal, or else a word."""
    settings: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise UsageError(f"a setting is written NAME=VALUE, such as num_agents=8, not {pair!r}.")
        settings[name] = _literal(value)
    return settings


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
