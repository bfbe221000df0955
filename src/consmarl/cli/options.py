"""A command's options: names, types and descriptions, read from its class."""

import dataclasses
import enum
import inspect
import itertools
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import tyro

from consmarl.options import OptionField, Options
from consmarl.records import OneOf, descriptions


class Option(NamedTuple):
    """One option of a command."""

    setting: str  # as in the class: share.ask_gate
    hint: Any
    description: str
    default: Any
    is_positional: bool = False
    given_metavar: str | None = None
    names: tuple[str, ...] = ()  # valid values, if they are registered names

    @property
    def name(self) -> str:
        """The option as typed: --share.ask-gate, or the bare name if it is positional."""
        spelt = self.setting.replace("_", "-")
        return spelt if self.is_positional else f"--{spelt}"

    @property
    def negation(self) -> str | None:
        """The option that switches it off, if it is a switch."""
        return f"--{'no-' + self.name[2:]}" if self.hint is bool or self.is_open_switch else None

    @property
    def is_open_switch(self) -> bool:
        """Whether it is a switch whose default is None; tyro would expect a value for it."""
        return bool(self.hint == bool | None)

    @property
    def choices(self) -> list[str]:
        """The values that it accepts, if there are only a few."""
        if self.names:
            return list(self.names)
        kinds = typing.get_args(self.hint) or (self.hint,)
        found = [
            [each.value for each in kind] for kind in kinds if inspect.isclass(kind) and issubclass(kind, enum.Enum)
        ]
        return list(itertools.chain(*found))

    @property
    def metavar(self) -> str:
        """The placeholder for its value in the help."""
        if self.given_metavar is not None:
            return self.given_metavar
        kinds = [each for each in typing.get_args(self.hint) or (self.hint,) if each is not types.NoneType]
        several = " ..." if typing.get_origin(self.hint) is tuple else ""
        return {int: "NUMBER", float: "NUMBER", Path: "PATH", bool: "True|False"}.get(kinds[0], "WORD") + several


def options_of_command(kind: Any, prefix: str = "") -> Iterator[Option]:
    """Yield the options of a command's class, including those of nested dataclasses.

    The options of a nested dataclass are prefixed with its field's name, unless the field is annotated with name="".
    """
    texts = descriptions(kind)
    defaults = {each.name: _default(each) for each in dataclasses.fields(kind)}
    for name, hint in typing.get_type_hints(kind, include_extras=True).items():
        if name not in defaults:
            continue
        marks = getattr(hint, "__metadata__", ())
        inner = hint.__origin__ if marks else hint
        if tyro.conf.Suppress in marks:
            continue
        if isinstance(inner, type) and issubclass(inner, Options):
            for each in inner.known().values():
                yield Option(f"{prefix}{name}.{each.name}", each.bare_hint, _with_owners(each, inner), None)
        elif dataclasses.is_dataclass(inner):
            yield from options_of_command(inner, prefix if marks else f"{prefix}{name}.")
        else:
            metavar = next((each.metavar for each in marks if getattr(each, "metavar", None)), None)
            is_positional = tyro.conf.Positional in marks
            names = next((tuple(each.names) for each in marks if isinstance(each, OneOf)), ())
            yield Option(prefix + name, inner, texts.get(name, ""), defaults[name], is_positional, metavar, names)


def option_names(kind: Any) -> Iterator[str]:
    """Yield the options of a command's class as typed, including the --no-… forms of switches."""
    for option in options_of_command(kind):
        if not option.is_positional:
            yield option.name
        if option.negation is not None:
            yield option.negation


def _default(field: "dataclasses.Field[Any]") -> Any:
    return None if field.default is dataclasses.MISSING else field.default


def _with_owners(option: OptionField, group: type[Options]) -> str:
    """Return an option's description; if only some components in its group have the option, name them."""
    most = max(len(each.owners) for each in group.known().values())
    if len(option.owners) == most:
        return option.description
    return f"{option.description} Only {', '.join(option.owners)}.".strip()
