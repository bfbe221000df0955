"""Write a run's rows as TensorBoard events: every number is a curve over episodes.

Events are written synchronously, like `metrics.jsonl`. tensorboardX's own writer passes them to a thread, where a full
disk causes an exception that cannot be caught, and then a run that waits forever.
"""

import os
import socket
import struct
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tensorboardX.proto.event_pb2 import Event, SessionLog
from tensorboardX.proto.summary_pb2 import Summary
from tensorboardX.record_writer import masked_crc32c

from consmarl.files import explained
from consmarl.metrics import EVALUATED, Schema

_VERSION = "brain.Event:2"


class EventsFile:
    """The events of one session of a run; they supersede events of earlier sessions after `episode`."""

    def __init__(self, directory: Path, episode: int, schema: Schema = Schema()) -> None:  # noqa: B008 - it is immutable
        """Open a new file; curves are grouped by the families of `schema`."""
        self._schema = schema
        # TensorBoard reads files in the order of their names, so the time comes first
        seconds, rest = divmod(time.time_ns(), 10**9)
        self._path = directory / f"events.out.tfevents.{seconds}.{socket.gethostname()}.{os.getpid()}.{rest:09}"
        with explained(directory):
            directory.mkdir(parents=True, exist_ok=True)
            is_first = not any(directory.iterdir())
            self._file = self._path.open("xb", buffering=0)  # unbuffered: a failed write must not be retried on closing
        self._write(Event(wall_time=time.time(), file_version=_VERSION))
        if not is_first:
            following = episode + 1 if episode else 0  # a run that starts over writes row 0 again
            self._write(Event(wall_time=time.time(), step=following, session_log=SessionLog(status=SessionLog.START)))

    def append(self, row: Mapping[str, Any]) -> None:
        """Write a row's numbers as one event."""
        values = [Summary.Value(tag=tag, simple_value=value) for tag, value in _curves(self._schema, row)]
        self._write(Event(wall_time=time.time(), step=row["episode"], summary=Summary(value=values)))

    def flush(self) -> None:
        """Make sure everything is on disk before a checkpoint is written."""
        with explained(self._path):
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _write(self, event: Any) -> None:
        left = memoryview(_record(event.SerializeToString()))
        with explained(self._path):
            while left:
                left = left[self._file.write(left) :]


def _record(data: bytes) -> bytes:
    """Frame an event in TensorBoard's format: length, checksum, data, checksum."""
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked_crc32c(length)) + data + struct.pack("<I", masked_crc32c(data))


def _curves(schema: Schema, row: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield a tag and a value for each number of a row; a list becomes one curve per agent."""
    for name, value in row.items():
        if isinstance(value, list):
            yield from ((f"{_tag(schema, name)}/agent_{index}", each) for index, each in enumerate(value))
        else:
            yield _tag(schema, name), value


def _tag(schema: Schema, name: str) -> str:
    """Return a curve's tag, whose prefix groups it with related curves."""
    if name.startswith(EVALUATED):
        return f"evaluation/{name.removeprefix(EVALUATED)}"
    return f"{schema[name].family.lower()}/{name}"
