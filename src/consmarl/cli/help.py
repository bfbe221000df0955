"""Print the help of a command: its options, with their values for the configured run."""

import enum
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from consmarl.cli.options import Option, options_of_command

if TYPE_CHECKING:
    from consmarl.experiments.configuration.config import TrainConfig

HELP, HELP_ALL = ("-h", "--help"), "--help-all"

# prefixes of the settings in each group; everything else goes to the last one
GROUPS: Mapping[str, Sequence[str]] = {
    "what to run": ("method", "env", "set", "episodes", "seed", "preset", "sharing", "config"),
    "exploring": ("exploration", "epsilon_", "explore."),
    "learning": ("weights", "reward_of", "hidden_size", "optimiser", "learning_rate", "discount", "target_every",
                 "batch_episodes", "updates_per_episode", "replay_episodes", "warmup_steps", "mirror_episodes",
                 "coverage_", "bootstrap", "num_envs", "devices", "learn."),
    "sharing knowledge": ("share.",),
    "periods and files": (),
}  # fmt: skip


def print_commands(commands: Mapping[str, Any]) -> None:
    """Print the list of commands."""
    console = Console(highlight=False)
    console.print("Reinforcement-learning agents that learn together and teach each other.\n")
    console.print("usage: consmarl COMMAND [OPTIONS]\n", markup=False)
    table = Table(box=None, pad_edge=False, show_header=False)
    for name, command in commands.items():
        table.add_row(name, command.summary)
    table.add_row("help", "Show this list, or help on one command: `consmarl help train`.")
    console.print(table)
    console.print("\nconsmarl COMMAND --help shows the options of a command.", style="dim")
    console.print(
        "--plugin FILE, with any command, loads environments and methods from a Python file.", style="dim", markup=False
    )


def print_command(name: str, kind: type) -> None:
    """Print the help of a command that does not configure a run."""
    options = list(options_of_command(kind))
    _print_head(name, kind, [option for option in options if option.is_positional])
    _print_options("options", [option for option in options if not option.is_positional], lambda each: each.default)


def print_run_command(name: str, kind: type, config: "TrainConfig", *, shows_all: bool) -> None:
    """Print the help of a command that configures a run: the options that apply to this run, with their values."""
    from consmarl.cli.values import real_values

    values = real_values(config)

    def is_shown(option: Option) -> bool:
        return shows_all or config.has_setting(option.setting)

    options = [each for each in options_of_command(kind) if is_shown(each)]
    _print_head(name, kind, [])
    for group, there in _grouped(options).items():
        _print_options(group, there, lambda each: values.get(each.setting, each.default))
    chosen = f"--method {config.method} --preset {config.preset.value}"
    shown = "All options" if shows_all else "Options of this method"
    more = "" if shows_all else f" `consmarl {name} {HELP_ALL}` shows the others."
    Console(highlight=False).print(f"{shown}, with their values for {chosen} in {config.env}.{more}", markup=False)


def _grouped(options: Iterable[Option]) -> dict[str, list[Option]]:
    grouped: dict[str, list[Option]] = {group: [] for group in GROUPS}
    last = list(GROUPS)[-1]
    for option in sorted(options, key=lambda each: "." in each.setting):  # settings of a group come last
        fitting = [group for group, starts in GROUPS.items() if option.setting.startswith(tuple(starts))]
        grouped[fitting[-1] if fitting else last].append(option)
    return {group: there for group, there in grouped.items() if there}


def _print_head(name: str, kind: type, positional: Sequence[Option]) -> None:
    console = Console(highlight=False)
    words = [option.name.upper() + (" ..." if option.metavar.endswith("...") else "") for option in positional]
    console.print(f"usage: {' '.join(['consmarl', name, *words])} [OPTIONS]\n", markup=False)
    console.print(inspect.cleandoc(kind.__doc__ or ""), "", markup=False, sep="\n")
    if positional:
        table = _table()
        for word, option in zip(words, positional, strict=True):
            table.add_row(Text(word, style="bold"), Text(option.description))
        console.print(Padding(table, (0, 0, 1, 2)))


def _print_options(title: str, options: Iterable[Option], value_of: Callable[[Option], Any]) -> None:
    table = _table()
    for option in options:
        value = value_of(option)
        is_switch = option.negation is not None and value is not None
        written = f"({'yes' if value else 'no'})" if is_switch else _written(value)
        shown = Text.assemble((option.name, "bold"), " ", (written or option.metavar, "cyan" if written else "dim"))
        table.add_row(shown, Text(_described(option, value)))
    console = Console(highlight=False)
    console.print(Text(title, style="bold"))
    console.print(Padding(table, (0, 0, 1, 2)))


def _table() -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(overflow="fold", max_width=36)
    table.add_column(ratio=1)
    return table


def _described(option: Option, value: Any) -> str:
    """Return an option's description, followed by its choices and how to switch it off."""
    parts = [option.description]
    if option.choices:
        parts.append(f"One of {', '.join(option.choices)}.")
    if option.negation is not None and value:
        parts.append(f"{option.negation} switches it off.")
    return " ".join(parts)


def _written(value: Any) -> str:
    """Return a value as it is typed on the command line; an empty string for None and ()."""
    if value is None or value == ():
        return ""
    if isinstance(value, tuple):
        return " ".join(map(_written, value))
    if isinstance(value, float):
        return f"{value:g}"
    return str(value.value if isinstance(value, enum.Enum) else value)
