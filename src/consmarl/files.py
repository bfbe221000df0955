"""Atomic file writes, and the names of a run's files."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from consmarl.errors import UsageError

# File names in a run's directory. Code that reads a run needs only these names, not the code that wrote it.
CONFIG, FACTS, METRICS, RESULT, FAILURE = "config.json", "run.json", "metrics.jsonl", "result.json", "failure.json"
CHECKPOINTS, EVENTS, POLICY, POLICY_GIF = "checkpoints", "events", "policy.safetensors", "policy.gif"
EXCHANGES, VIEW = "exchanges", "exchange.html"
LOG, LOCK = "log.txt", ".lock"


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield the path of a temporary file, which replaces `path` if the block succeeds and is deleted otherwise."""
    if path.is_dir():
        raise UsageError(f"cannot write to {path}, which is a directory: name a file in it.")
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-", suffix=path.suffix)
    os.close(handle)
    temporary = Path(name)
    try:
        with explained(path):
            yield temporary
            umask = os.umask(0)
            os.umask(umask)
            temporary.chmod(0o666 & ~umask)  # mkstemp makes files private
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn an `OSError` while writing a file into a `UsageError` of one sentence."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"cannot write to {path}: {error.strerror or error}.") from error
