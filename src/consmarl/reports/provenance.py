"""How runs were made: versions, machines, commands, and one row per run."""

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from consmarl.files import VIEW
from consmarl.reports.faults import notes_on
from consmarl.reports.finals import Final, final
from consmarl.reports.runs import Group, Run


class RunRow(NamedTuple):
    """One run in the table of all runs."""

    world: str
    label: str
    seed: int
    state: str
    error: str | None
    episode: int
    episodes: int | None  # planned
    final: Final | None
    seconds: float | None
    path: str
    view: str | None  # URL of the page that replays its recorded episodes
    notes: list[str]  # on data in its files that could not be used


class Fact(NamedTuple):
    """A version, machine or commit that runs were made with, and the number of those runs."""

    text: str
    num_runs: int


def run_rows(runs: Sequence[Run], groups: Sequence[Group], near: Path) -> list[RunRow]:
    """Return a row per run; a run superseded by another with the same seed and settings is marked as repeated."""
    label_of = {id(run): group.label for group in groups for run in group.runs}
    counted = [run for group in groups for run in group.runs]
    repeated = [run for run in runs if id(run) not in label_of]
    return [
        *(_run_row(run, label_of[id(run)], run.state, near) for run in counted),
        *(_run_row(run, _label_of_its_kind(run, groups), f"{run.state}, repeated", near) for run in repeated),
    ]


def _run_row(run: Run, label: str, state: str, near: Path) -> RunRow:
    return RunRow(
        run.world, label, run.seed, state, run.failure, run.episode, run.config.get("episodes"), final(run),
        seconds_of(run), shown_path(run.path, near), link_to_view(run, near),
        [f"{note.file}: {note.text}" for note in notes_on(run)],
    )  # fmt: skip


def link_to_view(run: Run, near: Path) -> str | None:
    """Return the relative URL of the page that replays a run's recorded episodes, if there is one."""
    page = run.path / VIEW
    return quote(Path(os.path.relpath(page.resolve(), near.resolve())).as_posix()) if page.is_file() else None


def _label_of_its_kind(run: Run, groups: Sequence[Group]) -> str:
    same = (group.label for group in groups if group.runs[0].kind == run.kind and _name(group.runs[0]) == _name(run))
    return next(same, run.method)


def _name(run: Run) -> Any:
    return run.facts.get("label")


def shown_path(path: Path, near: Path) -> str:
    """Return a path relative to the page if it is below the page's directory, and unchanged otherwise."""
    here, there = near.resolve(), path.resolve()
    return str(there.relative_to(here)) if there.is_relative_to(here) else str(path)


def seconds_of(run: Run) -> float | None:
    """Return how long a run has taken so far, in seconds; None if that was not recorded."""
    written = [row["seconds"] for row in run.rows if "seconds" in row]
    seconds = run.result["seconds"] if run.result and "seconds" in run.result else sum(written) if written else math.nan
    return float(seconds) if math.isfinite(seconds) else None


def versions(runs: Sequence[Run]) -> list[Fact]:
    """Return the versions used in the sessions of these runs."""
    return _counted(
        [[" · ".join(f"{name} {version}" for name, version in (session.get("versions") or {}).items())
          for session in _sessions(run)] for run in runs]
    )  # fmt: skip


def machines(runs: Sequence[Run]) -> list[Fact]:
    """Return the machines used in the sessions of these runs."""
    return _counted([machines_of(run) for run in runs])


def machines_of(run: Run) -> list[str]:
    """Return the machines that a run used, without duplicates."""
    found = (_machine(session.get("machine") or {}) for session in _sessions(run))
    return list(dict.fromkeys(machine for machine in found if machine))


def commits(runs: Sequence[Run]) -> list[Fact]:
    """Return the known commits of the code used in the sessions of these runs."""
    return _counted([[_commit(session.get("git") or {}) for session in _sessions(run)] for run in runs])


def _commit(git: Mapping[str, Any]) -> str:
    commit = git.get("commit") or ""
    return f"{commit}, with uncommitted changes" if commit and git.get("is_dirty") else str(commit)


def started(runs: Sequence[Run]) -> list[str]:
    """Return when the first and the last session started, to the minute; one entry if they are equal."""
    times = sorted(session["started"] for run in runs for session in _sessions(run) if session.get("started"))
    ends = [time[:16].replace("T", " ") + (" UTC" if time.endswith(("+00:00", "Z")) else "") for time in times]
    return list(dict.fromkeys([*ends[:1], *ends[-1:]]))


def num_resumed(runs: Sequence[Run]) -> int:
    """Return how many runs were interrupted and resumed."""
    return sum(len(_sessions(run)) > 1 for run in runs)


def commands(runs: Sequence[Run]) -> list[str]:
    """Return the commands that started these runs, without duplicates."""
    found = (session.get("command") for run in runs for session in _sessions(run)[:1])
    return list(dict.fromkeys(command for command in found if command))


def _machine(machine: dict[str, Any]) -> str:
    parts = [machine.get("processor"), machine.get("system")]
    if "cores" in machine:
        parts.insert(1, f"{machine['cores']} core{'s' if machine['cores'] != 1 else ''}")
    memory = machine.get("memory_gigabytes")
    if isinstance(memory, int | float) and 0 < memory < 1e9:
        parts.insert(2, f"{memory:g} GB")
    return " · ".join(str(part) for part in parts if part)


def _counted(texts: list[list[str]]) -> list[Fact]:
    """Return each distinct text and the number of runs that have it."""
    every = [text for of_run in texts for text in dict.fromkeys(of_run) if text]
    return [Fact(text, every.count(text)) for text in dict.fromkeys(every)]


def _sessions(run: Run) -> list[dict[str, Any]]:
    return run.facts.get("sessions") or []
