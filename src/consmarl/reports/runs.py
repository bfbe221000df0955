"""Read runs from disk and group them; this needs only their JSON files, not the code that wrote them."""

import json
import math
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from consmarl.errors import UsageError
from consmarl.files import CONFIG, FACTS, FAILURE, METRICS, RESULT
from consmarl.metrics import Schema
from consmarl.metrics_rows import Fault
from consmarl.reports.across import Across
from consmarl.reports.older_runs import OF_ANY_WORLD
from consmarl.reports.reading import (
    GROUPS,
    read_config,
    read_facts,
    read_failure,
    read_metrics,
    read_result,
    read_schema,
)

METHOD_NAMES = {
    "iql": "IQL", "adhoc-td": "AdHocTD", "cons": "CONS", "i2q": "I2Q", "seql": "SEQL", "ga-comm": "GA-Comm",
    "maven": "MAVEN", "vdn": "VDN", "qmix": "QMIX",
}  # fmt: skip
SHARING_METHODS = ("adhoc-td", "cons")
BY_DEFAULT = "by_default"  # holds the names of settings that the user did not set
# Settings that affect what is recorded, not what is learned: runs that differ only in these are in one group.
HOUSEKEEPING = {
    "seed", "report_every", "evaluate_every", "evaluation_episodes", "final_episodes", "checkpoint_every",
    "keep_checkpoints", "record", "devices", "tensorboard",
}  # fmt: skip

Curve = tuple[NDArray[np.int64], NDArray[np.float64]]


@dataclass(frozen=True)
class Run:
    """One run: its configuration, provenance and results."""

    path: Path
    config: dict[str, Any]
    facts: dict[str, Any]
    rows: list[dict[str, Any]]
    result: dict[str, Any] | None  # None until it has finished
    failure: str | None
    faults: list[Fault] = field(default_factory=list)  # lines of metrics that were skipped
    not_finite: dict[str, int] = field(default_factory=dict)  # how often a metric is NaN or infinite
    schema: Schema = OF_ANY_WORLD  # declares its metrics

    @property
    def seed(self) -> int:
        """The run's seed."""
        return int(self.config.get("seed", 0))

    @property
    def world(self) -> str:
        """The environment's id, followed by its changed parameters."""
        changes = " ".join(self.config.get("set", ()))
        return f"{self.config.get('env', '?')} ({changes})" if changes else str(self.config.get("env", "?"))

    @property
    def method(self) -> str:
        """The method's display name, with any sharing mechanism added to it."""
        method = str(self.config.get("method", "?"))
        sharing = self.config.get("sharing")
        own = method if method in SHARING_METHODS else "none"
        name = METHOD_NAMES.get(method, method)
        if sharing in (None, own):
            return name
        return f"{name} without sharing" if sharing == "none" else f"{name} + {METHOD_NAMES.get(sharing, sharing)}"

    @property
    def state(self) -> str:
        """The state of the run: finished, failed or unfinished."""
        return "finished" if self.result is not None else "failed" if self.failure is not None else "unfinished"

    @property
    def episode(self) -> int:
        """Number of episodes played."""
        return int(self.rows[-1]["episode"]) if self.rows else 0

    def curve(self, name: str) -> Curve:
        """Return a metric's recorded values as (episodes, values); a list is averaged over agents."""
        points = [(row["episode"], np.mean(row[name])) for row in self.rows if row.get(name) is not None]
        episodes = np.array([episode for episode, _ in points], np.int64)
        return episodes, np.array([value for _, value in points], np.float64)

    def place(self, across: Across, episodes: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the run's x positions after these episodes, which must be those of rows; NaN where unrecorded."""
        known, places = self._places
        return places[across][np.searchsorted(known, episodes)]

    @cached_property
    def _places(self) -> tuple[NDArray[np.int64], dict[Across, NDArray[np.float64]]]:
        """The episodes of all rows and the x positions there; before the first episode, positions are 0."""
        episodes = [row["episode"] for row in self.rows]
        steps = [row.get("env_steps", math.nan if row["episode"] else 0.0) for row in self.rows]
        seconds = [row.get("seconds", math.nan if row["episode"] else 0.0) for row in self.rows]
        places = {Across.EPISODES: episodes, Across.STEPS: steps, Across.TIME: np.cumsum(seconds)}
        return np.array(episodes, np.int64), {each: np.array(of_rows, np.float64) for each, of_rows in places.items()}

    @cached_property
    def kind(self) -> dict[str, Any]:
        """The settings that runs of a group share: all but the seed and housekeeping."""
        return flat_settings({name: value for name, value in self.config.items() if name not in HOUSEKEEPING})

    @cached_property
    def by_default(self) -> frozenset[str]:
        """Names of settings that the user did not set; in older runs, those without a value."""
        open_settings = (name for name, value in flat_settings(self.config).items() if value is None)
        return frozenset(self.config.get(BY_DEFAULT) or open_settings)


def flat_settings(config: dict[str, Any]) -> dict[str, Any]:
    """Return settings with those of groups flattened: `share.NAME`, `learn.NAME`, `explore.NAME`."""
    plain = {name: value for name, value in config.items() if name not in (*GROUPS, BY_DEFAULT)}
    return plain | {f"{group}.{name}": value for group in GROUPS for name, value in (config.get(group) or {}).items()}


@dataclass(frozen=True)
class Group:
    """Runs that differ only in their seeds."""

    world: str
    label: str
    runs: tuple[Run, ...]  # by seed

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of the runs."""
        return tuple(run.seed for run in self.runs)

    @property
    def name(self) -> str:
        """Environment and label."""
        return f"{self.world} · {self.label}"


class Found(NamedTuple):
    """The runs found in directories."""

    runs: list[Run]
    left_out: list[str]  # one sentence per unreadable run


def read_run(path: Path) -> Run:
    """Read a run's directory; unusable rows of metrics are skipped and listed in `faults`."""
    if not (path / CONFIG).is_file():
        raise UsageError(f"{path} is not the directory of a run: it has no {CONFIG}.")
    config, facts = read_config(path / CONFIG), read_facts(path / FACTS)
    schema = read_schema(path / FACTS, facts, config)
    metrics = read_metrics(path / METRICS, schema.numbers)
    return Run(
        path=path,
        config=config,
        facts=facts,
        rows=metrics.rows,
        result=read_result(path / RESULT, schema.numbers),
        failure=read_failure(path / FAILURE),
        faults=metrics.faults,
        not_finite=metrics.not_finite,
        schema=schema,
    )


def read_runs(paths: Iterable[Path]) -> list[Run]:
    """Read all runs in these directories, at any depth and each once; an unreadable run is an error."""
    return [read_run(path) for path in _all_run_directories(paths)]


def find_runs(paths: Iterable[Path]) -> Found:
    """Read all runs in these directories like `read_runs`, but skip the unreadable ones."""
    found = Found([], [])
    for path in _all_run_directories(paths):
        try:
            found.runs.append(read_run(path))
        except UsageError as error:
            found.left_out.append(str(error))
    if not found.runs:
        raise UsageError(f"none of the runs can be read: {found.left_out[0]}")
    return found


def _all_run_directories(paths: Iterable[Path]) -> list[Path]:
    found: dict[Path, None] = {}
    for path in map(Path, paths):
        inside = list(_run_directories(path))
        if not path.is_dir():
            raise UsageError(f"there is no directory {path}.")
        if not inside:
            raise UsageError(f"{path} contains no run: a run's directory has a {CONFIG}.")
        found |= dict.fromkeys(inside)
    return list(found)


def grouped(runs: Iterable[Run]) -> list[Group]:
    """Group runs that differ only in their seeds, in order of first appearance.

    A group is named after its runs' label, or else after its method and the settings that distinguish it.
    """
    kinds: dict[str, list[Run]] = {}
    for run in runs:
        key = json.dumps([run.facts.get("label"), run.kind], sort_keys=True)
        kinds.setdefault(key, []).append(run)
    groups = list(kinds.values())
    return [
        Group(each[0].world, each[0].facts.get("label") or _label(each[0], groups), tuple(_once_a_seed(each)))
        for each in groups
    ]


def shown_run(group: Group) -> Run | None:
    """Return the run that represents its group: the finished one with the median final return."""
    finished = [(float(run.result.get("return", math.nan)), run) for run in group.runs if run.result is not None]
    known = sorted((each for each in finished if math.isfinite(each[0])), key=lambda each: (each[0], each[1].seed))
    return known[len(known) // 2][1] if known else None


def _once_a_seed(runs: list[Run]) -> list[Run]:
    """Return one run per seed, the one with the most episodes, ordered by seed."""
    furthest: dict[int, Run] = {}
    for run in runs:
        if run.seed not in furthest or run.episode > furthest[run.seed].episode:
            furthest[run.seed] = run
    return [furthest[seed] for seed in sorted(furthest)]


def _label(run: Run, groups: list[list[Run]]) -> str:
    rivals = [each[0] for each in groups if each[0].world == run.world and each[0].method == run.method]
    names = sorted({name for rival in rivals for name in rival.kind})
    differing = [name for name in names if len({json.dumps(rival.kind.get(name)) for rival in rivals}) > 1]
    # differing defaults only follow from other settings or versions, so they do not distinguish groups
    told_apart_by = [name for name in differing if any(name not in rival.by_default for rival in rivals)] or differing
    details = [f"{name.rpartition('.')[2]} {_shown(run.kind[name])}" for name in told_apart_by
               if run.kind.get(name) is not None]  # fmt: skip
    return ", ".join([run.method, *details])


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _run_directories(path: Path) -> Iterator[Path]:
    for directory, names, files in os.walk(path):
        if CONFIG in files:
            names.clear()  # runs are not nested
            yield Path(directory)
        names.sort()
