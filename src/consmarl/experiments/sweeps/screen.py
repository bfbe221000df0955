"""A sweep on the screen: a live table of all runs, or a line a run where there is no terminal."""

import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from consmarl.errors import UsageError
from consmarl.experiments.progress import duration
from consmarl.files import METRICS
from consmarl.json_files import parse_json_object

LINES_BESIDE = 6  # that the table leaves to title, summary and prompt
_STYLES = {"finished": "green", "failed": "bold red", "running": "bold", "stopped": "yellow", "waiting": "dim"}
_ORDER = ("running", "failed", "stopped", "finished", "waiting")


@dataclass
class RunView:
    """What can be seen of a run from outside: its state, and the last row that it wrote."""

    name: str
    directory: Path
    episodes: int
    state: str = "waiting"
    error: str | None = None
    row: dict[str, Any] = field(default_factory=dict)
    _first: tuple[int, float] | None = None  # since it runs here, after the chunk that compiles

    def begin(self) -> None:
        """Note that it runs."""
        self.state, self.error, self._first = "running", None, None

    def end(self, state: str, error: str | None) -> None:
        """Note that it has ended."""
        self.look()
        self.state, self.error = state, error

    def look(self) -> None:
        """Read the last row."""
        row = last_row(self.directory / METRICS)
        is_news = bool(row) and row.get("episode") != self.row.get("episode")
        self.row = row or self.row
        if is_news and self._first is None and "return" in row:
            self._first = (row["episode"], time.monotonic())

    @property
    def to_go(self) -> str:
        """How long it will take from here."""
        if self.state != "running" or self._first is None or self.row["episode"] <= self._first[0]:
            return ""
        episode, began = self._first
        seconds = (time.monotonic() - began) / (self.row["episode"] - episode)
        return duration(seconds * (self.episodes - self.row["episode"]))


def last_row(path: Path) -> dict[str, Any]:
    """Return the last whole row of a file of metrics without reading the rest."""
    if not path.is_file():
        return {}
    with path.open("rb") as file:
        file.seek(max(path.stat().st_size - 16_384, 0))
        lines = file.read().split(b"\n")
    for line in reversed(lines[:-1]):  # what follows the last end of line is not whole
        try:
            return parse_json_object(line, "a row")
        except UsageError:
            continue
    return {}


class SweepScreen:
    """The table of a sweep."""

    def __init__(self, views: list[RunView], title: str) -> None:
        """Take the runs to show."""
        self._views, self._title = views, title
        self._console = Console(stderr=True)
        self._live = Live(console=self._console, auto_refresh=False) if self._console.is_terminal else None
        self._next_look = 0.0

    def __enter__(self) -> "SweepScreen":
        """Show the table."""
        if self._live is not None:
            self._live.start()
        else:
            self.say(self._title)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the table as it is at the end."""
        self._next_look = 0.0
        self.refresh()
        if self._live is not None:
            self._live.stop()

    def say(self, sentence: str) -> None:
        """Print a line."""
        self._console.print(sentence, markup=False, highlight=False, soft_wrap=True)

    def tell(self, view: RunView) -> None:
        """Print what became of a run, where there is no table to show it."""
        if self._live is None:
            reached = f", return {view.row['return']:.2f}" if "return" in view.row else ""
            done = sum(each.state not in ("waiting", "running") for each in self._views)
            self.say(f"{view.name}: {view.state}{reached}{f': {view.error}' if view.error else ''}"
                     f"  ({done} of {len(self._views)})")  # fmt: skip

    def refresh(self) -> None:
        """Look at the runs, at most every other second, and draw."""
        if self._live is None or time.monotonic() < self._next_look:
            return
        self._next_look = time.monotonic() + 2.0
        for view in self._views:
            if view.state == "running" or not view.row:
                view.look()
        self._live.update(Group(Text(self._title, style="dim"), self.table(), self._summary()), refresh=True)

    def table(self) -> Table:
        """Return the table: what runs and what failed first, and no more than fits."""
        table = Table("run", "state", "episodes", "return", "to go", box=None, pad_edge=False)
        in_order = sorted(self._views, key=lambda view: _ORDER.index(view.state))
        room = max(self._console.height - LINES_BESIDE, 5)
        for view in in_order[:room]:
            reached = f"{view.row['return']:.2f}" if "return" in view.row else ""
            episodes = f"{view.row.get('episode', 0):,} of {view.episodes:,}"
            state = Text(view.state if view.error is None else f"{view.state}: {view.error}", _STYLES[view.state])
            table.add_row(view.name, state, episodes, reached, view.to_go)
        if len(in_order) > room:
            table.add_row(f"… and {len(in_order) - room} more")
        return table

    def _summary(self) -> Text:
        counts = Counter(view.state for view in self._views)
        return Text(", ".join(f"{counts[state]} {state}" for state in _ORDER if counts[state]))
