"""Starting Python child processes that import what this process imports, and nothing else."""

import os
import sys
from pathlib import Path


def python_command() -> list[str]:
    """Return the command for starting Python without importing modules from the current folder, which is untrusted."""
    return [sys.executable, "-P"]


def python_path() -> str:
    """Return the child's PYTHONPATH, so that a user's own environment is found there as it is here."""
    return os.pathsep.join(path or str(Path.cwd()) for path in sys.path)
