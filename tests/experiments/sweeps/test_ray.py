"""Sweeps on a real Ray cluster of several nodes, all on this machine."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.experiments.small import COMMAND, SMALL, rows
from tests.experiments.sweeps.processes import fact_of, processes

from consmarl.cli import main
from consmarl.experiments.configuration.config import TrainConfig
from consmarl.experiments.sweeps.plan import Sweep, variants_of
from consmarl.experiments.train import train

pytest.importorskip("ray")

LONGER = SMALL | dict(episodes=1_600)
RUNS = Sweep(("pgm-3ag",), variants_of(("iql",), {}), (0, 1), TrainConfig(**LONGER)).runs()


@pytest.fixture
def cluster():
    """A head that does no work, and two nodes with one core each."""
    process = subprocess.Popen(
        [sys.executable, Path(__file__).with_name("ray_cluster.py")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    with process:
        yield process
        process.stdin.close()


def address_of(cluster):
    for line in cluster.stdout:
        if line.startswith("address"):
            return line.split()[1]
    raise AssertionError("the cluster is gone")


def wait_until(has_happened, process, seconds=240):
    deadline = time.monotonic() + seconds
    while not has_happened():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def is_under_way(directory):
    metrics = directory / "metrics.jsonl"
    return metrics.exists() and 8 < metrics.read_text().count("\n") < 100


def node_of(directory):
    """Return the Ray processes above a run's worker: its node first, then those that the node started for it."""
    (worker,) = [pid for pid in processes() if writes_to(pid, directory / "log.txt")]
    found = [int(fact_of(worker, 1))]
    while "raylet" not in Path(f"/proc/{found[0]}/comm").read_text():
        found.insert(0, int(fact_of(found[0], 1)))
        assert found[0] > 1
    return found


def writes_to(pid, path):
    try:
        return Path(f"/proc/{pid}/fd/1").readlink() == path
    except OSError:  # it has just ended
        return False


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes as Linux shows them")
def test_a_run_whose_node_dies_continues_elsewhere_with_the_same_result(cluster, tmp_path):
    words = (f"{name}={getattr(value, 'value', value)}" for name, value in LONGER.items() if name not in ("env", "set"))
    arguments = ["sweep", "--methods", "iql", "--envs", "pgm-3ag", "--seeds", "0", "1", "--set", *LONGER["set"],
                 "--options", *words]  # fmt: skip
    on_ray = [COMMAND, *arguments, "--out", tmp_path, "--ray", address_of(cluster)]
    sweep = subprocess.Popen(on_ray, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    with sweep:
        unlucky = tmp_path / RUNS[1].name
        wait_until(lambda: is_under_way(unlucky), sweep)
        for pid in node_of(unlucky):  # as if the machine lost power
            os.kill(pid, signal.SIGKILL)
        output = sweep.communicate(timeout=240)[0]
    assert sweep.returncode == 0, output
    assert "a Ray cluster of 3 nodes and 2 cores" in output
    assert len(json.loads((unlucky / "run.json").read_text())["sessions"]) == 2
    for run in RUNS:
        assert_same_but_for_rounding(tmp_path / run.name, train(run.config, tmp_path / "alone" / run.name))


def assert_same_but_for_rounding(left, right):
    """Compare rows. Ray gives its workers other threads, and on some machines sums then differ in their last digits."""
    for there, alone in zip(rows(left), rows(right), strict=True):
        assert there.keys() == alone.keys()
        for name, value in alone.items():
            assert there[name] == pytest.approx(value, rel=1e-4, abs=1e-4), name


def test_a_missing_cluster_is_reported_before_anything_is_written(tmp_path, capsys):
    assert main(["sweep", "--methods", "iql", "--envs", "pgm-3ag", "--out", str(tmp_path / "sweep"), "--ray",
                 "127.0.0.1:1"]) == 2  # fmt: skip
    assert "there is no Ray cluster at '127.0.0.1:1'" in capsys.readouterr().err
    assert not (tmp_path / "sweep").exists()
