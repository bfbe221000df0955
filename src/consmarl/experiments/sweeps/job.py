"""A job (a run that a sweep gives to a worker), the worker's process, and its outcome."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, NamedTuple

from consmarl.experiments.directory import refuse_links
from consmarl.experiments.interrupts import holding_interrupts
from consmarl.files import FAILURE, LOG, explained
from consmarl.json_files import read_json_object_if_any
from consmarl.processes import python_command, python_path


class Outcome(NamedTuple):
    """How a run ended: finished, failed with an error, or stopped and saved."""

    state: str
    error: str | None = None


@dataclass(frozen=True)
class Job:
    """A run to execute, with everything that a worker needs."""

    name: str
    out: Path  # absolute, since the worker may have another working directory
    config: str  # JSON
    label: str | None = None
    trust: str = ""  # the third-party environment that may be run: `environments.trust.passed_on`
    plugins: tuple[str, ...] = ()  # modules and files to import first
    command: tuple[str, ...] = field(default_factory=lambda: tuple(sys.argv))  # of the sweep


# For a run that is not pinned to a core: with networks of this size, XLA's threads cost more time than they save.
_ONE_THREAD = "--xla_cpu_multi_thread_eigen=false"


class WorkerProcess:
    """The process that executes a job."""

    def __init__(self, job: Job, core: int | None) -> None:
        """Start the process, pinned to `core` unless that is None; its output goes to the run's log."""
        self.job, self.core = job, core
        flags = {} if core is not None else {"XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} {_ONE_THREAD}".strip()}
        with explained(job.out):
            job.out.mkdir(parents=True, exist_ok=True)
            refuse_links(job.out)
            (job.out / FAILURE).unlink(missing_ok=True)
            # a worker interrupted while importing JAX would crash or miss the signal
            with (job.out / LOG).open("ab") as log, holding_interrupts():
                self.process = subprocess.Popen(
                    [*python_command(), "-m", "consmarl.experiments.sweeps.worker"],
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    env=os.environ | flags | {"PYTHONPATH": python_path()},
                    process_group=0 if os.name == "posix" else None,  # only the sweep receives Ctrl-C, and passes it on
                )
        told = {"out": str(job.out), "config": job.config, "label": job.label, "trust": job.trust,
                "plugins": job.plugins, "command": job.command}  # fmt: skip
        # standard input stays open; the worker exits when it closes, i.e. when this process ends
        _input(self.process).write(json.dumps(told | {"core": core}).encode() + b"\n")
        _input(self.process).flush()

    def outcome(self) -> Outcome | None:
        """Return the outcome, or None while the process is running."""
        code = self.process.poll()
        if code is None:
            return None
        _input(self.process).close()
        return outcome_of(self.job.out, code)

    def stop(self) -> None:
        """Ask it to save its state and exit."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)


def outcome_of(out: Path, code: int) -> Outcome:
    """Return the outcome of a run in `out` whose process ended with this exit code."""
    if code == 0:
        return Outcome("finished")
    if code == 128 + signal.SIGINT:
        return Outcome("stopped")
    told = (read_json_object_if_any(out / FAILURE) or {}).get("error")
    if told is None and code < 0:
        told = f"killed by signal {-code} ({signal.Signals(-code).name})"
    return Outcome("failed", told or f"ended with code {code}: {_last_line(out / LOG)}")


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n") if log.is_file() else []
    return next((line.strip() for line in reversed(lines) if line.strip()), "no output")


def _input(process: subprocess.Popen[bytes]) -> IO[bytes]:
    assert process.stdin is not None
    return process.stdin
