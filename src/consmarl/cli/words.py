"""How single words of a command line become values, where tyro's own ways are too strict or too lax."""

import decimal
import re
from pathlib import Path
from typing import Any

from tyro.constructors import (
    ConstructorRegistry,
    PrimitiveConstructorSpec,
    PrimitiveTypeInfo,
    StructConstructorSpec,
    StructFieldSpec,
    StructTypeInfo,
)

from consmarl.errors import UsageError, shown
from consmarl.options import Options

_SCIENTIFIC = re.compile(r"[+-]?\d+(\.\d*)?[eE]\+?\d{1,2}")  # 1e4; an exponent of hundreds would never be computed


class RefusedOptions(Exception):  # noqa: N818
    """A group of options with a value that cannot be used; tyro would add words of its own to a ValueError."""


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

    @own.struct_rule
    def options_rule(info: StructTypeInfo) -> StructConstructorSpec | None:
        return _options_spec(info) if isinstance(info.type, type) and issubclass(info.type, Options) else None

    return own


def _options_spec(info: StructTypeInfo) -> StructConstructorSpec:
    """Return how a group of options is put together from those that parts have now."""
    kind: Any = info.type
    there: Any = info.default
    given = there.given() if isinstance(there, Options) else {}
    fields = tuple(
        StructFieldSpec(name=each.name, type=each.bare_hint, default=given.get(each.name), helptext=each.description)
        for each in kind.known().values()
    )

    def build(**given: Any) -> Any:
        try:
            return kind(**given)
        except UsageError as error:
            raise RefusedOptions(str(error)) from error

    return StructConstructorSpec(instantiate=build, fields=fields)


def _spec(metavar: str, read: Any, kind: type) -> PrimitiveConstructorSpec[Any]:
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar=metavar,
        instance_from_str=lambda words: read(words[0]),
        is_instance=lambda value: isinstance(value, kind) and not isinstance(value, bool),
        str_from_instance=lambda value: [str(value)],
    )
