"""Sweeps: nothing runs twice, a run that fails does not affect others, and killing a sweep loses nothing."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from tests.calling import consmarl
from tests.experiments.small import COMMAND, ONLY_READING, SMALL, assert_same_run, rows
from tests.experiments.sweeps.processes import children_of, is_alive, is_paused

from consmarl.errors import UsageError
from consmarl.experiments.configuration.config import TrainConfig
from consmarl.experiments.directory import held, write_failure
from consmarl.experiments.interrupts import InterruptedRun, heeding_interrupts, holding_interrupts
from consmarl.experiments.sweeps.conduct import conduct
from consmarl.experiments.sweeps.job import Job, Outcome, WorkerProcess, outcome_of
from consmarl.experiments.sweeps.local import LocalWorkers
from consmarl.experiments.sweeps.plan import Sweep, variants_of
from consmarl.experiments.sweeps.ray_workers import STOP, run_job
from consmarl.experiments.train import resume, train

OPTIONS = {name: getattr(value, "value", value) for name, value in SMALL.items() if name not in ("env", "set")}
# one method, so that one compiled program serves all runs; the state of CONS includes that of IQL
RUNS = Sweep(("pgm-3ag",), variants_of(("cons",), {}), (0, 1, 2), TrainConfig(**SMALL)).runs()
ARGUMENTS = [
    "sweep", "--methods", "cons", "--envs", "pgm-3ag", "--seeds", "0", "1", "2", "--set", *SMALL["set"],
    "--options", *(f"{name}={value}" for name, value in OPTIONS.items()), "--out",
]  # fmt: skip


class InstantWorkers:
    """Workers that finish as soon as they start, with outcomes that the test chooses."""

    description = "instant workers"

    def __init__(self, outcomes=None):
        self.outcomes, self.started, self.unread = outcomes or {}, [], []

    def has_room(self):
        return not self.unread

    def start(self, job):
        self.started.append(job.name)
        outcome = self.outcomes.get(job.name, Outcome("finished"))
        job.out.mkdir(parents=True, exist_ok=True)
        if outcome.state == "finished":
            (job.out / "result.json").write_text("{}")
        self.unread.append((job, outcome))

    def ended(self):
        while self.unread:
            yield self.unread.pop()

    def stop(self):
        raise AssertionError("nobody asked for it")


def test_a_failed_run_is_reported_and_only_it_runs_again(tmp_path, capsys):
    bad = RUNS[1].name
    result = conduct(RUNS, tmp_path, InstantWorkers({bad: Outcome("failed", "ran out of luck")}))
    assert result.states == Counter(finished=2, failed=1)
    assert result.errors == {bad: "ran out of luck"}
    assert not result.is_complete
    assert f"{bad}: failed: ran out of luck" in capsys.readouterr().err
    again = InstantWorkers()
    assert conduct(RUNS, tmp_path, again).is_complete
    assert again.started == [bad]


def test_a_run_that_cannot_start_does_not_abort_the_sweep(tmp_path):
    runs = Sweep(("pgm-3ag",), variants_of(("iql",), {}), (0,), TrainConfig(**SMALL)).runs()
    (tmp_path / "pgm-3ag").write_text("a file where a directory should be")
    result = conduct(runs, tmp_path, LocalWorkers(1))
    assert result.states == Counter(failed=1)
    assert "cannot write to" in result.errors[runs[0].name]


def test_a_finished_sweep_has_nothing_to_do(tmp_path):
    conduct(RUNS, tmp_path, InstantWorkers())
    again = InstantWorkers()
    assert conduct(RUNS, tmp_path, again).is_complete
    assert again.started == []


def test_starting_a_sweep_that_is_in_progress_is_refused(tmp_path):
    with held(tmp_path, "a sweep"), pytest.raises(UsageError, match=r"a sweep in .* is in progress"):
        conduct(RUNS, tmp_path, InstantWorkers())


def test_exit_codes_become_outcomes_with_messages(tmp_path):
    assert outcome_of(tmp_path, 0) == Outcome("finished")
    assert outcome_of(tmp_path, 130) == Outcome("stopped")
    assert outcome_of(tmp_path, -9) == Outcome("failed", "killed by signal 9 (SIGKILL)")
    assert outcome_of(tmp_path, 7).error == "ended with code 7: no output"
    (tmp_path / "log.txt").write_text("first\nMemoryError: no room\n\n")
    assert outcome_of(tmp_path, 7).error == "ended with code 7: MemoryError: no room"
    write_failure(tmp_path, "no space left.")
    assert outcome_of(tmp_path, 1) == Outcome("failed", "no space left.")


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The runs of the sweep, trained one by one without it."""
    directory = tmp_path_factory.mktemp("alone")
    for run in RUNS:
        train(run.config, directory / run.name)
    return directory


def wait_until(has_happened, seconds=600):
    deadline = time.monotonic() + seconds
    while not has_happened():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def paused_children_of(parent):
    """Pause the live children of a process; return them once all are paused, and an empty list until then."""
    children = [pid for pid in children_of(parent) if is_alive(pid)]
    for child in children:
        with suppress(ProcessLookupError):  # it has just ended
            os.kill(child, signal.SIGSTOP)
    return children if all(is_paused(child) for child in children) else []


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes as Linux shows them")
def test_a_killed_sweep_leaves_no_process_and_repeating_it_gives_the_same_rows(alone, tmp_path):
    settings = dict(stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=os.environ | ONLY_READING)
    sweep = subprocess.Popen([COMMAND, *ARGUMENTS, tmp_path], **settings)
    with sweep:
        second = tmp_path / RUNS[1].name / "metrics.jsonl"
        wait_until(lambda: second.exists() and second.read_text().count("\n") > 20)
        # paused workers cannot finish their runs, no matter how long the rest of this test takes
        wait_until(lambda: paused_children_of(sweep.pid))
        repeated = consmarl(*ARGUMENTS, tmp_path)
        assert repeated.returncode == 2
        assert "a sweep in" in repeated.stderr
        assert "is in progress" in repeated.stderr
        killed, *others = paused_children_of(sweep.pid)
        # kill one worker, as a system that runs out of memory would: the sweep continues and reports it
        os.kill(killed, signal.SIGKILL)
        wait_until(lambda: "SIGKILL" in sweep.stdout.readline())
        wait_until(lambda: children_of(sweep.pid) and killed not in children_of(sweep.pid))
        workers = children_of(sweep.pid)
        sweep.kill()
        for worker in others:
            os.kill(worker, signal.SIGCONT)
        sweep.communicate()
    wait_until(lambda: not any(is_alive(pid) for pid in workers), seconds=120)
    finished = consmarl(*ARGUMENTS, tmp_path)
    assert finished.returncode == 0, finished.stderr
    assert "3 finished" in finished.stdout
    for run in RUNS:
        assert_same_run(tmp_path / run.name, alone / run.name)


def test_a_run_that_cannot_be_resumed_reports_why(tmp_path):
    config = TrainConfig(**(SMALL | dict(episodes=8, evaluate_every=8, checkpoint_every=8)))
    runs = Sweep(("pgm-3ag",), variants_of(("iql",), {}), (0,), config).runs()
    directory = tmp_path / runs[0].name
    directory.mkdir(parents=True)
    (directory / "config.json").write_text(config.resolved().to_json())
    checkpoint = directory / "checkpoints" / "checkpoint-000000008"
    checkpoint.mkdir(parents=True)
    for name in ("state.safetensors", "manifest.json"):
        (checkpoint / name).write_text("{}")
    result = conduct(runs, tmp_path, LocalWorkers(1))
    assert result.states == Counter(failed=1)
    assert "there is no whole checkpoint" in result.errors[runs[0].name]
    assert "there is no whole checkpoint" in json.loads((directory / "failure.json").read_text())["error"]


def test_a_worker_exits_when_its_sweep_is_gone(tmp_path):
    worker = subprocess.Popen(
        [sys.executable, "-m", "consmarl.experiments.sweeps.worker"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env=os.environ | ONLY_READING,
    )  # fmt: skip
    job = {
        "out": str(tmp_path / "run"),
        "config": RUNS[0].config.to_json(),
        "label": None,
        "core": None,
        "command": ["x"],
    }
    worker.stdin.write(json.dumps(job).encode() + b"\n")
    worker.stdin.flush()
    wait_until(lambda: (tmp_path / "run" / "metrics.jsonl").exists())
    worker.stdin.close()
    assert worker.wait(timeout=120) == 3
    assert len(rows(tmp_path / "run")) < 61


def test_a_worker_stopped_during_its_imports_ends_as_stopped(tmp_path):
    job = Job("run", tmp_path / "run", RUNS[0].config.to_json())
    for seconds in (0.0, 0.3):  # before Python has started, and while JAX is being imported
        worker = WorkerProcess(job, core=None)
        time.sleep(seconds)
        worker.stop()
        worker.process.wait(timeout=120)
        assert worker.outcome() == Outcome("stopped"), (job.out / "log.txt").read_text()
    assert {path.name for path in job.out.iterdir()} == {"log.txt"}


def test_a_run_stopped_before_its_first_episode_compiles_nothing(tmp_path):
    with heeding_interrupts() as stop:
        stop.is_made = True
        with pytest.raises(InterruptedRun, match="stopped and saved after 0 episodes"):
            train(RUNS[0].config, tmp_path)
        with pytest.raises(InterruptedRun, match="stopped and saved after 0 episodes"):
            resume(tmp_path)
    assert rows(tmp_path) == []


def test_a_deferred_interrupt_is_handled_exactly_once():
    with holding_interrupts():
        signal.raise_signal(signal.SIGINT)  # to this thread: others here do not hold it back
        with heeding_interrupts() as stop:
            assert stop.is_made
            with heeding_interrupts() as inner:
                assert inner is stop
    with heeding_interrupts() as following:
        assert not following.is_made


def test_a_cluster_task_stops_on_the_stop_file_even_if_signals_are_blocked(tmp_path):
    job = Job("run", tmp_path / "run", RUNS[0].config.with_options({"episodes": 48_000}).to_json())

    def on_a_node():
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # as Ray's workers do
        return run_job(job)

    with ThreadPoolExecutor() as pool:
        outcome = pool.submit(on_a_node)
        wait_until(lambda: (job.out / "metrics.jsonl").exists() and len(rows(job.out)) > 3)
        (job.out / STOP).touch()
        assert outcome.result(timeout=240) == Outcome("stopped")
    assert (job.out / "checkpoints").is_dir()
    assert run_job(job) == Outcome("stopped")  # a run that has not started does not start either
