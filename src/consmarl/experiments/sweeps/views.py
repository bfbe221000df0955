"""The progress of a sweep's runs, read from their files, and estimates of the remaining time."""

import heapq
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from consmarl.errors import UsageError
from consmarl.files import LOG, METRICS, RESULT
from consmarl.json_files import read_json_object_if_any
from consmarl.metrics_rows import last_row


class Mark(NamedTuple):
    """The episode of a row of metrics, and the time when it was first seen."""

    episode: int
    time: float


@dataclass
class RunView:
    """A run of a sweep: its state and the last row of metrics in its directory."""

    name: str
    directory: Path
    episodes: int
    state: str = "waiting"
    error: str | None = None
    row: dict[str, Any] = field(default_factory=dict)
    _first: Mark | None = None  # first row since the run was started or resumed
    _last: Mark | None = None

    def begin(self) -> None:
        """Mark the run as running."""
        self.state, self.error, self._first, self._last = "running", None, None, None

    def end(self, state: str, error: str | None) -> None:
        """Mark the run as ended."""
        self.look()
        self.state, self.error = state, error

    def look(self) -> None:
        """Read the last row of metrics."""
        row = last_row(self.directory / METRICS)
        is_news = bool(row) and row.get("episode") != self.row.get("episode")
        self.row = row or self.row
        if is_news and "return" in row:
            self._last = Mark(row["episode"], time.monotonic())
            self._first = self._first or self._last

    @property
    def shown_state(self) -> str:
        """The state to show: a started run is compiling until its first row, or waiting while in a cluster's queue."""
        if self.state != "running" or self._first is not None:
            return self.state
        return "compiling" if (self.directory / LOG).exists() else "waiting"

    @property
    def is_ahead(self) -> bool:
        """Whether the run is waiting or running."""
        return self.state in ("waiting", "running")

    @property
    def episodes_left(self) -> int:
        """Number of episodes left to play."""
        return max(self.episodes - int(self.row.get("episode", 0)), 0)

    @property
    def seconds_per_episode(self) -> float | None:
        """Seconds per episode, if known."""
        if self._first is not None and self._last is not None and self._last.episode > self._first.episode:
            return (self._last.time - self._first.time) / (self._last.episode - self._first.episode)
        if self.state == "finished":
            seconds = _json_in(self.directory / RESULT).get("seconds")
            return seconds / self.episodes if isinstance(seconds, int | float) else None
        return None

    def seconds_left(self, seconds_per_episode: float) -> float:
        """Return the remaining time at this speed."""
        since = time.monotonic() - self._last.time if self._last is not None and self.state == "running" else 0.0
        return max(seconds_per_episode * self.episodes_left - since, 0.0)


def seconds_to_go(views: Sequence[RunView], num_free: int = 0) -> float | None:
    """Return the estimated seconds until a sweep ends; None if no speed is known yet.

    Runs of unknown speed are assumed to be as fast as others of their kind. As many runs are assumed to stay under way
    until the end as are now, plus `num_free` that are about to start.
    """
    speeds: dict[str, list[float]] = {}
    for view in views:
        if (speed := view.seconds_per_episode) is not None:
            speeds.setdefault(_kind(view), []).append(speed)
    if not speeds:
        return None
    overall = fmean(fmean(each) for each in speeds.values())

    def left(view: RunView) -> float:
        own = view.seconds_per_episode
        return view.seconds_left(own if own is not None else fmean(speeds.get(_kind(view), [overall])))

    ahead = [view for view in views if view.is_ahead]
    under_way = [left(view) for view in ahead if view.shown_state in ("running", "compiling")]
    return makespan([*under_way, *[0.0] * num_free], [left(view) for view in ahead if view.shown_state == "waiting"])


def makespan(under_way: Iterable[float], queue: Iterable[float]) -> float:
    """Return the seconds until the last job ends, if each queued job starts as soon as an earlier one ends."""
    ends = list(under_way) or [0.0]
    heapq.heapify(ends)
    for seconds in queue:
        heapq.heapreplace(ends, ends[0] + seconds)
    return max(ends)


def _json_in(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file; an empty dict if the file is missing or damaged."""
    try:
        return read_json_object_if_any(path) or {}
    except UsageError:
        return {}


def _kind(view: RunView) -> str:
    """Return the part of a run's name that is the same for all seeds."""
    return view.name.rpartition("/")[0]
