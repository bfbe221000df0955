"""What sweeps and reports return when they are called from Python."""

import json

import numpy as np
import pytest

import consmarl
from consmarl import UsageError
from consmarl.experiments.sweeps import api
from tests.reports.handmade import write_run


@pytest.fixture
def runs(tmp_path):
    """Handmade runs: two methods with three seeds each."""
    for method, base in (("iql", 1.0), ("cons", 3.0)):
        for seed in range(3):
            rows = [0.0, base, base + seed]
            write_run(tmp_path / "runs" / method / str(seed), method=method, seed=seed, rows=rows)
    return tmp_path / "runs"


def test_a_report_returns_statistics_and_writes_nothing_by_default(runs, tmp_path):
    before = sorted(path for path in tmp_path.rglob("*"))
    report = consmarl.report(runs)
    assert report.returns() == {"IQL": {0: 1.0, 1: 2.0, 2: 3.0}, "CONS": {0: 3.0, 1: 4.0, 2: 5.0}}
    first, second = report.finals()
    assert (first.label, first.mean.estimate, second.label, second.mean.estimate) == ("CONS", 4.0, "IQL", 2.0)
    (comparison,) = report.comparisons()
    assert (comparison.left, comparison.right, comparison.difference.estimate) == ("CONS", "IQL", 2.0)
    curve = report.curve("CONS")
    assert curve.values.shape == (3, len(curve.episodes))
    np.testing.assert_allclose(curve.mean.estimate, curve.values.mean(axis=0))
    assert report.files == []
    assert sorted(path for path in tmp_path.rglob("*")) == before


def test_a_report_writes_the_requested_files(runs, tmp_path):
    heard = []
    report = consmarl.report(runs, out=tmp_path / "page.html", csv=str(tmp_path / "csv"), tell=heard.append)
    assert (tmp_path / "page.html").is_file()
    assert report.files[0] == tmp_path / "page.html"
    assert all(path.is_file() for path in report.files)
    assert heard == [f"wrote {path}" for path in report.files]


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (lambda report: report.curve("VDN"), "there is no group 'VDN': choose from '"),
        (lambda report: report.finals("cleanup"), "say which environment: choose from 'pgm-3ag'"),
        (lambda _: consmarl.report(), "name directories of runs"),
        (
            lambda _: consmarl.report("runs", x="weeks"),
            "x has no value 'weeks': choose from 'episodes', 'steps', 'time'",
        ),
    ],
)
def test_invalid_queries_are_refused(runs, ask, sentence):
    report = consmarl.report(runs)
    with pytest.raises(UsageError, match=sentence):
        ask(report)


def test_a_sweep_from_python_is_planned_as_on_the_command_line(monkeypatch, tmp_path):
    planned = []
    monkeypatch.setattr(api, "carried_out", lambda runs, out, _: planned.append((runs, out)))
    consmarl.sweep(["iql", "cons"], ["pgm-3ag"], range(2), options={"episodes": 400, "share.temperature": 0.3},
                   vary={"discount": [0.9, 0.99]}, set={"grid": (6, 6)}, out=tmp_path)  # fmt: skip
    ((runs, out),) = planned
    assert out == tmp_path
    assert [run.name for run in runs[:3]] == [
        "pgm-3ag/iql-discount=0.9/seed-0", "pgm-3ag/iql-discount=0.99/seed-0", "pgm-3ag/cons-discount=0.9/seed-0",
    ]  # fmt: skip
    assert {run.config.set for run in runs} == {("grid=(6,6)",)}
    assert {run.config.share.temperature for run in runs} == {None, 0.3}


def test_a_sweep_from_python_returns_the_result_of_each_run(tmp_path):
    settings = {"episodes": 8, "warmup_steps": 10, "evaluation_episodes": 2, "final_episodes": 2, "hidden_size": 8}
    done = consmarl.sweep(
        ["iql"], ["pgm-3ag"], [0], options=settings, set={"episode_limit": 6}, out=tmp_path, workers=1
    )
    (run,) = done.runs
    assert (run.state, run.error, done.is_complete) == ("finished", None, True)
    assert run.result == json.loads((tmp_path / "pgm-3ag" / "iql" / "seed-0" / "result.json").read_text())
    again = consmarl.sweep(["iql"], ["pgm-3ag"], [0], options=settings, set={"episode_limit": 6}, out=tmp_path)
    assert again.runs == done.runs


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        (dict(), r"say what to run: methods="),
        (dict(methods=["iq"]), "there is no method 'iq': did you mean 'iql'"),
        (dict(methods=["iql"], scale=0.5), "scale shortens a study"),
        (dict(methods=["iql"], study="pgm-3ag"), "a study has its own methods"),
        (dict(study="pgm-3ag", options={"method": "iql"}), "has its own method"),
        (dict(methods=["iql"], workers=0), "workers must be a whole number of at least 1"),
    ],
)
def test_invalid_sweeps_are_refused(wanted, sentence, tmp_path):
    with pytest.raises(UsageError, match=sentence):
        consmarl.sweep(**wanted, out=tmp_path)
