"""One run in a separate process: `python -m consmarl.experiments.sweeps.worker`, started by a sweep.

The job is a line of JSON on standard input, which stays open for as long as the parent is alive: when it closes, the
worker exits. So no worker keeps running when a sweep is killed.

The process starts with interrupts blocked and handles them once everything is imported: a run that is asked to stop
before that does not start.
"""

import json
import os
import sys
import threading
import traceback
from pathlib import Path
from typing import Any

import consmarl.plugins as plugins
from consmarl.environments.trust import passed_on
from consmarl.errors import UsageError
from consmarl.experiments.compiled import tell_if_not_kept
from consmarl.experiments.configuration.config import TrainConfig
from consmarl.experiments.directory import held, write_failure
from consmarl.experiments.interrupts import InterruptedRun, heeding_interrupts
from consmarl.experiments.train import resume, train
from consmarl.files import CONFIG

SECONDS_FOR_ANOTHER_TO_END = 60.0
ORPHANED, STOPPED = 3, 130


def main() -> int:
    """Execute one job; return the exit code: 0 finished, 1 failed, 130 stopped and saved."""
    job: dict[str, Any] = json.loads(sys.stdin.readline())
    if job["core"] is not None:
        os.sched_setaffinity(0, {job["core"]})  # before JAX counts the cores
    tell_if_not_kept()
    sys.argv = job["command"]  # recorded in the run's directory
    threading.Thread(target=_end_when_alone, daemon=True).start()
    out = Path(job["out"])
    try:
        with heeding_interrupts() as stop:
            if stop.is_made:
                raise InterruptedRun("stopped before it started.")
            plugins.load_installed()
            plugins.load_plugins(job.get("plugins", ()))
            _work(TrainConfig.from_json(job["config"], trust=job.get("trust", "")), out, job["label"])
    except KeyboardInterrupt as stopped:
        print(stopped, file=sys.stderr, flush=True)
        # compiled code may still be running in threads, and a normal interpreter shutdown can crash on it
        os._exit(STOPPED)
    except UsageError as error:
        return _failed(out, str(error))
    except Exception as error:  # noqa: BLE001  # the sweep reports any error and continues
        traceback.print_exc()
        return _failed(out, f"{type(error).__name__}: {error}")
    return 0


def _work(config: TrainConfig, out: Path, label: str | None) -> None:
    """Start the run, or resume it."""
    if not (out / CONFIG).is_file():
        train(config, out, label=label)
        return
    with held(out, "this run", patience_seconds=SECONDS_FOR_ANOTHER_TO_END):
        pass  # wait for an earlier worker, which may not have noticed yet that its sweep has ended
    resume(out, trust=passed_on(config.env))


def _failed(out: Path, sentence: str) -> int:
    try:
        write_failure(out, sentence)
    except UsageError as error:  # e.g. the disk is full
        print(error, file=sys.stderr)
    print(sentence, file=sys.stderr)
    return 1


def _end_when_alone() -> None:
    # the descriptor rather than sys.stdin, whose lock would delay a normal interpreter shutdown
    while os.read(0, 1024):
        continue
    os._exit(ORPHANED)


if __name__ == "__main__":
    sys.exit(main())
