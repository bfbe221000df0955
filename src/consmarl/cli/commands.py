"""The commands: their options, and the one function that each calls.

What a command needs is imported when it runs, so that `consmarl --help` stays quick.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import tyro

from consmarl.experiments.sweeps.request import Pairs, SweepRequest
from consmarl.reports.across import Across
from consmarl.sharing.options import Consult


@dataclass(frozen=True)
class List:
    """Show what there is: worlds, methods, presets and studies, with a line each."""

    ids: bool = False
    """Print the worlds' ids only, one a line."""
    env: str | None = None
    """Show the parameters of this world."""
    study: str | None = None
    """Show the runs of this study."""

    def run(self) -> None:
        """Print it."""
        from consmarl.experiments import listing

        if self.env is not None:
            listing.print_parameters(self.env)
        elif self.study is not None:
            listing.print_study(self.study)
        elif self.ids:
            listing.print_ids()
        else:
            listing.print_everything()


@dataclass(frozen=True)
class Watch:
    """Show a policy at work, or a world played at random, as a GIF or MP4."""

    policy: Annotated[Path | None, tyro.conf.Positional] = None
    """A policy.safetensors or the directory of a run; none plays at random."""
    env: str | None = None
    """World to play at random [pgm-6ag]; `consmarl list` shows them."""
    out: Path = Path("watch.gif")
    """File to write, ending in .gif or .mp4."""
    episodes: int = 1
    """How many episodes to show."""
    seed: int = 0
    """Same seed, same episodes."""
    fps: int = 6
    """Steps shown per second."""
    view_of: int | None = 0
    """Agent whose view is outlined; None for nobody's."""
    set: Pairs = ()
    """Parameters of the world, such as num_agents=8 grid=16,16."""
    consult: Consult | None = None
    """Let a policy's agents act on what the team thinks; by default each is on its own."""

    def run(self) -> None:
        """Write the file and say where it is."""
        from consmarl.experiments.configuration.pairs import settings_from
        from consmarl.experiments.watch import watch

        written = watch(
            "pgm-6ag" if self.env is None and self.policy is None else self.env,
            self.out,
            policy=self.policy,
            parameters=settings_from(self.set),
            episodes=self.episodes,
            seed=self.seed,
            fps=self.fps,
            view_of=self.view_of,
            consult=self.consult,
        )
        print(f"wrote {written}")


@dataclass(frozen=True)
class View:
    """See who taught whom what: a page that replays recorded episodes of a run, or of two side by side."""

    runs: Annotated[tuple[Path, ...], tyro.conf.Positional] = ()
    """The directory of a run, or those of two runs in one world to compare."""
    episode: tuple[int, ...] = ()
    """Numbers of recorded episodes to show; by default all there are (`consmarl train --record` records them)."""
    out: Path | None = None
    """Page to write; by default exchange.html in the (first) run's directory, where a report finds it."""
    staged: int = 0
    """Episodes to play besides, from the newest checkpoint, as training would go on: exploring and sharing."""
    greedy: int = 0
    """Episodes to play besides as an evaluation does: without exploring or sharing."""
    seed: int = 0
    """Of staged and greedy episodes: same seed, same starts, whichever the run."""
    without_sharing: bool = False
    """Beside a run's staged episodes, show the same ones in which nobody asks: what differs comes of what was said."""
    consult: Consult | None = None
    """Let agents consult each other in a run's greedy episodes, beside the same ones in which each is on its own."""

    def run(self) -> None:
        """Write the page and say where it is."""
        from consmarl.viewer.view import view

        written = view(
            self.runs,
            self.out,
            episodes=self.episode,
            staged=self.staged,
            greedy=self.greedy,
            seed=self.seed,
            without_sharing=self.without_sharing,
            consult=self.consult,
        )
        print(f"wrote {written}")


@dataclass(frozen=True, kw_only=True)
class FromFile:
    """What a user says of the environment that a file names: somebody else's is a program, which is not run unasked."""

    env: str | None = None
    """Environment of the run; needed to run somebody else's, such as pettingzoo:MODULE, which is a program."""
    trust: bool = False
    """Run whatever environment of somebody else's the file names."""

    @property
    def trusted(self) -> bool | str:
        """What may be run: `environments.trust.Trust`."""
        return self.env or self.trust


@dataclass(frozen=True)
class Resume(FromFile):
    """Go on with a run that was interrupted."""

    run_directory: Annotated[Path, tyro.conf.Positional]
    """Directory of the run."""

    def run(self) -> None:
        """Train to the end."""
        from consmarl.experiments.ending import ending
        from consmarl.experiments.train import resume

        print(ending(resume(self.run_directory, trust=self.trusted)))


@dataclass(frozen=True)
class Evaluate(FromFile):
    """Play a learned policy greedily and print what it reaches."""

    policy: Annotated[Path, tyro.conf.Positional]
    """A policy.safetensors, or the directory of a run; one that has not finished plays by its newest checkpoint."""
    episodes: int = 400
    """How many episodes to play."""
    seed: int = 0
    """Same seed, same episodes."""
    consult: Consult | None = None
    """Let agents act on what the team thinks, and count messages; by default each is on its own, as in the paper."""

    def run(self) -> None:
        """Print mean, standard error and counters."""
        from consmarl.experiments.evaluate import print_evaluation

        print_evaluation(self.policy, self.episodes, self.seed, consult=self.consult, trust=self.trusted)


@dataclass(frozen=True)
class Export(FromFile):
    """Write the policy of a run, finished or not, as a safetensors file."""

    run_directory: Annotated[Path, tyro.conf.Positional]
    """Directory of the run."""
    out: Path = Path("policy.safetensors")
    """File to write."""

    def run(self) -> None:
        """Write the file and say where it is."""
        from consmarl.experiments.train import export

        print(f"wrote {export(self.run_directory, self.out, trust=self.trusted)}")


@dataclass(frozen=True)
class Sweep(SweepRequest):
    """Run methods × worlds × seeds × options, or a study of the paper; what is finished is not run again."""

    def run(self) -> int:
        """Do what is missing; the exit code says whether all runs are finished."""
        from consmarl.experiments.sweeps.command import sweep

        return sweep(self)


@dataclass(frozen=True)
class Report:
    """Compare runs: one HTML page with curves, intervals and tables, and figures for a paper if wanted."""

    runs: Annotated[tuple[Path, ...], tyro.conf.Positional] = ()
    """Directories of runs, or directories that hold some at any depth; a study knows its own."""
    out: Path = Path("report.html")
    """Page to write."""
    study: str | None = None
    """A figure of the paper by name; `consmarl list` shows them."""
    scale: float = 1.0
    """The scale that the study was run with."""
    title: str | None = None
    """What to call it."""
    figures: Path | None = None
    """Directory for the same as PNG and PDF (needs consmarl[figures])."""
    csv: Path | None = None
    """Directory for every table, curve and row of metrics as CSV."""
    x: Across = Across.EPISODES
    """What curves are drawn over: episodes, environment steps or training time; on the page it can be changed."""
    marl_eval: Path | None = None
    """File for the JSON that marl-eval reads."""
    gifs: bool = True
    """Whether to show an episode of each method's policy."""
    views: bool = True
    """Whether to write and link a page that replays the recorded episodes of each run that has some."""

    def run(self) -> None:
        """Write the page, say where it is, and print what was reached."""
        from consmarl.cli.finals import print_finals
        from consmarl.reporting import report

        wanted = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "runs"}
        made = report(*self.runs, **wanted, tell=lambda sentence: print(sentence, flush=True))
        print_finals(made)
        for note in made.notes:
            print(note, file=sys.stderr)


def bench_command(options: Sequence[str]) -> Any:
    """Return the command `bench`, whose options are those of a run."""
    from consmarl.cli.config_file import config_in
    from consmarl.experiments.configuration.config import TrainConfig

    @dataclass(frozen=True)
    class Bench:
        """Measure how fast this machine is on one core, and how long a run would take."""

        settings: Annotated[TrainConfig, tyro.conf.arg(name="")]
        config: Path | None = None
        """A configuration to begin with, such as a run's config.json; other options depart from it."""
        trust: bool = False
        """Run somebody else's environment that the configuration names, a program; --env ID does the same."""

        def run(self) -> None:
            """Print the figures."""
            from consmarl.experiments.bench import print_bench

            print_bench(self.settings.trusted() if self.trust else self.settings)

    return Bench(config_in(options) or TrainConfig())


def train_command(options: Sequence[str]) -> Any:
    """Return the command `train`: its options are those of `TrainConfig`, with defaults from a file if one is named."""
    from consmarl.cli.config_file import config_in
    from consmarl.experiments.configuration.config import TrainConfig

    @dataclass(frozen=True)
    class Train:
        """Train a team; the run is a directory that `resume` goes on with.

        Where values come from: [P] the paper, [C] the authors' code, [ours]. The preset recommended has its own.
        """

        settings: Annotated[TrainConfig, tyro.conf.arg(name="")]
        out: Path | None = None
        """Directory of the run; by default runs/ and a name made of world, method, seed and changed settings."""
        config: Path | None = None
        """A configuration to begin with, such as another run's config.json; other options depart from it."""
        trust: bool = False
        """Run somebody else's environment that the configuration names, a program; --env ID does the same."""
        write_config: Path | None = None
        """Write the configuration to this file, and do not train."""

        def run(self) -> None:
            """Train to the end and say where the run is."""
            from consmarl.experiments.ending import ending
            from consmarl.experiments.train import train
            from consmarl.files import replacing

            if self.write_config is not None:
                with replacing(self.write_config) as temporary:
                    temporary.write_text(self.settings.to_json() + "\n", encoding="utf-8")
                print(f"wrote {self.write_config}")
                return
            settings = self.settings.trusted() if self.trust else self.settings
            print(ending(train(settings, self.out)))

    return Train(config_in(options) or TrainConfig())


class Command(NamedTuple):
    """A command in the list: what it is for, and how to get at its options."""

    summary: str
    kind: Callable[[Sequence[str]], Any]


def _known(kind: type) -> Command:
    return Command((kind.__doc__ or "").splitlines()[0], lambda _: kind)


COMMANDS: dict[str, Command] = {
    "list": _known(List),
    "train": Command("Train a team; the run is a directory that `resume` goes on with.", train_command),
    "resume": _known(Resume),
    "evaluate": _known(Evaluate),
    "watch": _known(Watch),
    "view": _known(View),
    "sweep": _known(Sweep),
    "report": _known(Report),
    "export": _known(Export),
    "bench": Command("Measure how fast this machine is, and how long a run would take.", bench_command),
}
