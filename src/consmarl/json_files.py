"""Read JSON from untrusted sources; any fault in it raises a `UsageError` of one sentence.

Every JSON file that users may exchange (configurations, facts of a run, sweeps, headers) is read here. Nesting is
limited, so that the result can be copied, compared and written again. Control characters and lone surrogates are
replaced, so that all text can be encoded as UTF-8 and shown on a terminal.
"""

import json
import re
from pathlib import Path
from typing import Any

from consmarl.errors import UsageError

MOST_BYTES = 16 * 2**20  # of a file with one object; a configuration has about 2,000
MOST_LEVELS = 50  # ours have four; Python's own functions fail at a few hundred

_ILLEGIBLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")  # control characters and lone surrogates
_ILLEGIBLE_IN_JSON = re.compile(r"\\[bfru]|[\x7f-\x9f]")


def parse_json(text: str | bytes, what: str) -> Any:
    """Parse a JSON text and return its value; error messages refer to the text as `what`."""
    try:
        whole = text.decode("utf-8") if isinstance(text, bytes) else text
        read = json.loads(whole)
    except UnicodeDecodeError as error:
        raise UsageError(f"{what} is not UTF-8: only its first {error.start} bytes are.") from error
    except RecursionError as error:
        raise _too_deep(what) from error
    except ValueError as error:  # JSONDecodeError, or a number with more digits than Python reads
        raise UsageError(f"{what} is not JSON: {str(error).partition(';')[0].rstrip('.')}.") from error
    if whole.count("[") + whole.count("{") > MOST_LEVELS and _depth(read) > MOST_LEVELS:
        raise _too_deep(what)
    return _legible(read) if _ILLEGIBLE_IN_JSON.search(whole) else read


def parse_json_object(text: str | bytes, what: str) -> dict[str, Any]:
    """Parse a JSON text and return the object in it; any other kind of value is an error."""
    read = parse_json(text, what)
    if not isinstance(read, dict):
        raise UsageError(f'{what} must contain an object such as {{"name": "value"}}, not {_kind(read)}.')
    return read


def read_json_object(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file."""
    if not path.is_file():
        raise UsageError(f"there is no file {path}.")
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}.") from error
    if len(content) > MOST_BYTES:
        raise UsageError(f"{path} is too large: at most {MOST_BYTES // 2**20} megabytes are read.")
    return parse_json_object(content, str(path))


def read_json_object_if_any(path: Path) -> dict[str, Any] | None:
    """Return the object in a JSON file, or None if the file does not exist."""
    return read_json_object(path) if path.is_file() else None


def _too_deep(what: str) -> UsageError:
    return UsageError(f"{what} is nested too deeply: at most {MOST_LEVELS} levels of lists and objects are read.")


def _depth(value: Any) -> int:
    """Return how deeply lists and objects are nested, computed without recursion."""
    depth, level = 0, [value]
    while level := [each for each in level if isinstance(each, list | dict)]:
        depth += 1
        level = [inner for each in level for inner in (each.values() if isinstance(each, dict) else each)]
    return depth


def _legible(value: Any) -> Any:
    """Return a value with every unprintable character replaced."""
    if isinstance(value, str):
        return _ILLEGIBLE.sub("\N{REPLACEMENT CHARACTER}", value)
    if isinstance(value, list):
        return [_legible(each) for each in value]
    if isinstance(value, dict):
        return {_legible(name): _legible(each) for name, each in value.items()}
    return value


def _kind(value: Any) -> str:
    names = {list: "a list", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")
