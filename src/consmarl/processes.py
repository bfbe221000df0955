"""Start Python child processes that find the same modules as this process, and no others."""

import os
import sys
from pathlib import Path


def python_command() -> list[str]:
    """Return the command that starts Python without the current folder, which is untrusted, on its module path."""
    return [sys.executable, "-P"]


def python_path() -> str:
    """Return the PYTHONPATH for child processes: this process's module path, so that users' own modules are found."""
    return os.pathsep.join(path or str(Path.cwd()) for path in sys.path)
