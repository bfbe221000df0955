"""Find out how much memory is available to this process."""

import os
from collections.abc import Iterator
from pathlib import Path


def available_bytes() -> int | None:
    """Return how much memory is still available to this process; None if the system does not report it."""
    known = [each for each in (_machine_bytes(), *_control_group_bytes()) if each is not None]
    return min(known, default=None)


def _machine_bytes() -> int | None:
    meminfo = Path("/proc/meminfo")
    if meminfo.is_file():
        for line in meminfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    try:  # other systems report only the total
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def _control_group_bytes(
    root: Path = Path("/sys/fs/cgroup"), membership: Path = Path("/proc/self/cgroup")
) -> Iterator[int]:
    """Yield the memory that each control group (of a container or batch system) leaves: its limit minus its usage."""
    for folder, limit_name, used_name in _control_groups(root, membership):
        limit, used = _number_in(folder / limit_name), _number_in(folder / used_name)
        if limit is not None and used is not None:
            yield max(limit - used + _reclaimable(folder), 0)


def _control_groups(root: Path, membership: Path) -> Iterator[tuple[Path, str, str]]:
    """Yield the folders of this process's control groups and their parents, with their files of limit and usage."""
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
    """Return the size of a control group's inactive file cache, which the system can reclaim."""
    stat = folder / "memory.stat"
    for line in stat.read_text(encoding="utf-8").splitlines() if stat.is_file() else []:
        name, _, value = line.partition(" ")
        if name in ("inactive_file", "total_inactive_file") and value.isdigit():
            return int(value)
    return 0


def _number_in(path: Path) -> int | None:
    """Return the number in a system file; None for `max` or a missing file."""
    try:
        text = path.read_text(encoding="utf-8").strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None
