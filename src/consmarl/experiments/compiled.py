"""The user's cache directory, which keeps compiled programs (`training.programs`) between commands.

It has one subdirectory per machine or, more precisely, per combination of facts that determine how programs compile.
"""

import hashlib
import json
import os
import platform
import shutil
import stat
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax

from consmarl.errors import UsageError
from consmarl.experiments import processor
from consmarl.experiments.directory import write_json
from consmarl.files import explained
from consmarl.training.programs import Shelf, keep_programs

VARIABLE = "CONSMARL_CACHE"
OFF = ("off", "0", "no", "false")
ABOUT = "about.json"
MOST_BYTES = 512 * 2**20  # per machine: programs of several hundred kinds of runs
DAYS_UNUSED = 90  # after which a machine's subdirectory is removed, e.g. because JAX was updated
_PACKAGES = ("jax", "jaxlib", "numpy", "optax")


def keep_compiled() -> str | None:
    """Keep programs compiled from now on, and reuse those kept earlier; return a note if that is impossible.

    The environment variable CONSMARL_CACHE turns this off or names another directory. If JAX's own cache is configured,
    that one is used instead.
    """
    wanted, told = os.environ.get(VARIABLE, ""), jax.config.values
    if wanted.lower() in OFF or told["jax_compilation_cache_dir"] or not told["jax_enable_compilation_cache"]:
        return None
    try:
        root = Path(wanted).expanduser().absolute() if wanted else default_directory()
        keep_programs(Shelf(_prepared(root), MOST_BYTES))
    except (UsageError, RuntimeError) as error:  # RuntimeError: the home directory is unknown
        return f"compiled programs are not kept: {error} {VARIABLE} can name another directory or turn this off."
    return None


def tell_if_not_kept() -> None:
    """Call `keep_compiled` and print its note, if any."""
    if note := keep_compiled():
        print(note, file=sys.stderr, flush=True)


def default_directory() -> Path:
    """Return consmarl's directory inside this system's cache directory."""
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        named = os.environ.get("XDG_CACHE_HOME", "")
        base = Path(named) if Path(named).is_absolute() else Path.home() / ".cache"
    return base / "consmarl"


def machine_facts() -> dict[str, Any]:
    """Return the facts that must be equal on two machines for one to run programs compiled on the other."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "versions": {name: version(name) for name in _PACKAGES} | {"python": platform.python_version()},
        "processor": _processor(),
        "cores": cores,  # XLA distributes a program's work among them
        "system": f"{platform.system()} {platform.machine()}",
        "platforms": os.environ.get("JAX_PLATFORMS", ""),
        "flags": sorted(os.environ.get("XLA_FLAGS", "").split()),
    }


def _processor() -> dict[str, str]:
    wanted = ("vendor_id", "model name", "CPU part", "flags", "Features")
    # if the processor's features are unknown, the host's name keeps programs from being shared with other machines
    alone = {"processor": platform.processor(), "host": platform.node()}
    return {name: value for name, value in processor.reported().items() if name in wanted} or alone


def _prepared(root: Path) -> Path:
    """Create this machine's subdirectory if necessary, remove unused ones, and return its path."""
    facts = machine_facts()
    directory = root / hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]
    with explained(directory):
        for each in (root, directory):
            each.mkdir(mode=0o700, parents=True, exist_ok=True)
        _require_ours(root)
        write_json(directory / ABOUT, {"what": "programs that consmarl has compiled; safe to delete"} | facts)
    _remove_unused(root)
    return directory


def _require_ours(directory: Path) -> None:
    """Raise an error if other users can write to the directory, since its programs are executed."""
    if not hasattr(os, "getuid"):
        return
    found = directory.stat()
    if found.st_uid != os.getuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise UsageError(f"others can write to {directory}.")


def _remove_unused(root: Path) -> None:
    """Remove subdirectories unused for DAYS_UNUSED days, such as this machine's own from before an update."""
    for about in root.glob(f"*/{ABOUT}"):
        try:
            is_old = time.time() - about.stat().st_mtime > DAYS_UNUSED * 24 * 3600
        except OSError:  # another process is removing it
            continue
        if is_old:
            shutil.rmtree(about.parent, ignore_errors=True)
