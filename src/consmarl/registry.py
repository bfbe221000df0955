"""Registries of named things, which users can extend."""

import dataclasses
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

from consmarl.errors import UsageError, nearest, shown

EntryT = TypeVar("EntryT")

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")


_ALL: list["Registry[Any]"] = []


class Registry(Mapping[str, EntryT], Generic[EntryT]):
    """Things of one kind by name, in the order in which they were added."""

    def __init__(self, kind: str) -> None:
        """Start empty; `kind` is what a thing is called in messages."""
        self.kind = kind
        self._entries: dict[str, EntryT] = {}
        self._homes: dict[str, str] = {}
        _ALL.append(self)

    def add(self, name: str, entry: EntryT, home: str) -> None:
        """Add a thing defined in the module `home`; a name can be used only once.

        A module that is loaded again, as in notebooks, replaces what it added before.
        """
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise UsageError(
                f"{shown(name)} cannot be the name of a {self.kind}: use lower-case letters, digits, '-', '_' and '.'."
            )
        if name in self._entries and self._homes[name] != home:
            raise UsageError(f"there is a {self.kind} {name!r} already, from {self._homes[name]}: choose another name.")
        self._entries[name], self._homes[name] = entry, home

    def find(self, name: str) -> EntryT:
        """Return a thing by name; for an unknown name, suggest the closest ones."""
        if name not in self._entries:
            raise UsageError(f"there is no {self.kind} {shown(name)}: {nearest(str(name), self._entries)}")
        return self._entries[name]

    @property
    def homes(self) -> list[str]:
        """Where its things were defined, in the order in which they were added."""
        return list(self._homes.values())

    def __getitem__(self, name: str) -> EntryT:
        """Return a thing by name."""
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter(self._entries)

    __hash__ = object.__hash__  # each registry is unique
    __eq__ = object.__eq__

    def __len__(self) -> int:
        """Return the number of things."""
        return len(self._entries)


def check_record(what: str, kind: Any, base: type) -> None:
    """Refuse a class that cannot be registered: only frozen dataclasses can be compiled for."""
    if not isinstance(kind, type) or not issubclass(kind, base):
        raise UsageError(f"{what} must be a class derived from {base.__name__}, not {shown(kind)}.")
    if not dataclasses.is_dataclass(kind) or not kind.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        raise UsageError(f"{what} must be a frozen dataclass: write @dataclass(frozen=True) above {kind.__name__}.")


def home_of(kind: type) -> str:
    """Return where a class was defined so that another process can load it: a module in a package, or a file."""
    if "." in kind.__module__:
        return kind.__module__
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return str(Path(file).resolve()) if file else kind.__module__


def all_homes() -> list[str]:
    """Return where the things in all registries were defined."""
    return list(dict.fromkeys(home for each in _ALL for home in each.homes))
