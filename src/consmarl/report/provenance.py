"""How runs were made: settings, versions, machines, commands, and one row for each run."""

import json
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from consmarl.files import VIEW
from consmarl.report.finals import Final, final
from consmarl.report.runs import Group, Run, flat_settings


class RunRow(NamedTuple):
    """One run in the table of all."""

    world: str
    label: str
    seed: int
    state: str
    error: str | None
    episode: int
    episodes: int | None  # that it was to play
    final: Final | None
    seconds: float | None
    path: str
    view: str | None  # address of the page that replays its recorded episodes


class Setting(NamedTuple):
    """A setting in which runs differ: its values, and who has which."""

    name: str
    values: list[tuple[str, list[str]]]  # (value, groups)


class Fact(NamedTuple):
    """Something that runs were made with, and how many of them."""

    text: str
    num_runs: int


def run_rows(runs: Sequence[Run], groups: Sequence[Group], near: Path) -> list[RunRow]:
    """Return a row for each run; a run that another one of the same seed and settings stands for is called repeated."""
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
    )  # fmt: skip


def link_to_view(run: Run, near: Path) -> str | None:
    """Return where the page that replays a run's recorded episodes is, as seen from this one, if there is one."""
    page = run.path / VIEW
    return quote(Path(os.path.relpath(page.resolve(), near.resolve())).as_posix()) if page.is_file() else None


def _label_of_its_kind(run: Run, groups: Sequence[Group]) -> str:
    same = (group.label for group in groups if group.runs[0].kind == run.kind and _name(group.runs[0]) == _name(run))
    return next(same, run.method)


def _name(run: Run) -> Any:
    return run.facts.get("label")


def shown_path(path: Path, near: Path) -> str:
    """Return a path as seen from the page where it lies below it, and else as it was given."""
    here, there = near.resolve(), path.resolve()
    return str(there.relative_to(here)) if there.is_relative_to(here) else str(path)


def seconds_of(run: Run) -> float | None:
    """Return how long a run took, or has taken so far; None where nothing was written down."""
    if run.result is not None and run.result.get("seconds") is not None:
        return float(run.result["seconds"])
    parts = [row["seconds"] for row in run.rows if "seconds" in row]
    return float(sum(parts)) if parts else None


def settings(groups: Sequence[Group]) -> tuple[dict[str, str], list[Setting]]:
    """Return the settings that all runs share, and those in which groups differ but for their world."""
    flat = [_flat(group.runs[0].config) for group in groups]
    common: dict[str, str] = {}
    differing: list[Setting] = []
    for name in dict.fromkeys(name for config in flat for name in config):
        holders: dict[str, list[Group]] = {}
        for group, config in zip(groups, flat, strict=True):
            holders.setdefault(_value(config.get(name)), []).append(group)
        if len(holders) == 1:
            common[name] = next(iter(holders))
        elif name not in ("env", "set"):  # which the world's name tells
            differing.append(Setting(name, [(value, _titles(those, groups)) for value, those in holders.items()]))
    return common, differing


def _titles(some: Sequence[Group], groups: Sequence[Group]) -> list[str]:
    """Name groups by their label alone where all that bear it are meant, in whatever world."""
    num_of = Counter(group.label for group in groups)
    num_here = Counter(group.label for group in some)
    titles = (group.label if num_here[group.label] == num_of[group.label] else group.name for group in some)
    return list(dict.fromkeys(titles))


def _flat(config: dict[str, Any]) -> dict[str, Any]:
    return flat_settings({name: value for name, value in config.items() if name != "seed"})


def _value(value: Any) -> str:
    if value is None or value == []:
        return "by default"
    if isinstance(value, list):
        return " ".join(map(str, value))
    return value if isinstance(value, str) else json.dumps(value)


def versions(runs: Sequence[Run]) -> list[Fact]:
    """Return the versions that sessions of these runs were made with."""
    return _counted(
        [[" · ".join(f"{name} {version}" for name, version in session.get("versions", {}).items())
          for session in _sessions(run)] for run in runs]
    )  # fmt: skip


def machines(runs: Sequence[Run]) -> list[Fact]:
    """Return the machines that sessions of these runs were made on."""
    return _counted([[_machine(session.get("machine", {})) for session in _sessions(run)] for run in runs])


def started(runs: Sequence[Run]) -> list[str]:
    """Return when the first and the last of the sessions began, to the minute; one time if they are the same."""
    times = sorted(session["started"] for run in runs for session in _sessions(run) if session.get("started"))
    ends = [time[:16].replace("T", " ") + (" UTC" if time.endswith(("+00:00", "Z")) else "") for time in times]
    return list(dict.fromkeys([*ends[:1], *ends[-1:]]))


def num_resumed(runs: Sequence[Run]) -> int:
    """Return how many runs were interrupted and went on."""
    return sum(len(_sessions(run)) > 1 for run in runs)


def commands(runs: Sequence[Run]) -> list[str]:
    """Return the commands that began these runs, each once."""
    found = (session.get("command") for run in runs for session in _sessions(run)[:1])
    return list(dict.fromkeys(command for command in found if command))


def _machine(machine: dict[str, Any]) -> str:
    parts = [machine.get("processor"), machine.get("system")]
    if "cores" in machine:
        parts.insert(1, f"{machine['cores']} core{'s' if machine['cores'] != 1 else ''}")
    if "memory_gigabytes" in machine:
        parts.insert(2, f"{machine['memory_gigabytes']:g} GB")
    return " · ".join(str(part) for part in parts if part)


def _counted(texts: list[list[str]]) -> list[Fact]:
    """Count each text once a run."""
    every = [text for of_run in texts for text in dict.fromkeys(of_run) if text]
    return [Fact(text, every.count(text)) for text in dict.fromkeys(every)]


def _sessions(run: Run) -> list[dict[str, Any]]:
    return run.facts.get("sessions") or []
