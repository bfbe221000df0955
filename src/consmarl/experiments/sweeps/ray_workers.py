"""Workers on a Ray cluster: each run is a task with one core, executed by a separate process on some node.

All nodes must see the sweep's directory under the same path, e.g. on a shared file system. If a node or worker dies,
Ray reassigns its task, which then continues from the run's last checkpoint.
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
RETRIES = 5  # of runs whose worker or node died


def run_job(job: Job) -> Outcome:
    """Execute a job on this node until it ends, or is stopped by a file in its directory; return the outcome."""
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
    """Check that something listens at HOST:PORT; Ray itself would retry for minutes."""
    host, colon, port = address.rpartition(":")
    if colon and port.isdigit():
        socket.create_connection((host.rpartition("/")[2], int(port)), timeout=SECONDS_TO_REACH).close()


class RayWorkers:
    """Workers on the nodes of a Ray cluster."""

    def __init__(self, address: str) -> None:
        """Connect to the cluster at an address, or with "auto" to the one running here."""
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
        """Return True, since Ray has its own queue."""
        return True

    def start(self, job: Job) -> None:
        """Submit a run to the cluster."""
        (job.out / STOP).unlink(missing_ok=True)
        self._tasks[self._run_job.remote(job)] = job

    def ended(self) -> Iterator[tuple[Job, Outcome]]:
        """Yield the runs that have ended since the last call."""
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
        """Ask all runs, by creating a file, to save their state and stop; Ray does not interrupt running tasks."""
        for task, job in self._tasks.items():
            job.out.mkdir(parents=True, exist_ok=True)
            (job.out / STOP).touch()
            self._ray.cancel(task)  # keeps waiting tasks from starting

    def close(self) -> None:
        """Disconnect from the cluster, which keeps running."""
        self._ray.shutdown()
