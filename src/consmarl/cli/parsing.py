"""From words to a command: what cannot be understood gets one sentence with the nearest right word."""

import contextlib
import dataclasses
import io
import re
import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import tyro
from rich.console import Console
from rich.table import Table

from consmarl.errors import UsageError, nearest

_CONFIG = (tyro.conf.EnumChoicesFromValues,)
_WRONG_CHOICE = re.compile(
    r"invalid choice '(?P<value>.*)' for argument '(?P<name>\S+)'. Expected one of \((?P<known>.*)\)"
)
_WRONG_NUMBER = re.compile(r"Error parsing (?P<name>\S+): (invalid literal|could not convert).*?(?P<value>'[^']*')$")

_NO_NUMBER = re.compile(
    r"Error parsing (?P<name>\S+): no type matching \{None\}\|(?P<kind>FLOAT|INT) could be instantiated from "
    r"\[(?P<value>'[^']*')\]"
)


def parse(name: str, command: Any, options: Sequence[str]) -> Any:
    """Return the command with its options; `command` is its class, or one of it that holds the defaults."""
    kind = command if isinstance(command, type) else type(command)
    default = {} if isinstance(command, type) else {"default": command}
    settings: dict[str, Any] = dict(prog=f"consmarl {name}", config=_CONFIG, **default)
    if not {"-h", "--help"} & set(options):
        _check_names(kind, options)
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            return tyro.cli(kind, args=list(options), **settings)
    except SystemExit as ended:
        if ended.code in (0, None):
            raise
        raise UsageError(_in_a_sentence(said.getvalue(), f"consmarl {name} --help")) from None


def print_help(commands: Mapping[str, Any]) -> None:
    """Print what commands there are."""
    console = Console()
    console.print("Reinforcement-learning agents that learn together and teach each other.\n", highlight=False)
    console.print("usage: consmarl COMMAND [OPTIONS]\n", markup=False, highlight=False)
    table = Table(box=None, pad_edge=False, show_header=False)
    for name, command in commands.items():
        table.add_row(name, command.summary)
    console.print(table)
    console.print("\nconsmarl COMMAND --help shows the options of one.", style="dim", highlight=False)


def _check_names(kind: type, options: Sequence[str]) -> None:
    """Refuse options that the command does not have: the nearest right one is more use than a list of all."""
    known = list(option_names(kind))
    for word in options:
        name = word.partition("=")[0]
        if word == "--":
            return
        if re.match(r"--?[A-Za-z]", name) and name.replace("_", "-") not in known:
            raise UsageError(f"there is no option {name}: {nearest(name.replace('_', '-'), known)}")


def option_names(kind: Any, prefix: str = "--") -> Iterator[str]:
    """Yield the options that tyro makes of a class; a part that is called "" has its options at the same level."""
    for name, hint in typing.get_type_hints(kind, include_extras=True).items():
        marks = getattr(hint, "__metadata__", ())
        inner = hint.__origin__ if marks else hint
        option = name.replace("_", "-")
        if dataclasses.is_dataclass(inner):
            yield from option_names(inner, prefix if marks else f"{prefix}{option}.")
        elif tyro.conf.Positional not in marks and tyro.conf.Suppress not in marks:
            yield prefix + option
            if inner is bool:
                yield f"{prefix}no-{option}"


def _in_a_sentence(box: str, help_command: str) -> str:
    """Put what tyro has drawn as a box into one sentence."""
    lines = [line.strip("│ ") for line in box.splitlines()]
    # what went wrong stands between the first two rules, drawn with whatever the terminal has
    rules = [index for index, line in enumerate(lines) if line.startswith(("╭─", "───", "---", "╰─"))]
    text = " ".join(lines[rules[0] + 1 : rules[1]]) if len(rules) > 1 else " ".join(box.split())
    if found := _WRONG_CHOICE.search(text):
        known = [each for each in re.findall(r"'([^']*)'", found["known"]) if each != "None"]
        return f"{found['name']} has no value {found['value']!r}: {nearest(found['value'], sorted(known))}"
    if found := _WRONG_NUMBER.search(text):
        kind = "a whole number" if "int()" in text else "a number"
        return f"{found['name']} takes {kind}, not {found['value']}."
    if found := _NO_NUMBER.search(text):  # of an option that may be left to its default
        kind = "a whole number" if found["kind"] == "INT" else "a number"
        return f"{found['name']} takes {kind}, not {found['value']}."
    return f"{text.rstrip('.')}: `{help_command}` shows what it takes."
