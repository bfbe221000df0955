"""The command line: parse, call one function."""

import ast
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from consmarl.errors import UsageError


@dataclass(frozen=True)
class Watch:
    """Play a world at random and write the episodes as a GIF."""

    env: str = "pgm-6ag"
    """World to play; `consmarl list` shows them."""
    out: Path = Path("watch.gif")
    """File to write."""
    episodes: int = 1
    """How many episodes to show."""
    seed: int = 0
    """Same seed, same episodes."""
    fps: int = 6
    """Steps shown per second."""
    view_of: int | None = 0
    """Agent whose view is outlined; None for nobody's."""
    set: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME=VALUE ...")] = ()
    """Parameters of the world, such as num_agents=8 grid=16,16."""

    def run(self) -> None:
        """Write the GIF and say where it is."""
        from consmarl.experiments.watch import watch

        written = watch(
            self.env,
            self.out,
            parameters=settings_from(self.set),
            episodes=self.episodes,
            seed=self.seed,
            fps=self.fps,
            view_of=self.view_of,
        )
        print(f"wrote {written}")


@dataclass(frozen=True)
class List:
    """Show the worlds and their parameters."""

    ids: bool = False
    """Print the ids only, one a line."""
    env: str | None = None
    """Show the parameters of this world."""

    def run(self) -> None:
        """Print the list."""
        from consmarl.experiments.listing import print_parameters, print_worlds

        if self.env is None:
            print_worlds(ids_only=self.ids)
        else:
            print_parameters(self.env)


def settings_from(pairs: tuple[str, ...]) -> dict[str, Any]:
    """Read NAME=VALUE pairs; a value is a Python literal, or else a word."""
    settings: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise UsageError(f"a setting is written NAME=VALUE, such as num_agents=8, not {pair!r}.")
        try:
            settings[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            settings[name] = value
    return settings


def main(arguments: list[str] | None = None) -> int:
    """Run one command; return the exit code."""
    command = tyro.extras.subcommand_cli_from_dict(
        {"list": List, "watch": Watch},
        prog="consmarl",
        description="Reinforcement-learning agents that learn together and teach each other.",
        args=arguments,
    )
    try:
        command.run()
    except UsageError as error:
        print(f"consmarl: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("consmarl: stopped.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
