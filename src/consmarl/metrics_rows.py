"""Read the rows of a run's metrics, one JSON object per line, and describe the faults of unreadable lines."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from consmarl.errors import UsageError
from consmarl.json_files import parse_json

LAST_EPISODE = 2**53  # beyond this, floats (and thus charts) cannot represent all integers
TAIL_BYTES = 16_384  # read from the end of a file to find a complete row, which has about 700
MOST_TOLD = 3  # faults per file that are described one by one; the rest are only counted


class Fault(NamedTuple):
    """What is wrong with a line that has no usable row."""

    line: int  # counted from 1, as in editors
    what: str  # completes a sentence about the line: "is not JSON"


class Line(NamedTuple):
    """A line of a file, with either its row or the reason why it has none."""

    number: int
    content: bytes  # including the line break
    row: dict[str, Any] | None
    fault: Fault | None


def read_lines(path: Path) -> list[Line]:
    """Return the non-empty lines of a file; an empty list if the file is missing.

    An unreadable last line without a line break is ignored: the process writing it was killed, or is still writing.
    """
    if not path.is_file():
        return []
    try:
        contents = path.read_bytes().split(b"\n")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}.") from error
    *lines, last = (_line(number, content + b"\n") for number, content in enumerate(contents, start=1))
    written = [line for line in lines if line.content.strip()]
    return written if last.row is None else [*written, last]


def last_row(path: Path) -> dict[str, Any]:
    """Return the last complete row of a file, reading only its end; an empty dict if there is none."""
    if not path.is_file():
        return {}
    with path.open("rb") as file:
        file.seek(max(path.stat().st_size - TAIL_BYTES, 0))
        contents = file.read().split(b"\n")[:-1]  # text after the last line break is incomplete
    lines = (_line(0, content) for content in reversed(contents))
    return next((line.row for line in lines if line.row is not None), {})


def told(faults: Sequence[Fault]) -> str:
    """Return a file's faults as text: "line 3, which is not JSON, and 4 more lines"."""
    words = [f"line {fault.line}, which {fault.what}" for fault in faults[:MOST_TOLD]]
    if (num_more := len(faults) - MOST_TOLD) > 0:
        words.append(f"{num_more} more line{'s' if num_more > 1 else ''}")
    return ", and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _line(number: int, content: bytes) -> Line:
    try:
        row = parse_json(content, "")
    except UsageError as error:
        return Line(number, content, None, Fault(number, str(error).partition(":")[0].strip()))
    what = _what_is_wrong_with(row)
    return Line(number, content, row, None) if what is None else Line(number, content, None, Fault(number, what))


def _what_is_wrong_with(row: Any) -> str | None:
    if not isinstance(row, dict):
        return "is not an object"
    episode = row.get("episode")
    if type(episode) is not int or not 0 <= episode < LAST_EPISODE:
        return "has no episode"
    if type(row.get("seconds", 0.0)) not in (int, float):  # they are summed at the end of a run
        return "has seconds that are not a number"
    return None
