"""Where compiled programs (`training.programs`) are kept between commands: a directory of the user's.

It has one part per machine, or rather per combination of everything that determines how programs are compiled and run.
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
from consmarl.experiments.directory import write_json
from consmarl.files import explained
from consmarl.training.programs import Shelf, keep_programs

VARIABLE = "CONSMARL_CACHE"
OFF = ("off", "0", "no", "false")
ABOUT = "about.json"
MOST_BYTES = 512 * 2**20  # per machine: some hundred kinds of runs
DAYS_UNUSED = 90  # a machine's part is removed after this time, e.g. when JAX was updated
_PACKAGES = ("jax", "jaxlib", "numpy", "optax")


def keep_compiled() -> str | None:
    """Keep programs compiled from now on, and use those kept earlier; return a note if that is impossible.

    The environment variable CONSMARL_CACHE turns this off or names another directory. JAX's own cache settings, if any,
    take precedence.
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
    """Keep compiled programs; if that is impossible, print a note and continue."""
    if note := keep_compiled():
        print(note, file=sys.stderr, flush=True)


def default_directory() -> Path:
    """Return this system's directory for caches."""
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        named = os.environ.get("XDG_CACHE_HOME", "")
        base = Path(named) if Path(named).is_absolute() else Path.home() / ".cache"
    return base / "consmarl"


def machine_facts() -> dict[str, Any]:
    """Return everything that determines whether a program compiled elsewhere would be the same and run here."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "versions": {name: version(name) for name in _PACKAGES} | {"python": platform.python_version()},
        "processor": _processor(),
        "cores": cores,  # XLA distributes a program's work among them
        "system": f"{platform.system()} {platform.machine()}",
        "platforms": os.environ.get("JAX_PLATFORMS", ""),
        "flags": sorted(os.environ.get("XLA_FLAGS", "").split()),
    }


def _processor() -> dict[str, Any]:
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines() if cpuinfo.is_file() else []
    told = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    wanted = ("vendor_id", "model name", "CPU part", "flags", "Features")
    # if the processor's features are unknown, programs are not shared with other machines
    alone = {"processor": platform.processor(), "host": platform.node()}
    return {name: value for name, value in told.items() if name in wanted} or alone


def _prepared(root: Path) -> Path:
    """Return this machine's part of the directory, ready to be written to."""
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
    """Refuse a directory that others can write to, since its programs are executed."""
    if not hasattr(os, "getuid"):
        return
    found = directory.stat()
    if found.st_uid != os.getuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise UsageError(f"others can write to {directory}.")


def _remove_unused(root: Path) -> None:
    """Remove the parts of machines that have not been used for long, such as this one before an update."""
    for about in root.glob(f"*/{ABOUT}"):
        try:
            is_old = time.time() - about.stat().st_mtime > DAYS_UNUSED * 24 * 3600
        except OSError:  # another process is removing it
            continue
        if is_old:
            shutil.rmtree(about.parent, ignore_errors=True)
