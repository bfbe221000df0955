"""A run's directory: locking it, and the facts recorded about the run."""

import json
import os
import platform
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from consmarl.environments.trust import Trust
from consmarl.errors import UsageError
from consmarl.experiments import processor
from consmarl.experiments.configuration.config import TrainConfig
from consmarl.experiments.source import git_facts
from consmarl.files import (
    CHECKPOINTS,
    CONFIG,
    EVENTS,
    EXCHANGES,
    FACTS,
    FAILURE,
    LOCK,
    LOG,
    RESULT,
    explained,
    replacing,
)
from consmarl.json_files import read_json_object_if_any
from consmarl.metrics import Schema, to_json
from consmarl.plugins import in_use, refuse_missing
from consmarl.version import __version__

FORMAT = 1
_PACKAGES = ("jax", "jaxlib", "numpy", "optax")


@contextmanager
def held(directory: Path, what: str, *, patience_seconds: float = 0.0) -> Iterator[None]:
    """Lock a directory for this process, waiting up to `patience_seconds`; the lock ends when the process dies."""
    refuse_links(directory)
    with explained(directory):
        directory.mkdir(parents=True, exist_ok=True)
        lock = FileLock(directory / LOCK, timeout=patience_seconds)
        try:
            lock.acquire()
        except Timeout:
            raise UsageError(f"{what} in {directory} is in progress: wait for it, or name another directory.") from None
    try:
        yield
    finally:
        lock.release()


def refuse_links(directory: Path) -> None:
    """Raise an error if files to be written are links: in a copied directory, they may lead to the user's own files."""
    for name in (LOCK, LOG, CHECKPOINTS, EVENTS, EXCHANGES):  # all other files are replaced, not written to
        if (directory / name).is_symlink():
            raise UsageError(
                f"{directory / name} is a link to another place, which is not written to: put its target here "
                f"instead, or remove it."
            )


def read_config(directory: Path, *, trust: Trust = False) -> TrainConfig:
    """Read the configuration in a run's directory; if that fails for another version's run, the error says so.

    Third-party environments named in a file are not run unless `trust` allows it, as in `TrainConfig.from_json`.
    """
    if not (directory / CONFIG).is_file():
        raise UsageError(f"{directory} is not the directory of a run: it has no {CONFIG}.")
    facts = read_facts(directory)
    if facts.get("format", FORMAT) != FORMAT:
        made_by = _versions_of(facts).get("consmarl", "another version")
        raise UsageError(
            f"{directory} was written by consmarl {made_by} in format {facts['format']}: this is consmarl "
            f"{__version__}, which reads format {FORMAT}."
        )
    try:
        return TrainConfig.from_file(directory / CONFIG, trust=trust, is_run=True)
    except UsageError as error:
        refuse_missing(str(directory), facts.get("plugins"))
        made_by = _versions_of(facts).get("consmarl", __version__)
        hint = "" if made_by == __version__ else f" It was written by consmarl {made_by}, this is {__version__}."
        raise UsageError(f"{error}{hint}") from error


def begin_session(
    directory: Path,
    episode: int,
    label: str | None = None,
    schema: Schema = Schema(),  # noqa: B008 - it is immutable
) -> str | None:
    """Record when, where and with which versions the run starts or resumes; return a warning if its bits may change.

    `schema` declares the run's metrics and replaces the previous declarations.
    """
    facts = {"format": FORMAT, "label": label, "sessions": []} | read_facts(directory)
    if needed := in_use():
        facts["plugins"] = list(needed)
    session = session_facts(episode)
    changes = _changes(facts["sessions"][-1], session) if facts["sessions"] else []
    facts["sessions"].append(session)
    facts["metrics"] = to_json(schema)
    write_json(directory / FACTS, facts)
    return f"resuming with {' and '.join(changes)}: results may differ from here." if changes else None


def _changes(before: dict[str, Any], session: dict[str, Any]) -> list[str]:
    """Return what has changed since the session `before` and may change a run's bits."""
    old, new = before.get("versions", {}), session["versions"]
    changed = [f"{name} {old[name]} → {new[name]}" for name in old if old[name] != new.get(name)]
    changes = [f"other versions ({', '.join(changed)})"] if changed else []
    machine = before.get("machine")
    was = machine.get("processor") if isinstance(machine, dict) else None
    now = session["machine"]["processor"]
    return changes if was in (None, now) else [*changes, f"another processor ({was} → {now})"]


def session_facts(episode: int) -> dict[str, Any]:
    """Return facts about this process and its machine, for a session that starts after `episode`."""
    command = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "episode": episode,
        "command": command,
        "versions": {"consmarl": __version__, "python": platform.python_version()}
        | {name: version(name) for name in _PACKAGES},
        "git": git_facts(),
        "machine": {
            "system": f"{platform.system()} {platform.release()} {platform.machine()}",
            "processor": processor.name(),
            "cores": os.cpu_count(),
            "memory_gigabytes": _memory_gigabytes(),
        },
    }


def write_failure(directory: Path, error: str) -> None:
    """Record why a run failed."""
    write_json(directory / FAILURE, {"error": error})


def is_finished(directory: Path) -> bool:
    """Return whether the run in this directory is finished."""
    return (directory / RESULT).is_file()


def read_facts(directory: Path) -> dict[str, Any]:
    """Return the facts recorded about a run, after checking those that other code relies on; {} if there are none."""
    facts = read_json_object_if_any(directory / FACTS) or {}
    sessions = facts.get("sessions", [])
    if not isinstance(sessions, list) or not all(_is_session(each) for each in sessions):
        raise UsageError(f"{directory / FACTS} is damaged: its sessions must be a list of objects with versions.")
    return facts


def _is_session(session: Any) -> bool:
    versions = session.get("versions", {}) if isinstance(session, dict) else None
    return isinstance(versions, dict) and all(isinstance(each, str) for each in versions.values())


def write_json(path: Path, facts: dict[str, Any]) -> None:
    """Write a JSON file atomically."""
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")


def _versions_of(facts: dict[str, Any]) -> dict[str, str]:
    sessions = facts.get("sessions") or [{}]
    versions: dict[str, str] = sessions[-1].get("versions", {})
    return versions


def _memory_gigabytes() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (AttributeError, ValueError, OSError):  # not available on every system
        return None
