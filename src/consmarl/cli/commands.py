"""The commands: their options, and the single function that each of them calls.

Each command imports what it needs when it runs, so that `consmarl --help` stays fast.
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
    """List environments, methods, presets and studies, one per line."""

    ids: bool = False
    """Print only the environment ids, one per line."""
    env: str | None = None
    """Show the parameters of this environment."""
    study: str | None = None
    """Show the runs of this study."""

    def run(self) -> None:
        """Print the list."""
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
    """Show a policy playing, or an environment played at random, as a GIF or MP4."""

    policy: Annotated[Path | None, tyro.conf.Positional] = None
    """A policy.safetensors or a run's directory; without one, agents act at random."""
    env: str | None = None
    """Environment to play at random [pgm-6ag]; `consmarl list` shows them. With a policy, the third-party environment
    that it was learned in, which is a program and has to be named."""
    out: Path = Path("watch.gif")
    """File to write (.gif or .mp4)."""
    episodes: int = 1
    """Number of episodes to show."""
    seed: int = 0
    """Random seed; the same seed gives the same episodes."""
    fps: int = 6
    """Environment steps per second."""
    view_of: int | None = 0
    """Agent whose view is outlined; None outlines no view."""
    set: Pairs = ()
    """Parameters of the environment, such as num_agents=8 grid=16,16."""
    consult: Consult | None = None
    """Let a policy's agents consult each other; by default each acts on its own."""
    trust: bool = False
    """Run the third-party environment that the policy names, whichever it is."""

    def run(self) -> None:
        """Write the file and print its path."""
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
            trust=self.trust,
        )
        print(f"wrote {written}")


@dataclass(frozen=True)
class View:
    """See who taught whom what: a page that replays recorded episodes of one run, or of two side by side."""

    runs: Annotated[tuple[Path, ...], tyro.conf.Positional] = ()
    """The run's directory, or the directories of two runs in the same environment to compare."""
    episode: tuple[int, ...] = ()
    """Recorded episodes to show, by number; by default all of them (`consmarl train --record` records them)."""
    out: Path | None = None
    """Page to write; by default exchange.html in the (first) run's directory, where a report finds it."""
    staged: int = 0
    """Additional episodes to play from the newest checkpoint the way training would: exploring and sharing."""
    greedy: int = 0
    """Additional episodes to play the way an evaluation does: without exploring or sharing."""
    seed: int = 0
    """Seed of the staged and greedy episodes; the same seed gives every run the same starts."""
    without_sharing: bool = False
    """Show each staged episode next to a copy in which nobody asks, so that any difference is due to the advice."""
    consult: Consult | None = None
    """Let agents consult each other in greedy episodes, shown next to the same episodes played without consulting."""
    trust: bool = False
    """Run the third-party environment that the run names, so that it draws recorded episodes."""
    dimension: int = 0
    """Dimension of the actions to show, counted from 0, if they have several."""

    def run(self) -> None:
        """Write the page and print its path."""
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
            trust=self.trust,
            dimension=self.dimension,
        )
        print(f"wrote {written}")


@dataclass(frozen=True, kw_only=True)
class FromFile:
    """The user's consent to run the environment that a file names, required for third-party ones: they are programs."""

    env: str | None = None
    """Environment of the run; required for third-party ones such as pettingzoo:MODULE, which are programs."""
    trust: bool = False
    """Run the third-party environment that the file names, whichever it is."""

    @property
    def trusted(self) -> bool | str:
        """The third-party environments that may be run; see `environments.trust.Trust`."""
        return self.env or self.trust


@dataclass(frozen=True)
class Resume(FromFile):
    """Continue a run that was interrupted."""

    run_directory: Annotated[Path, tyro.conf.Positional]
    """Directory of the run."""

    def run(self) -> None:
        """Train until the run is complete."""
        from consmarl.experiments.ending import ending
        from consmarl.experiments.train import resume

        print(ending(resume(self.run_directory, trust=self.trusted)))


@dataclass(frozen=True)
class Evaluate(FromFile):
    """Play a learned policy greedily and print its returns."""

    policy: Annotated[Path, tyro.conf.Positional]
    """A policy.safetensors or a run's directory; an unfinished run plays with its newest checkpoint."""
    episodes: int = 400
    """Number of episodes to play."""
    seed: int = 0
    """Random seed; the same seed gives the same episodes."""
    consult: Consult | None = None
    """Let agents consult each other, and count the messages; by default each acts on its own, as in the paper."""

    def run(self) -> None:
        """Print the mean return, its standard error and the counters."""
        from consmarl.experiments.evaluate import print_evaluation

        print_evaluation(self.policy, self.episodes, self.seed, consult=self.consult, trust=self.trusted)


@dataclass(frozen=True)
class Export(FromFile):
    """Write the policy of a run as a safetensors file; the run need not be finished."""

    run_directory: Annotated[Path, tyro.conf.Positional]
    """Directory of the run."""
    out: Path = Path("policy.safetensors")
    """File to write."""

    def run(self) -> None:
        """Write the file and print its path."""
        from consmarl.experiments.train import export

        print(f"wrote {export(self.run_directory, self.out, trust=self.trusted)}")


@dataclass(frozen=True)
class Sweep(SweepRequest):
    """Run methods × environments × seeds × options, or a study of the paper; finished runs are not repeated."""

    def run(self) -> int:
        """Run the missing runs and return the exit code, which says whether all of them are finished."""
        from consmarl.experiments.sweeps.command import sweep

        return sweep(self)


@dataclass(frozen=True)
class Report:
    """Compare runs: one HTML page with curves, intervals and tables, and optionally figures for a paper."""

    runs: Annotated[tuple[Path, ...], tyro.conf.Positional] = ()
    """Directories of runs, or directories that contain runs at any depth; not needed with --study."""
    out: Path = Path("report.html")
    """Page to write."""
    study: str | None = None
    """A figure of the paper, by name; `consmarl list` shows them."""
    scale: float = 1.0
    """The scale that the study was run with."""
    title: str | None = None
    """Title of the report."""
    figures: Path | None = None
    """Directory for the figures as PNG and PDF (requires consmarl[figures])."""
    csv: Path | None = None
    """Directory for every table, curve and row of metrics, as CSV."""
    x: Across = Across.EPISODES
    """The x-axis of the curves: episodes, environment steps or training time; it can also be changed on the page."""
    marl_eval: Path | None = None
    """JSON file to write for marl-eval."""
    gifs: bool = True
    """Whether to show an episode played by each method's policy."""
    views: bool = True
    """Whether to write and link a replay page for each run that has recorded episodes."""

    def run(self) -> None:
        """Write the page, print its path, and print the final returns."""
        from consmarl.cli.finals import print_finals
        from consmarl.reporting import report

        wanted = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "runs"}
        made = report(*self.runs, **wanted, tell=lambda sentence: print(sentence, flush=True))
        print_finals(made)
        for note in made.notes:
            print(note, file=sys.stderr)


def bench_command(options: Sequence[str]) -> Any:
    """Return the command `bench`, which takes the options of `TrainConfig`; --config FILE supplies their defaults."""
    from consmarl.cli.config_file import config_in
    from consmarl.experiments.configuration.config import TrainConfig

    @dataclass(frozen=True)
    class Bench:
        """Measure how fast this machine trains on one core, and estimate how long a run takes."""

        settings: Annotated[TrainConfig, tyro.conf.arg(name="")]
        config: Path | None = None
        """Configuration to start from, such as a run's config.json; other options override it."""
        trust: bool = False
        """Run the third-party environment that the configuration names, which is a program; --env ID does the same."""

        def run(self) -> None:
            """Print the measurements."""
            from consmarl.experiments.bench import print_bench

            print_bench(self.settings.trusted() if self.trust else self.settings)

    return Bench(config_in(options) or TrainConfig())


def train_command(options: Sequence[str]) -> Any:
    """Return the command `train`, which takes the options of `TrainConfig`; --config FILE supplies their defaults."""
    from consmarl.cli.config_file import config_in
    from consmarl.experiments.configuration.config import TrainConfig

    @dataclass(frozen=True)
    class Train:
        """Train a team; `resume` continues an interrupted run from its directory.

        Sources of default values: [P] the paper, [C] the authors' code, [ours]. The preset `recommended` has its own.
        """

        settings: Annotated[TrainConfig, tyro.conf.arg(name="")]
        out: Path | None = None
        """Directory of the run; by default runs/ plus a name made of environment, method, seed and changed settings."""
        config: Path | None = None
        """Configuration to start from, such as another run's config.json; other options override it."""
        trust: bool = False
        """Run the third-party environment that the configuration names, which is a program; --env ID does the same."""
        write_config: Path | None = None
        """Write the configuration to this file and exit without training."""

        def run(self) -> None:
            """Train until the run is complete and print its directory."""
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
    """An entry in the list of commands: its summary, and a function from arguments to its class or an instance."""

    summary: str
    kind: Callable[[Sequence[str]], Any]


def _known(kind: type) -> Command:
    return Command((kind.__doc__ or "").splitlines()[0], lambda _: kind)


COMMANDS: dict[str, Command] = {
    "list": _known(List),
    "train": Command("Train a team; `resume` continues an interrupted run from its directory.", train_command),
    "resume": _known(Resume),
    "evaluate": _known(Evaluate),
    "watch": _known(Watch),
    "view": _known(View),
    "sweep": _known(Sweep),
    "report": _known(Report),
    "export": _known(Export),
    "bench": Command("Measure how fast this machine trains, and estimate how long a run takes.", bench_command),
}
