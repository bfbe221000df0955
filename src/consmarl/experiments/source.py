"""The commit of the package's source code, if it is in a git checkout."""

import functools
import os
import subprocess
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parents[1]
SECONDS_FOR_GIT = 10.0


@functools.cache
def git_facts(package: Path = PACKAGE) -> dict[str, Any] | None:
    """Return the commit and whether the package has uncommitted changes; None without git or outside a checkout."""
    if _git(package, "ls-files", "--error-unmatch", "__init__.py") is None:
        return None  # installed, perhaps inside an unrelated repository
    commit = _git(package, "rev-parse", "HEAD")
    changes = _git(package, "status", "--porcelain", "--", ".")
    return None if commit is None or changes is None else {"commit": commit, "is_dirty": bool(changes)}


def _git(directory: Path, *words: str) -> str | None:
    """Return git's output, or None if it fails."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}  # git hooks set these
    try:
        said = subprocess.run(
            ["git", *words], cwd=directory, env=own | {"GIT_OPTIONAL_LOCKS": "0"}, timeout=SECONDS_FOR_GIT,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return said.stdout.strip() if said.returncode == 0 else None
