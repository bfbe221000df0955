"""Workers on this machine: one process per core."""

import os
from collections.abc import Iterator

from consmarl.experiments.sweeps.job import Job, Outcome, WorkerProcess


def usable_cores() -> list[int]:
    """Return the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


class LocalWorkers:
    """Processes, each pinned to its own core if the system supports it."""

    def __init__(self, num_workers: int | None = None) -> None:
        """Use this many workers, by default one per core; if there are more workers than cores, none is pinned."""
        cores = usable_cores()
        can_pin = hasattr(os, "sched_setaffinity") and (num_workers or 1) <= len(cores)
        self._free: list[int | None] = list(cores[:num_workers]) if can_pin else [None] * (num_workers or len(cores))
        self._running: list[WorkerProcess] = []
        self.description = f"{len(self._free)} worker{'s' if len(self._free) > 1 else ''} on this machine"

    def has_room(self) -> bool:
        """Return whether another run can start."""
        return bool(self._free)

    def start(self, job: Job) -> None:
        """Start a run."""
        self._running.append(WorkerProcess(job, self._free.pop(0)))

    def ended(self) -> Iterator[tuple[Job, Outcome]]:
        """Yield the runs that have ended since the last call."""
        for worker in list(self._running):
            outcome = worker.outcome()
            if outcome is not None:
                self._running.remove(worker)
                self._free.append(worker.core)
                yield worker.job, outcome

    def stop(self) -> None:
        """Ask all runs to save their state and stop."""
        for worker in self._running:
            worker.stop()

    def close(self) -> None:
        """Do nothing: there are no resources to release."""
