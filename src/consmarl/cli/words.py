"""How single words of a command line become values, where tyro's own ways are too strict or too lax."""

import decimal
import re
from pathlib import Path
from typing import Any

from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

from consmarl.errors import shown

_SCIENTIFIC = re.compile(r"[+-]?\d+(\.\d*)?[eE]\+?\d{1,2}")  # 1e4; an exponent of hundreds would never be computed


def whole_number(word: str) -> int:
    """Read a whole number as people write it: 10000, 10_000 or 1e4."""
    try:
        return int(word)
    except ValueError:
        if _SCIENTIFIC.fullmatch(word) and (number := decimal.Decimal(word)) == number.to_integral_value():
            return int(number)
        raise ValueError(f"invalid literal for int() with base 10: {shown(word)}") from None


def path(word: str) -> Path:
    """Read a path; an empty one would be the current folder, which nobody means by it."""
    if not word:
        raise ValueError("invalid literal for a path: ''")
    return Path(word)


def registry() -> ConstructorRegistry:
    """Return these ways for tyro."""
    own = ConstructorRegistry()

    @own.primitive_rule
    def whole_rule(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
        return _spec("INT", whole_number, int) if info.type is int else None

    @own.primitive_rule
    def path_rule(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
        return _spec("PATH", path, Path) if info.type is Path else None

    return own


def _spec(metavar: str, read: Any, kind: type) -> PrimitiveConstructorSpec[Any]:
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar=metavar,
        instance_from_str=lambda words: read(words[0]),
        is_instance=lambda value: isinstance(value, kind) and not isinstance(value, bool),
        str_from_instance=lambda value: [str(value)],
    )
