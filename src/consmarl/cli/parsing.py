"""Parse arguments into a command; an error is one sentence that suggests the closest valid name."""

import contextlib
import io
import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any

import tyro

from consmarl.cli.options import option_names, options_of_command
from consmarl.cli.words import RefusedOptions, registry
from consmarl.errors import UsageError, close_names, nearest
from consmarl.records import OneOf

_CONFIG = (tyro.conf.EnumChoicesFromValues,)
_WRONG_CHOICE = re.compile(
    r"invalid choice '(?P<value>.*)' for argument '(?P<name>\S+)'. Expected one of \((?P<known>.*)\)"
)
_WRONG_VALUE = re.compile(
    r"Error parsing (?P<name>\S+): (invalid literal for (?P<kind>a path|int)|could not convert)"
    r".*?(?P<value>['\"].*['\"])$"
)
# tyro's message for an option whose default is None
_NO_VALUE = re.compile(
    r"Error parsing (?P<name>\S+): no type matching \{None\}\|(?P<kind>FLOAT|INT|PATH) could be instantiated from "
    r"\[(?P<value>['\"].*?['\"])\]"
)
_KINDS = {"a path": "a path", "PATH": "a path", "int": "a whole number", "INT": "a whole number"}
_FEW_OPTIONS = 8
_MOST_LETTERS = 400  # of user input quoted in a message


def parse(name: str, command: Any, options: Sequence[str]) -> Any:
    """Return an instance of the command with these options; `command` is its class, or an instance with defaults."""
    kind = command if isinstance(command, type) else type(command)
    default = {} if isinstance(command, type) else {"default": command}
    settings: dict[str, Any] = dict(prog=f"consmarl {name}", config=_CONFIG, **default)
    _check_names(name, kind, options)
    _check_registered(kind, options)
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), registry():
            return tyro.cli(kind, args=list(_spelt_out(kind, options)), **settings)
    except RefusedOptions as refused:
        raise UsageError(str(refused)) from None
    except SystemExit:
        raise UsageError(_in_a_sentence(said.getvalue(), f"consmarl {name} --help")) from None


def _spelt_out(kind: type, options: Sequence[str]) -> Iterator[str]:
    """Yield the arguments with a value after each bare switch: --learn.double-q becomes --learn.double-q True."""
    switches = [option for option in options_of_command(kind) if option.is_open_switch]
    on, off = {each.name for each in switches}, {each.negation: each.name for each in switches}
    for word, following in itertools.zip_longest(options, options[1:]):
        name = word.replace("_", "-")
        if name in off:
            yield from (off[name], "False")
        elif name in on and (following is None or following.startswith("-")):
            yield from (name, "True")
        else:
            yield word


def _check_names(command: str, kind: type, options: Sequence[str]) -> None:
    """Raise an error for an option that the command does not have, and suggest the closest one."""
    known = list(option_names(kind))
    for word in options:
        name = word.partition("=")[0]
        if word == "--":
            return
        if re.match(r"--?[A-Za-z]", name) and name.replace("_", "-") not in known:
            raise UsageError(f"there is no option {name}: {_instead(command, name, known)}")


def _check_registered(kind: type, options: Sequence[str]) -> None:
    """Raise an error for a value that is not a registered name; the message names the option as typed."""
    takes = {option.name: option for option in options_of_command(kind) if option.names}
    for word, following in itertools.zip_longest(options, options[1:], fillvalue=""):
        name, equals, value = word.partition("=")
        option = takes.get(name.replace("_", "-"))
        if option is not None:
            OneOf(option.names).test(option.name, value if equals else following)


def _instead(command: str, name: str, known: Sequence[str]) -> str:
    """Return the end of the message about an unknown option: what to type instead."""
    parameter = name.lstrip("-").replace("-", "_")
    parameters = close_names(parameter, _parameters_of_worlds()) if "--set" in known else []
    if parameters and (parameter in parameters or not close_names(name, known)):
        return f"{parameters[0]} is a parameter of the environment: write --set {parameters[0]}=VALUE."
    help_instead = f"`consmarl {command} --help` lists the options."
    return nearest(name, known, otherwise=help_instead if len(known) > _FEW_OPTIONS else None)


def _parameters_of_worlds() -> list[str]:
    from consmarl.environments.registry import WORLDS

    return list(dict.fromkeys(name for entry in WORLDS.values() for name in entry.parameters))


def _in_a_sentence(box: str, help_command: str) -> str:
    """Return tyro's error message, which it prints in a box, as one sentence."""
    lines = [line.strip("│ ") for line in box.splitlines()]
    # the message is between the first two horizontal lines, whichever characters draw them
    rules = [index for index, line in enumerate(lines) if line.startswith(("╭─", "───", "---", "╰─"))]
    text = " ".join(lines[rules[0] + 1 : rules[1]]) if len(rules) > 1 else " ".join(box.split())
    if found := _WRONG_CHOICE.search(text):
        known = [each for each in re.findall(r"'([^']*)'", found["known"]) if each != "None"]
        return f"{found['name']} has no value {found['value']!r}: {nearest(found['value'], sorted(known))}"
    if found := _WRONG_VALUE.search(text) or _NO_VALUE.search(text):
        return f"{found['name']} takes {_KINDS.get(found['kind'], 'a number')}, not {_cut(found['value'])}."
    return f"{_cut(text).rstrip('.')}: `{help_command}` shows its options."


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_LETTERS else f"{text[:_MOST_LETTERS]}…"
