"""Options of components that users can choose, each defined once, as a field of the component's own dataclass.

A group of options, such as those of sharing, combines the dataclasses of all components in a registry. The options of
a component that a user registers are therefore available on the command line and in configurations like any others.
"""

import abc
import dataclasses
import enum
import functools
import types
import typing
from collections.abc import Collection, Iterator, Mapping
from typing import Any, ClassVar, NamedTuple, Self

from consmarl.errors import UsageError, nearest
from consmarl.records import descriptions, hints_of, typed


class OptionField(NamedTuple):
    """An option of one or several components."""

    name: str
    hint: Any  # the type of its values
    description: str
    owners: tuple[str, ...]  # the components that have it

    @property
    def open_hint(self) -> Any:
        """The type of its values, or None for an option that is not set."""
        return self.hint | None

    @property
    def bare_hint(self) -> Any:
        """The same as `open_hint`, without checks of values."""
        return _bare(self.hint) | None


def option_names(record: type, leaving_out: Collection[str] = ()) -> list[str]:
    """Return the names of a dataclass's fields that are options: not internal, and not among `leaving_out`."""
    return [name for name in _names(record) if name not in leaving_out]


@functools.lru_cache(maxsize=256)
def _names(record: type) -> tuple[str, ...]:
    fields = dataclasses.fields(record) if dataclasses.is_dataclass(record) else ()
    return tuple(each.name for each in fields if not each.metadata.get("is_internal"))


def check_options(what: str, record: type, leaving_out: Collection[str] = ()) -> None:
    """Raise an error if a dataclass has an option whose type cannot be read from the command line."""
    hints = hints_of(record)
    for name in option_names(record, leaving_out):
        if not _is_plain(hints.get(name)):
            raise UsageError(
                f"{what} has an option {name} whose type cannot be read from a command line: use bool, int, float, str "
                f"or an enum, or declare it with records.internal(...)."
            )


def _is_plain(hint: Any) -> bool:
    if typing.get_origin(hint) is typing.Annotated:
        return _is_plain(typing.get_args(hint)[0])
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        return all(each is types.NoneType or _is_plain(each) for each in typing.get_args(hint))
    return isinstance(hint, type) and issubclass(hint, (bool, int, float, str, enum.Enum))


def joined(parts: Mapping[str, type], leaving_out: Collection[str] = ()) -> dict[str, OptionField]:
    """Return the options of several components by name; an option of several components must have one type."""
    return dict(_joined(tuple(parts.items()), frozenset(leaving_out)))


# A configuration asks for the same options hundreds of times while it is resolved.
@functools.lru_cache(maxsize=32)
def _joined(parts: tuple[tuple[str, type], ...], leaving_out: frozenset[str]) -> dict[str, OptionField]:
    found: dict[str, OptionField] = {}
    for owner, record in parts:
        hints, texts = hints_of(record), descriptions(record)
        for name in option_names(record, leaving_out):
            there = found.get(name) or OptionField(name, hints[name], "", ())
            if _bare(there.hint) != _bare(hints[name]):
                raise UsageError(
                    f"{owner} has an option {name} of another type than that of {there.owners[0]}: choose another name."
                )
            description = there.description or texts.get(name, "")
            found[name] = there._replace(description=description, owners=(*there.owners, owner))
    return found


def _bare(hint: Any) -> Any:
    return typing.get_args(hint)[0] if typing.get_origin(hint) is typing.Annotated else hint


class Options(abc.ABC):
    """The options of a group that were set; for an option that is None, the preset or the component decides."""

    group: ClassVar[str]  # prefix of their names: share.ask_gate

    def __init__(self, **given: Any) -> None:
        """Convert values to their types; unknown options raise an error."""
        known = self.known()
        for name in given:
            if name not in known:
                raise UsageError(f"there is no setting {f'{self.group}.{name}'!r}: {nearest(name, known)}")
        settled = {
            name: typed(f"{self.group}.{name}", known[name].open_hint, given[name]) for name in known if name in given
        }
        self.__dict__["_given"] = {name: value for name, value in settled.items() if value is not None}

    @classmethod
    @abc.abstractmethod
    def known(cls) -> Mapping[str, OptionField]:
        """Return all options by name."""

    def given(self) -> dict[str, Any]:
        """Return the options that were set."""
        return dict(self.__dict__["_given"])

    def every(self) -> dict[str, Any]:
        """Return all options by name, None for those that were not set."""
        return dict.fromkeys(self.known()) | self.given()

    def changed(self, changes: Mapping[str, Any]) -> Self:
        """Return a copy with the given options changed."""
        return type(self)(**(self.given() | dict(changes)))

    def __getattr__(self, name: str) -> Any:
        """Return an option's value, or None if it was not set."""
        if name.startswith("_") or name not in self.known():
            raise AttributeError(f"{type(self).__name__} has no option {name!r}")
        return self.__dict__["_given"].get(name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Raise an error, since configurations are immutable."""
        raise dataclasses.FrozenInstanceError(f"cannot assign to {self.group}.{name}")

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the options that were set."""
        return iter(self.given())

    def __eq__(self, other: object) -> bool:
        """Return whether the same options have the same values."""
        return type(other) is type(self) and self.given() == other.given()

    def __hash__(self) -> int:
        """Return a hash of the options that were set."""
        return hash(tuple(self.given().items()))

    def __repr__(self) -> str:
        """Show the options that were set, as Python code."""
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.given().items())})"
