"""Processes, as Linux shows them in /proc."""

from pathlib import Path


def processes():
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


def fact_of(pid, number):
    """Return one of the fields that follow a process's name in its stat file: its state, its parent, …"""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[number]
    except OSError:  # it has just ended
        return None


def children_of(parent):
    return [pid for pid in processes() if fact_of(pid, 1) == str(parent)]


def is_alive(pid):
    return fact_of(pid, 0) not in (None, "Z")


def is_paused(pid):
    return fact_of(pid, 0) == "T"
