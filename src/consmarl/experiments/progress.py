"""How a run shows itself on the screen: a bar with a time to go, or a line now and then where there is no terminal."""

import time
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

SECONDS_BETWEEN_LINES = 30


class RunProgress:
    """The progress of one run; the time to go leaves the first chunk out, which mostly compiles."""

    def __init__(self, name: str, episodes: int, episode: int) -> None:
        """Begin at an episode."""
        self._console = Console(stderr=True)
        self._name, self._episodes = name, episodes
        self._measured_from: tuple[int, float] | None = None
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
        """Leave the bar as it is."""
        self._bar.stop()

    def advance(self, episode: int, row: dict[str, Any]) -> None:
        """Show a new row."""
        now = time.monotonic()
        news = f"return {row['return']:.2f}"
        if self._measured_from is None:
            self._measured_from = (episode, now)
        else:
            first_episode, first_time = self._measured_from
            seconds_each = (now - first_time) / (episode - first_episode)
            seconds_left = round((self._episodes - episode) * seconds_each)
            news += f"  {1 / seconds_each:.0f}/s  {seconds_left // 60}:{seconds_left % 60:02d} to go"
        self._bar.update(self._task, completed=episode, news=news)
        is_last = episode >= self._episodes
        if not self._console.is_terminal and (is_last or now - self._last_line > SECONDS_BETWEEN_LINES):
            self._last_line = now
            print(f"{self._name}: {episode} of {self._episodes} episodes  {news}", file=self._console.file, flush=True)
