"""How much memory this machine has left for this process, as far as the system says."""

import os
from collections.abc import Iterator
from pathlib import Path


def available_bytes() -> int | None:
    """Return how much memory this process can still have; None where the system does not say."""
    known = [each for each in (_machine_bytes(), *_control_group_bytes()) if each is not None]
    return min(known, default=None)


def _machine_bytes() -> int | None:
    meminfo = Path("/proc/meminfo")
    if meminfo.is_file():
        for line in meminfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    try:  # elsewhere: all there is, which is better than nothing
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def _control_group_bytes(
    root: Path = Path("/sys/fs/cgroup"), membership: Path = Path("/proc/self/cgroup")
) -> Iterator[int]:
    """Yield what containers and batch systems leave this process: limits of its control groups, less what is used."""
    for folder, limit_name, used_name in _control_groups(root, membership):
        limit, used = _number_in(folder / limit_name), _number_in(folder / used_name)
        if limit is not None and used is not None:
            yield max(limit - used + _reclaimable(folder), 0)


def _control_groups(root: Path, membership: Path) -> Iterator[tuple[Path, str, str]]:
    """Yield the folders of the groups that this process is in, and of those that hold them."""
    lines = membership.read_text(encoding="utf-8").splitlines() if membership.is_file() else []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        base, names = (
            (root, ("memory.max", "memory.current"))
            if not controllers
            else (root / "memory", ("memory.limit_in_bytes", "memory.usage_in_bytes"))
        )
        inside = base / path.lstrip("/")
        for folder in (inside, *inside.parents):
            if folder.is_relative_to(base):
                yield folder, *names


def _reclaimable(folder: Path) -> int:
    """Return what a group's files in memory take, which it gives back when asked."""
    stat = folder / "memory.stat"
    for line in stat.read_text(encoding="utf-8").splitlines() if stat.is_file() else []:
        name, _, value = line.partition(" ")
        if name in ("inactive_file", "total_inactive_file") and value.isdigit():
            return int(value)
    return 0


def _number_in(path: Path) -> int | None:
    """Return the number that a file of the system's holds; `max`, or no file, is no number."""
    try:
        text = path.read_text(encoding="utf-8").strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None
