"""Registries of named components, such as environments and methods, to which users can add their own."""

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
    """Components of one kind by name, in the order in which they were added."""

    def __init__(self, kind: str) -> None:
        """Create an empty registry; messages call its entries `kind`."""
        self.kind = kind
        self._entries: dict[str, EntryT] = {}
        self._homes: dict[str, str] = {}
        _ALL.append(self)

    def add(self, name: str, entry: EntryT, home: str) -> None:
        """Add an entry defined in the module `home`; a name can be used only once.

        A module that is loaded again, as in notebooks, replaces the entries that it added before.
        """
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise UsageError(
                f"{shown(name)} cannot be the name of a {self.kind}: use lower-case letters, digits, '-', '_' and '.'."
            )
        if name in self._entries and self._homes[name] != home:
            raise UsageError(f"there is a {self.kind} {name!r} already, from {self._homes[name]}: choose another name.")
        self._entries[name], self._homes[name] = entry, home

    def find(self, name: str) -> EntryT:
        """Return an entry by name; the error for an unknown name suggests the closest ones."""
        if name not in self._entries:
            raise UsageError(f"there is no {self.kind} {shown(name)}: {nearest(str(name), self._entries)}")
        return self._entries[name]

    @property
    def homes(self) -> list[str]:
        """The modules or files that defined the entries, in the order in which they were added."""
        return list(self._homes.values())

    def __getitem__(self, name: str) -> EntryT:
        """Return an entry by name."""
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter(self._entries)

    __hash__ = object.__hash__  # a registry equals only itself
    __eq__ = object.__eq__

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self._entries)


def check_record(what: str, kind: Any, base: type) -> None:
    """Raise an error unless a class can be registered: it must be derived from `base` and a frozen dataclass.

    Instances of other classes cannot be static arguments of compiled programs.
    """
    if not isinstance(kind, type) or not issubclass(kind, base):
        raise UsageError(f"{what} must be a class derived from {base.__name__}, not {shown(kind)}.")
    if not dataclasses.is_dataclass(kind) or not kind.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        raise UsageError(f"{what} must be a frozen dataclass: write @dataclass(frozen=True) above {kind.__name__}.")


def home_of(kind: type) -> str:
    """Return where a class was defined, for another process to load it: a module in a package, or a file."""
    if "." in kind.__module__:
        return kind.__module__
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return str(Path(file).resolve()) if file else kind.__module__


def all_homes() -> list[str]:
    """Return the modules and files that defined the entries of all registries, without duplicates."""
    return list(dict.fromkeys(home for each in _ALL for home in each.homes))
