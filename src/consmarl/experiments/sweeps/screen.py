"""Show a sweep on the screen: a live table of all runs, or a line per finished run if there is no terminal."""

import time
from collections import Counter
from types import TracebackType

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from consmarl.experiments.progress import duration
from consmarl.experiments.sweeps.views import RunView, seconds_to_go

LINES_BESIDE = 6  # of the screen, left for title, summary and prompt
_STYLES = {
    "running": "bold", "compiling": "cyan", "failed": "bold red", "stopped": "yellow", "finished": "green",
    "waiting": "dim",
}  # fmt: skip
_ORDER = tuple(_STYLES)


class SweepScreen:
    """The progress of a sweep on the screen."""

    def __init__(self, views: list[RunView], title: str) -> None:
        """Set the runs to show."""
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
        """Leave the final table on the screen."""
        self._next_look = 0.0
        self.refresh()
        if self._live is not None:
            self._live.stop()

    def say(self, sentence: str) -> None:
        """Print a line."""
        self._console.print(sentence, markup=False, highlight=False, soft_wrap=True)

    def tell(self, view: RunView) -> None:
        """Print the outcome of a run, unless the live table shows it."""
        if self._live is None:
            reached = f", return {view.row['return']:.2f}" if "return" in view.row else ""
            done = sum(not each.is_ahead for each in self._views)
            for each in self._views:  # nothing else does without a table
                if each.state == "running":
                    each.look()
            self.say(f"{view.name}: {view.state}{reached}{f': {view.error}' if view.error else ''}"
                     f"  ({done} of {len(self._views)}{self._to_go(num_free=1)})")  # fmt: skip

    def refresh(self) -> None:
        """Read the runs' progress and redraw the table, at most every two seconds."""
        if self._live is None or time.monotonic() < self._next_look:
            return
        self._next_look = time.monotonic() + 2.0
        for view in self._views:
            if view.state == "running" or not view.row:
                view.look()
        self._live.update(Group(Text(self._title, style="dim"), self.table(), self._summary()), refresh=True)

    def table(self) -> Table:
        """Return the table, with running and failed runs first, cut to the height of the screen."""
        table = Table("run", "state", "episodes", "return", "remaining", box=None, pad_edge=False)
        in_order = sorted(self._views, key=lambda view: _ORDER.index(view.shown_state))
        room = max(self._console.height - LINES_BESIDE, 5)
        for view in in_order[:room]:
            reached = f"{view.row['return']:.2f}" if "return" in view.row else ""
            episodes = f"{view.row.get('episode', 0):,} of {view.episodes:,}"
            state = view.shown_state
            shown = Text(state if view.error is None else f"{state}: {view.error}", _STYLES[state])
            speed = view.seconds_per_episode if state == "running" else None
            table.add_row(
                view.name, shown, episodes, reached, "" if speed is None else duration(view.seconds_left(speed))
            )
        if len(in_order) > room:
            table.add_row(f"… and {len(in_order) - room} more")
        return table

    def _summary(self) -> Text:
        counts = Counter(view.shown_state for view in self._views)
        return Text(", ".join(f"{counts[state]} {state}" for state in _ORDER if counts[state]) + self._to_go())

    def _to_go(self, num_free: int = 0) -> str:
        """Return the estimated remaining time of the whole sweep as text; an empty string if it is unknown.

        `num_free` runs have ended whose successors have not started yet.
        """
        seconds = seconds_to_go(self._views, num_free) if any(view.is_ahead for view in self._views) else None
        return "" if seconds is None else f"; about {duration(seconds)} to go"
