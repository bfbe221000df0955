"""Distinguish ids named by files from ids named by users: only the latter may be imported.

An id read from a file is a `NamedByFile` and stays one wherever it is passed. `foreign_world`, the only function that
imports the module an id names, refuses it. A command that reads files is therefore safe by default; to import, it must
pass on the user's consent as `trust`.
"""

import shlex
from collections.abc import Collection
from typing import Any

from consmarl.errors import UsageError

Trust = bool | str
"""A user's consent to a file's environment: True allows any, an id only that one, False and "" none."""

MOST_SHOWN = 200  # characters of an id in a message


class NamedByFile(str):
    """A name from a file that the user has not confirmed; otherwise it behaves like any string."""

    file: str
    option: str

    def __new__(cls, name: str, file: str = "a file", option: str = "--env") -> "NamedByFile":
        """Mark a name; `option` is the command-line option with which a user can confirm it."""
        marked = super().__new__(cls, name)
        marked.file, marked.option = file, option
        return marked


def confirmed(name: str, trust: Trust, file: str) -> str:
    """Return the id that a file names: as a plain string if the user has agreed, else marked."""
    if isinstance(trust, str) and trust and trust != name:
        raise UsageError(f"{file} names the environment {_shown(name)}, and not {_shown(trust)}.")
    return str(name) if trust else NamedByFile(name, file)


def marked(value: Any, file: str, option: str, but_for: Collection[str] = ()) -> Any:
    """Return a JSON value with all its strings marked, except those in `but_for`, which the user has named as well."""
    if isinstance(value, str):
        return value if value in but_for else NamedByFile(value, file, option)
    if isinstance(value, list):
        return [marked(each, file, option, but_for) for each in value]
    if isinstance(value, dict):
        return {name: marked(each, file, option, but_for) for name, each in value.items()}
    return value


def passed_on(id: str) -> str:
    """Return the consent to pass to a child process that gets a configuration with this id."""
    return "" if isinstance(id, NamedByFile) else str(id)


def refuse_unconfirmed(id: str) -> None:
    """Refuse to use an environment that only a file has named."""
    if isinstance(id, NamedByFile):
        raise UsageError(
            f"{id.file} names the environment {_shown(id)}, which is a program that would run here with all "
            f"your permissions: if you know it and trust it, add {id.option} {_shown(id)} or --trust "
            "(in Python, trust=True)."
        )


def _shown(id: str) -> str:
    """Return an id quoted for a shell, whatever it contains: users copy messages into a shell."""
    return shlex.quote(id) if id.isprintable() and len(id) <= MOST_SHOWN else f"{id[:MOST_SHOWN]!r}…"
