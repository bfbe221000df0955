"""Write a run's rows to its metrics file and, optionally, as TensorBoard events."""

from pathlib import Path
from types import TracebackType
from typing import Any

from consmarl.experiments.configuration.config import TrainConfig
from consmarl.experiments.metrics import MetricsFile
from consmarl.files import EVENTS, METRICS
from consmarl.metrics import Schema


class RowWriter:
    """Writes rows to the outputs that the configuration selects."""

    def __init__(self, config: TrainConfig, out: Path, episode: int, schema: Schema = Schema()) -> None:  # noqa: B008 - it is immutable
        """Open the outputs of a run in the directory `out`, which starts or resumes after `episode`."""
        self._metrics = MetricsFile(out / METRICS)
        self._events = None
        if config.tensorboard:
            from consmarl.experiments.events import EventsFile  # slow to import

            self._events = EventsFile(out / EVENTS, episode, schema)

    def append(self, row: dict[str, Any]) -> None:
        """Write a row."""
        self._metrics.append(row)
        if self._events is not None:
            self._events.append(row)

    def flush(self) -> None:
        """Make sure all rows so far are on disk."""
        if self._events is not None:
            self._events.flush()

    def __enter__(self) -> "RowWriter":
        """Return self."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the files."""
        if self._events is not None:
            self._events.close()
