"""The metrics file: the rows that a killed or damaged run left in it survive a resume."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from consmarl.environments.interface import Counters
from consmarl.experiments import train
from consmarl.experiments.configuration.config import TrainConfig
from consmarl.experiments.metrics import MetricsFile, row_of
from consmarl.metrics import Schema
from consmarl.training.parts import RoundReport


@pytest.fixture
def metrics(tmp_path):
    file = MetricsFile(tmp_path / "metrics.jsonl")
    for episode in (0, 100, 200, 300):
        file.append({"episode": episode, "return": float(episode), "seconds": 1.0})
    return file


def episodes(metrics):
    return [row["episode"] for row in metrics.rows()]


def test_rows_after_the_checkpoint_are_dropped_silently(metrics):
    before = metrics.path.read_bytes().splitlines()
    assert metrics.keep_until(200) is None
    assert metrics.path.read_bytes().splitlines() == before[:3]  # byte for byte
    assert metrics.keep_until(-1) is None
    assert episodes(metrics) == []


def test_a_partial_last_line_is_dropped_and_one_without_a_newline_is_kept(metrics):
    with metrics.path.open("ab") as file:
        file.write(b'{"episode": 400, "ret')
    assert metrics.keep_until(1_000) is None
    metrics.path.write_bytes(metrics.path.read_bytes().rstrip(b"\n"))
    assert metrics.keep_until(1_000) is None
    metrics.append({"episode": 400})
    assert episodes(metrics) == [0, 100, 200, 300, 400]


@pytest.mark.parametrize("damaged", [b'{"episode": 100, "ret', b"[]", b"\xff", b"[" * 100_000, b'{"episode": "x"}'])
def test_a_damaged_row_is_reported_and_no_other_row_is_lost(metrics, damaged):
    lines = metrics.path.read_bytes().split(b"\n")
    lines[1] = damaged
    metrics.path.write_bytes(b"\n".join(lines))
    said = metrics.keep_until(200)
    assert said.startswith(f"{metrics.path}: cannot read line 2, which ")
    assert said.endswith("; it is kept, and no other row is lost.")
    assert metrics.path.read_bytes().split(b"\n") == [lines[0], damaged, lines[2], b""]
    assert episodes(metrics) == [0, 200]


def test_a_missing_file_has_no_rows(tmp_path):
    metrics = MetricsFile(tmp_path / "metrics.jsonl")
    assert metrics.rows() == []
    assert metrics.keep_until(100) is None


def test_a_row_whose_seconds_are_not_a_number_is_damaged(metrics):
    with metrics.path.open("a") as file:
        file.write(json.dumps({"episode": 400, "seconds": "1"}) + "\n")
    assert "cannot read line 5, which has seconds that are not a number" in metrics.keep_until(400)


def test_resuming_reports_a_damaged_row_and_continues(metrics, monkeypatch, capsys):
    lines = metrics.path.read_bytes().split(b"\n")
    lines[1] = b"no JSON"
    metrics.path.write_bytes(b"\n".join(lines))
    (metrics.path.parent / "config.json").write_text(TrainConfig().to_json())
    # nothing is trained: rows are checked before training starts
    monkeypatch.setattr(TrainConfig, "trainer", lambda _: SimpleNamespace(metrics=Schema()))
    monkeypatch.setattr(train, "check_memory_to_resume", lambda *_: None)
    monkeypatch.setattr(train, "_newest_state", lambda *_: (None, 200))
    monkeypatch.setattr(train._Session, "finish", lambda *_: None)
    train.resume(metrics.path.parent)
    assert "cannot read line 2, which is not JSON" in " ".join(capsys.readouterr().err.split())
    assert episodes(metrics) == [0, 200]


def test_a_row_contains_undeclared_metrics_of_a_mechanism():
    rounds, agents, envs = 2, 3, 4
    whispers = np.arange(rounds * agents * envs).reshape(rounds, agents, envs)
    told = {"whispers": whispers, "breath_left": np.array([[9, 9, 9], [7, 8, 9]]), "noise": np.array([0.5, 0.25])}
    report = RoundReport(
        returns=np.zeros((rounds, envs, agents)), num_steps=np.ones((rounds, envs)), counters=Counters({}, {}),
        epsilon=np.zeros(rounds), learning={}, has_learned=np.zeros((rounds, envs), bool), sharing=told, records=(),
    )  # fmt: skip
    of_episodes = {"return", "agent_returns", "episode_steps", "epsilon"}
    shared = {name: value for name, value in row_of(report).items() if name not in of_episodes}
    # per episode and summed over agents: 3 times the mean of the 24 numbers from 0 to 23
    assert shared == {"whispers": 34.5, "breath_left": [7, 8, 9], "noise": 0.25}
