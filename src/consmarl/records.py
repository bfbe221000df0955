"""Typed, immutable dataclasses for user input: strings, lists and dicts are converted to the fields' types.

A dataclass's `__post_init__` calls `settle`. Wrong types are thus rejected at the boundary, and later code can compare
enums with `is`. A type may carry a `Check`: `Annotated[float, Check(fraction)]`. The string below a field is its
description.
"""

import ast
import dataclasses
import enum
import functools
import inspect
import itertools
import numbers
import operator
import textwrap
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

import numpy as np

from consmarl.errors import UsageError, nearest, shown

RecordT = TypeVar("RecordT")


@dataclass(frozen=True)
class Check:
    """Part of a type hint: a function of a setting's name and value that raises an error if the value is invalid."""

    test: Callable[[str, Any], Any]


@dataclass(frozen=True)
class OneOf:
    """Part of a type hint: the string must be one of these names, to which plugins may add."""

    names: Iterable[str]

    def test(self, name: str, value: str) -> None:
        """Raise an error for an unknown name."""
        known = list(self.names)
        if value not in known:
            raise UsageError(f"{name} has no value {shown(value)}: {nearest(value, known)}")


def internal(default: Any) -> Any:
    """Declare a field that is not an option for users but is set by other parts of the program."""
    return dataclasses.field(default=default, metadata={"is_internal": True})


def descriptions(kind: type) -> Mapping[str, str]:
    """Return the descriptions of the fields of a dataclass and its base classes, by field name."""
    found: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        if dataclasses.is_dataclass(each):
            found |= _descriptions_in(each)
    return found


@functools.cache
def _descriptions_in(kind: type) -> dict[str, str]:
    try:
        source = textwrap.dedent(inspect.getsource(kind))
    except (OSError, TypeError):  # the source is not available
        return {}
    (tree,) = ast.parse(source).body
    assert isinstance(tree, ast.ClassDef)
    return {
        field.target.id: " ".join(text.value.value.split())
        for field, text in itertools.pairwise(tree.body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str)
    }  # fmt: skip


def settle(record: Any, prefix: str = "") -> None:
    """Convert the fields of a frozen dataclass to their types, in place; `prefix` precedes their names in messages."""
    hints = hints_of(record.__class__)
    for each in dataclasses.fields(record):
        given = getattr(record, each.name)
        default = default_of(each) if isinstance(given, Mapping) else None
        settled = typed(prefix + each.name, hints.get(each.name, Any), given, default)
        object.__setattr__(record, each.name, settled)  # bypasses frozen=True


def replaced(record: RecordT, changes: Mapping[str, Any], prefix: str = "") -> RecordT:
    """Return a copy with the given fields changed; the error for an unknown name suggests the closest ones."""
    kept: Any = record
    known = [each.name for each in dataclasses.fields(kept)]
    for name in changes:
        if name not in known:
            raise UsageError(f"there is no setting {f'{prefix}{name}'!r}: {nearest(str(name), known)}")
    return dataclasses.replace(kept, **changes)


def default_of(field: "dataclasses.Field[Any]") -> Any:
    """Return a field's default value; None if it has none."""
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return None if field.default is dataclasses.MISSING else field.default


def defaults_of(record: Any) -> dict[str, Any]:
    """Return the default values of a dataclass's fields, by name."""
    return {each.name: default_of(each) for each in dataclasses.fields(record)}


def typed(name: str, hint: Any, value: Any, default: Any = None) -> Any:
    """Return a value converted to its type hint.

    An enum is made from its value, a tuple from any sequence, a dataclass from a dict of changes to `default`. Hints
    that are not a single class, such as Any, accept everything. A hint's `Check`s are applied to values other than
    None.
    """
    if typing.get_origin(hint) is Annotated:
        inner, *marks = typing.get_args(hint)
        settled = typed(name, inner, value, default)
        for mark in marks:
            if isinstance(mark, Check | OneOf) and settled is not None:
                mark.test(name, settled)
        return settled
    is_union = typing.get_origin(hint) in (types.UnionType, typing.Union)
    choices = typing.get_args(hint) if is_union else (hint,)
    if value is None and types.NoneType in choices:
        return None
    kinds = [each for each in choices if each is not types.NoneType]
    if len(kinds) > 1:
        return value
    (kind,) = kinds
    if typing.get_origin(kind) is Annotated:
        return typed(name, kind, value, default)
    if typing.get_origin(kind) is tuple:
        return _tuple(name, typing.get_args(kind), value)
    if kind is Any or not isinstance(kind, type) or getattr(kind, "_is_protocol", False):
        return value
    if issubclass(kind, enum.Enum):
        return _member(name, kind, value)
    if kind in _SIMPLE:
        return _SIMPLE[kind](name, value)
    if isinstance(value, Mapping) and isinstance(default, kind):
        if dataclasses.is_dataclass(default):
            return replaced(default, value, f"{name}.")
        if hasattr(default, "changed"):  # `options.Options`
            return default.changed(value)
    if not isinstance(value, kind):
        raise UsageError(f"{name} must be of type {kind.__name__}, not {shown(value)}.")
    return value


def _tuple(name: str, kinds: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
    if isinstance(value, str | bytes) or not isinstance(value, Sequence | np.ndarray):
        raise UsageError(f"{name} must be a list, not {shown(value)}.")
    if kinds[-1] is Ellipsis:
        kinds = (kinds[0],) * len(value)
    if len(kinds) != len(value):
        raise UsageError(f"{name} must be a list of {len(kinds)}, not {shown(value)}.")
    return tuple(typed(f"each of {name}", kind, each) for kind, each in zip(kinds, value, strict=True))


def _member(name: str, kind: type[enum.Enum], value: Any) -> enum.Enum:
    if isinstance(value, kind):
        return value
    values = [each.value for each in kind]
    if not isinstance(value, str) or value not in values:
        raise UsageError(f"{name} has no value {shown(value)}: {nearest(str(value), values)}")
    return kind(value)


def _whole(name: str, value: Any) -> int:
    if isinstance(value, float) and value.is_integer():
        return int(value)  # such as 1e4
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise UsageError(f"{name} must be a whole number, not {shown(value)}.")
    return operator.index(value)


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise UsageError(f"{name} must be a number, not {shown(value)}.")
    try:
        return float(value)
    except OverflowError:
        raise UsageError(f"{name} must be a smaller number than {shown(value)}.") from None


def _truth(name: str, value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise UsageError(f"{name} must be true or false, not {shown(value)}.")
    return bool(value)


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise UsageError(f"{name} must be a string, not {shown(value)}.")
    return value  # not converted, since a subclass of str may carry the value's origin


_SIMPLE: dict[type, Callable[[str, Any], Any]] = {int: _whole, float: _number, bool: _truth, str: _text}


@functools.cache
def hints_of(kind: type) -> dict[str, Any]:
    """Return the type hints of a dataclass's fields, including `Annotated` ones."""
    try:
        return typing.get_type_hints(kind, include_extras=True)
    except NameError:  # names imported only for type checkers; such a dataclass has to check its own fields
        return {}
