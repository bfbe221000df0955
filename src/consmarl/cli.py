"""The command line: parse, call one function."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

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
        from consmarl.experiments.settings import settings_from
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


@dataclass(frozen=True)
class Resume:
    """Go on with a run that was interrupted."""

    run_directory: Annotated[Path, tyro.conf.Positional]
    """Directory of the run."""

    def run(self) -> None:
        """Train to the end."""
        from consmarl.experiments.train import resume

        print(f"finished {resume(self.run_directory)}")


@dataclass(frozen=True)
class Evaluate:
    """Play a learned policy greedily and print what it reaches."""

    policy: Annotated[Path, tyro.conf.Positional]
    """A policy.safetensors, or the directory of a finished run."""
    episodes: int = 400
    """How many episodes to play."""
    seed: int = 0
    """Same seed, same episodes."""

    def run(self) -> None:
        """Print mean, standard error and counters."""
        from consmarl.experiments.evaluate import print_evaluation

        print_evaluation(self.policy, self.episodes, self.seed)


def train_command() -> type:
    """Return the command `train`: its options are those of `TrainConfig`, which takes a moment to load."""
    from consmarl.experiments.config import TrainConfig

    @dataclass(frozen=True)
    class Train:
        """Train a team; the run is a directory that `resume` goes on with."""

        config: Annotated[TrainConfig, tyro.conf.arg(name="")]
        out: Path | None = None
        """Directory of the run; by default runs/ and a name made of world, method, preset, exploration and seed."""

        def run(self) -> None:
            """Train to the end and say where the run is."""
            from consmarl.experiments.train import train

            print(f"finished {train(self.config, self.out or Path('runs') / self.config.name)}")

    return Train


@dataclass(frozen=True)
class _TrainLoadsLater:
    """Train a team; the run is a directory that `resume` goes on with."""

    def run(self) -> None:
        """Stand in the list of commands; `main` puts the real one in its place."""
        raise AssertionError("train is loaded before it runs")


@dataclass(frozen=True)
class Export:
    """Write the policy of a run, finished or not, as a safetensors file."""

    run_directory: Annotated[Path, tyro.conf.Positional]
    """Directory of the run."""
    out: Path = Path("policy.safetensors")
    """File to write."""

    def run(self) -> None:
        """Write the file and say where it is."""
        from consmarl.experiments.train import export

        print(f"wrote {export(self.run_directory, self.out)}")


def main(arguments: list[str] | None = None) -> int:
    """Run one command; return the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    commands: dict[str, type] = {"evaluate": Evaluate, "export": Export, "list": List, "resume": Resume, "watch": Watch}
    commands["train"] = train_command() if arguments[:1] == ["train"] else _TrainLoadsLater
    try:
        command = tyro.extras.subcommand_cli_from_dict(
            dict(sorted(commands.items())),
            prog="consmarl",
            description="Reinforcement-learning agents that learn together and teach each other.",
            args=arguments,
            config=(tyro.conf.EnumChoicesFromValues,),
        )
        command.run()
    except UsageError as error:
        print(f"consmarl: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("consmarl: stopped.", file=sys.stderr, flush=True)
        sys.stdout.flush()
        # compiled code may still be running in threads, which an orderly end of the interpreter can crash on
        os._exit(130)
    return 0


if __name__ == "__main__":
    sys.exit(main())
