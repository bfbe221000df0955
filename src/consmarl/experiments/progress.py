"""A run's progress on the screen: a bar with the remaining time, or occasional lines if there is no terminal."""

import time
from collections import deque
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

SECONDS_BETWEEN_LINES = 30
WINDOW_CHUNKS = 30  # speed is averaged over the last ones, since it changes when learning and sharing start


class RunProgress:
    """The progress of one run; speed and remaining time ignore the first chunk, which mostly compiles."""

    def __init__(self, name: str, episodes: int, episode: int) -> None:
        """Set up the progress of a run of `episodes` episodes, `episode` of which have been played."""
        self._console = Console(stderr=True)
        self._name, self._episodes = name, episodes
        self._marks: deque[tuple[int, int, float]] = deque(maxlen=WINDOW_CHUNKS)  # episode, env steps, time
        self._last_line = time.monotonic()
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("episodes  {task.fields[news]}"),
        )
        self._bar = Progress(*columns, console=self._console, disable=not self._console.is_terminal)
        self._task = self._bar.add_task(name, total=episodes, completed=episode, news="compiling")

    def __enter__(self) -> "RunProgress":
        """Show the bar."""
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the bar on the screen."""
        self._bar.stop()

    def advance(self, episode: int, row: dict[str, Any]) -> None:
        """Show the progress after an episode, given its row of metrics."""
        now = time.monotonic()
        self._marks.append((episode, row["env_steps"], now))
        news = f"return {row['return']:.2f}" + self._speed()
        self._bar.update(self._task, completed=episode, news=news)
        is_last = episode >= self._episodes
        if not self._console.is_terminal and (is_last or now - self._last_line > SECONDS_BETWEEN_LINES):
            self._last_line = now
            print(f"{self._name}: {episode} of {self._episodes} episodes  {news}", file=self._console.file, flush=True)

    def _speed(self) -> str:
        (first, first_steps, began), (last, last_steps, now) = self._marks[0], self._marks[-1]
        if first == last:
            return ""
        seconds_left = round((self._episodes - last) * (now - began) / (last - first))
        steps_a_second = (last_steps - first_steps) / (now - began)
        return f"  {steps_a_second:,.0f} steps/s  {duration(seconds_left)} to go"


def duration(seconds: float) -> str:
    """Return a duration as text: 0:42, or 1:02:42."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
