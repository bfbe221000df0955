"""Workers on a Ray cluster: each run is a task of one core, done by a process of its own on some node.

All nodes have to see the sweep's directory under the same path, as on a shared file system. A task whose node or worker
dies is given to another by Ray, and goes on from the run's last checkpoint.
"""

import logging
import socket
import time
from collections.abc import Iterator
from typing import Any

from consmarl.errors import UsageError
from consmarl.experiments.sweeps.job import Job, Outcome, WorkerProcess

STOP = ".stop"
SECONDS_BETWEEN_LOOKS = 0.2
SECONDS_TO_REACH = 10.0
RETRIES = 5  # of runs whose worker or node dies


def run_job(job: Job) -> Outcome:
    """Do a job on whatever node this is, until it is done or a file in its directory asks it to stop."""
    worker = None
    is_stopping = False
    while True:
        if not is_stopping and (job.out / STOP).exists():
            if worker is None:
                return Outcome("stopped")
            worker.stop()
            is_stopping = True
        if worker is None:
            worker = WorkerProcess(job, core=None)
        if (outcome := worker.outcome()) is not None:
            return outcome
        time.sleep(SECONDS_BETWEEN_LOOKS)


def _reach(address: str) -> None:
    """See whether anybody listens at HOST:PORT: Ray itself would try for minutes."""
    host, colon, port = address.rpartition(":")
    if colon and port.isdigit():
        socket.create_connection((host.rpartition("/")[2], int(port)), timeout=SECONDS_TO_REACH).close()


class RayWorkers:
    """A Ray cluster's nodes."""

    def __init__(self, address: str) -> None:
        """Join the cluster at an address, or with "auto" the one that runs here."""
        try:
            import ray
        except ImportError:
            raise UsageError("Ray is not installed: pip install 'consmarl[ray]', or leave --ray out.") from None
        try:
            _reach(address)
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
        except (OSError, ValueError, RuntimeError) as error:
            raise UsageError(
                f"there is no Ray cluster at {address!r} ({str(error).splitlines()[0]}): start one with `ray start "
                f"--head`, or leave --ray out."
            ) from error
        self._ray: Any = ray
        self._run_job = ray.remote(num_cpus=1, max_retries=RETRIES)(run_job)
        self._tasks: dict[Any, Job] = {}
        nodes = [node for node in ray.nodes() if node["Alive"]]
        cores = int(ray.cluster_resources().get("CPU", 0))
        self.description = f"a Ray cluster of {len(nodes)} nodes and {cores} cores"

    def has_room(self) -> bool:
        """Ray keeps its own queue."""
        return True

    def start(self, job: Job) -> None:
        """Hand a run to the cluster."""
        (job.out / STOP).unlink(missing_ok=True)
        self._tasks[self._run_job.remote(job)] = job

    def ended(self) -> Iterator[tuple[Job, Outcome]]:
        """Yield the runs that have ended since."""
        if not self._tasks:
            return
        done, _ = self._ray.wait(list(self._tasks), num_returns=len(self._tasks), timeout=0)
        for task in done:
            job = self._tasks.pop(task)
            (job.out / STOP).unlink(missing_ok=True)
            try:
                yield job, self._ray.get(task)
            except self._ray.exceptions.TaskCancelledError:
                yield job, Outcome("stopped")
            except self._ray.exceptions.RayError as error:
                yield job, Outcome("failed", f"lost by the cluster: {str(error).splitlines()[0]}")

    def stop(self) -> None:
        """Ask all runs to save themselves: by a file, since Ray does not interrupt a task that is under way."""
        for task, job in self._tasks.items():
            job.out.mkdir(parents=True, exist_ok=True)
            (job.out / STOP).touch()
            self._ray.cancel(task)  # which keeps those that wait from beginning

    def close(self) -> None:
        """Leave the cluster as it is."""
        self._ray.shutdown()
