"""Sweeps on a real Ray cluster of several nodes, all on this machine."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.experiments.small import COMMAND, SMALL, assert_same_run

from consmarl.cli import main
from consmarl.experiments.config import TrainConfig
from consmarl.experiments.sweeps.plan import Sweep, variants_of
from consmarl.experiments.train import train

pytest.importorskip("ray")
pytestmark = pytest.mark.usefixtures("compile_quickly")

LONGER = SMALL | dict(episodes=1_600)
RUNS = Sweep(("pgm-3ag",), variants_of(("iql",), {}), (0, 1), TrainConfig(**LONGER)).runs()


@pytest.fixture
def cluster():
    """A head that does no work and two nodes with a core each."""
    process = subprocess.Popen(
        [sys.executable, Path(__file__).with_name("ray_cluster.py")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    with process:
        yield process
        process.stdin.close()


def heard(cluster, word):
    """Wait until the cluster says something that begins with a word, and return the rest."""
    for line in cluster.stdout:
        if line.startswith(word):
            return line.removeprefix(word).strip()
    raise AssertionError("the cluster is gone")


def wait_until(has_happened, process, seconds=240):
    deadline = time.monotonic() + seconds
    while not has_happened():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


def test_runs_whose_node_dies_go_on_elsewhere_and_end_as_if_nothing_had_happened(cluster, tmp_path):
    words = (f"{name}={getattr(value, 'value', value)}" for name, value in LONGER.items() if name not in ("env", "set"))
    arguments = ["sweep", "--methods", "iql", "--envs", "pgm-3ag", "--seeds", "0", "1", "--set", *LONGER["set"],
                 "--options", *words, "--out", tmp_path, "--ray", heard(cluster, "address")]  # fmt: skip
    sweep = subprocess.Popen([COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    with sweep:
        metrics = [tmp_path / run.name / "metrics.jsonl" for run in RUNS]
        wait_until(lambda: all(path.exists() and path.read_text().count("\n") > 8 for path in metrics), sweep)
        print("kill", file=cluster.stdin, flush=True)
        heard(cluster, "killed")
        output = sweep.communicate(timeout=240)[0]
    assert sweep.returncode == 0, output
    assert "a Ray cluster of 3 nodes and 2 cores" in output
    sessions = [json.loads((tmp_path / run.name / "run.json").read_text())["sessions"] for run in RUNS]
    assert sorted(len(each) for each in sessions) == [1, 2]  # one of them was on the node that died
    for run in RUNS:
        assert_same_run(tmp_path / run.name, train(run.config, tmp_path / "alone" / run.name))


def test_a_cluster_that_is_not_there_gets_a_sentence(tmp_path, capsys):
    assert main(["sweep", "--methods", "iql", "--envs", "pgm-3ag", "--out", str(tmp_path / "sweep"), "--ray",
                 "127.0.0.1:1"]) == 2  # fmt: skip
    assert "there is no Ray cluster at '127.0.0.1:1'" in capsys.readouterr().err
    assert not (tmp_path / "sweep").exists()
