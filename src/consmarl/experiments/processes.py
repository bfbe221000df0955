"""Processes of our own in Python: they import what this one imports, and nothing else."""

import os
import sys
from pathlib import Path


def python_command() -> list[str]:
    """Return how to start Python so that it does not look for modules in the current folder, which may be anybody's."""
    return [sys.executable, "-P"]


def python_path() -> str:
    """Return PYTHONPATH for it: somebody's own environment is found there as it was found here."""
    return os.pathsep.join(path or str(Path.cwd()) for path in sys.path)
