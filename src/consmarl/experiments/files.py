"""Writing files so that a failure never costs what was there before."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from consmarl.errors import UsageError


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary file to write to; it takes the place of `path` only if all went well."""
    if path.is_dir():
        raise UsageError(f"cannot write to {path}, which is a directory: name a file in it.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-", suffix=path.suffix)
    except OSError as error:
        raise UsageError(f"cannot write to {path}: {error.strerror or error}.") from error
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)  # mkstemp's are for the owner's eyes only
        temporary.replace(path)
    except OSError as error:
        raise UsageError(f"cannot write to {path}: {error.strerror or error}.") from error
    finally:
        temporary.unlink(missing_ok=True)
