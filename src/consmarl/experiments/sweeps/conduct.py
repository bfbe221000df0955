"""Execute a sweep: give the missing runs to workers, show their progress, and report failures."""

import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from consmarl.environments.trust import passed_on
from consmarl.errors import UsageError
from consmarl.experiments.configuration.config import TrainConfig
from consmarl.experiments.directory import held, is_finished
from consmarl.experiments.sweeps.job import Job, Outcome
from consmarl.experiments.sweeps.plan import PlannedRun, check_against
from consmarl.experiments.sweeps.screen import SweepScreen
from consmarl.experiments.sweeps.views import RunView
from consmarl.files import RESULT
from consmarl.json_files import read_json_object_if_any
from consmarl.plugins import in_use_elsewhere

SECONDS_BETWEEN_LOOKS = 0.25


class Workers(Protocol):
    """Workers that execute runs, on this machine or a cluster."""

    description: str

    def has_room(self) -> bool:
        """Return whether another run can start."""

    def start(self, job: Job) -> None:
        """Start a run."""

    def ended(self) -> Iterator[tuple[Job, Outcome]]:
        """Yield the runs that have ended since the last call."""

    def stop(self) -> None:
        """Ask all runs to save their state and stop."""

    def close(self) -> None:
        """Release all resources."""


class SweptRun(NamedTuple):
    """A run of a sweep, and its outcome."""

    name: str
    path: Path
    config: TrainConfig
    state: str  # finished, failed, stopped or waiting
    error: str | None  # why it failed

    @property
    def result(self) -> dict[str, Any]:
        """The contents of its result.json; empty if it has not finished."""
        return read_json_object_if_any(self.path / RESULT) or {}


@dataclass(frozen=True)
class SweepResult:
    """The outcome of a sweep."""

    out: Path
    runs: tuple["SweptRun", ...]

    @property
    def states(self) -> "Counter[str]":
        """Number of runs in each state."""
        return Counter(run.state for run in self.runs)

    @property
    def errors(self) -> dict[str, str]:
        """Errors of failed runs, by name."""
        return {run.name: run.error for run in self.runs if run.error is not None}

    @property
    def is_complete(self) -> bool:
        """Whether every run is finished."""
        return set(self.states) <= {"finished"}


def conduct(runs: list[PlannedRun], out: Path, workers: Workers) -> SweepResult:
    """Execute the missing runs and return the outcome of all: finished runs are skipped, interrupted ones resumed."""
    check_against(out, runs)
    with held(out, "a sweep"):
        views = [RunView(run.name, out / run.name, run.config.episodes) for run in runs]
        for view in views:
            view.state = "finished" if is_finished(view.directory) else "waiting"
        waiting = [(run, view) for run, view in zip(runs, views, strict=True) if view.state == "waiting"]
        jobs = [
            Job(
                run.name,
                view.directory.resolve(),
                run.config.to_json(),
                run.label,
                trust=passed_on(run.config.env),
                plugins=in_use_elsewhere(),
            )
            for run, view in waiting
        ]
        with SweepScreen(views, f"{len(runs)} runs, {len(jobs)} to do, {workers.description}: {out}") as screen:
            _work_off(jobs, workers, {view.name: view for view in views}, screen)
    return SweepResult(
        out,
        tuple(
            SweptRun(run.name, view.directory, run.config, view.state, view.error)
            for run, view in zip(runs, views, strict=True)
        ),
    )


def _work_off(jobs: list[Job], workers: Workers, views: dict[str, RunView], screen: SweepScreen) -> None:
    """Keep the workers busy until all jobs have ended; after an interrupt, start no more and stop those running."""
    queue, num_running = list(jobs), 0
    with _first_interrupt() as interrupt:
        is_stopping = False
        while queue or num_running:
            if interrupt.is_set() and not is_stopping:
                is_stopping = True
                queue.clear()
                workers.stop()
                screen.say("stopping: runs are saving their state; interrupt again to stop at once.")
            while queue and workers.has_room():
                job = queue.pop(0)
                try:
                    workers.start(job)
                except UsageError as error:  # e.g. no disk space for its log; other runs may still work
                    views[job.name].end("failed", str(error))
                    screen.tell(views[job.name])
                    continue
                num_running += 1
                views[job.name].begin()
            for job, outcome in workers.ended():
                num_running -= 1
                views[job.name].end(outcome.state, outcome.error)
                screen.tell(views[job.name])
            screen.refresh()
            time.sleep(SECONDS_BETWEEN_LOOKS)


@contextmanager
def _first_interrupt() -> Iterator[threading.Event]:
    """Yield an event that the first Ctrl-C or SIGTERM sets; the next one has its usual effect."""
    noted = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield noted
        return

    def note(*_: object) -> None:
        noted.set()
        restore()

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield noted
    finally:
        restore()
