"""Conversion of single arguments into values, where tyro is too strict or too lax."""

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

_SCIENTIFIC = re.compile(r"[+-]?\d+(\.\d*)?[eE]\+?\d{1,2}")  # 1e4, but no exponent in the hundreds


class RefusedOptions(Exception):  # noqa: N818
    """A group of options has an invalid value. It is not a ValueError, because tyro would add its own text."""


def whole_number(word: str) -> int:
    """Parse a whole number in any common notation: 10000, 10_000 or 1e4."""
    try:
        return int(word)
    except ValueError:
        if _SCIENTIFIC.fullmatch(word) and (number := decimal.Decimal(word)) == number.to_integral_value():
            return int(number)
        raise ValueError(f"invalid literal for int() with base 10: {shown(word)}") from None


def path(word: str) -> Path:
    """Parse a path; an empty one is an error, since it would silently mean the current folder."""
    if not word:
        raise ValueError("invalid literal for a path: ''")
    return Path(word)


def registry() -> ConstructorRegistry:
    """Return these conversions as a tyro registry."""
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
    """Return the tyro specification of a group of options, with the options of all components registered so far."""
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
