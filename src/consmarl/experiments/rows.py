"""Where the rows of a run go: to its file of metrics, and to TensorBoard's events if wanted."""

from pathlib import Path
from types import TracebackType
from typing import Any

from consmarl.experiments.configuration.config import TrainConfig
from consmarl.experiments.metrics import MetricsFile
from consmarl.files import EVENTS, METRICS
from consmarl.metrics import Schema


class RowWriter:
    """Writes rows to wherever the configuration wants them."""

    def __init__(self, config: TrainConfig, out: Path, episode: int, schema: Schema = Schema()) -> None:  # noqa: B008 - it is immutable
        """Begin, or go on after an episode."""
        self._metrics = MetricsFile(out / METRICS)
        self._events = None
        if config.tensorboard:
            from consmarl.experiments.events import EventsFile  # takes a moment to load

            self._events = EventsFile(out / EVENTS, episode, schema)

    def append(self, row: dict[str, Any]) -> None:
        """Write a row."""
        self._metrics.append(row)
        if self._events is not None:
            self._events.append(row)

    def flush(self) -> None:
        """See that all rows so far are on disk."""
        if self._events is not None:
            self._events.flush()

    def __enter__(self) -> "RowWriter":
        """Go on to write."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the files."""
        if self._events is not None:
            self._events.close()
