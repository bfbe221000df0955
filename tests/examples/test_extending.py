"""The examples of extending: each is one file, and what it registers is trained, resumed, swept and reported."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples" / "extending"
NAMES = ("fishing", "hysteretic", "importance_advising", "boltzmann")
PLUGINS = [word for name in NAMES for word in ("--plugin", str(EXAMPLES / f"{name}.py"))]
SETTINGS = {
    "env": "fishing", "method": "hysteretic", "learn.hysteresis": 0.6, "sharing": "importance", "share.threshold": 0.1,
    "share.start_episode": 8, "exploration": "boltzmann", "explore.temperature": 0.3, "episodes": 40,
    "evaluation_episodes": 4, "final_episodes": 4, "warmup_steps": 100, "replay_episodes": 40, "hidden_size": 8,
}  # fmt: skip
WORDS = [word for name, value in SETTINGS.items() for word in (f"--{name.replace('_', '-')}", str(value))]


def consmarl(*words, plugins=PLUGINS, is_ok=True):
    command = [sys.executable, "-m", "consmarl.cli", *plugins, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"CONSMARL_CACHE": "off"})
    assert (done.returncode == 0) == is_ok, done.stderr
    return done.stdout if is_ok else done.stderr


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A finished run with a world, a learner, a way of sharing and an exploration of somebody's own."""
    out = tmp_path_factory.mktemp("extending") / "run"
    consmarl("train", *WORDS, "--checkpoint-every", 20, "--report-every", 4, "--out", out)
    return out


def test_all_four_go_together(run):
    config, result = (json.loads((run / name).read_text()) for name in ("config.json", "result.json"))
    assert (config["method"], config["sharing"], config["exploration"]) == ("hysteretic", "importance", "boltzmann")
    assert (config["learn"]["hysteresis"], config["share"]["threshold"], config["explore"]["temperature"]) == (
        0.6,
        0.1,
        0.3,
    )
    assert {"fish_caught", "large_fish_caught"} <= set(result)
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert sum(row.get("requests", 0) for row in rows) > 0
    assert json.loads((run / "run.json").read_text())["plugins"]


def test_they_are_resumed_drawn_and_reported(run, tmp_path):
    for name in ("result.json", "policy.safetensors"):
        (run / name).rename(tmp_path / name)
    consmarl("resume", run)
    assert (
        json.loads((run / "result.json").read_text())["return"]
        == json.loads((tmp_path / "result.json").read_text())["return"]
    )
    consmarl("report", run, "--out", tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "Fish caught" in page
    assert "hysteretic + importance" in page
    assert (run / "policy.gif").is_file()


def test_a_run_is_not_touched_without_its_plugins(run):
    for words in (("evaluate", run), ("resume", run), ("watch", run)):
        said = consmarl(*words, plugins=[], is_ok=False)
        assert "was made with" in said
        assert "--plugin" in said


def test_they_are_swept_by_processes_of_their_own(tmp_path):
    options = [f"{name}={value}" for name, value in SETTINGS.items() if name not in ("env", "method")]
    consmarl("sweep", "--methods", "hysteretic", "--envs", "fishing-large", "--seeds", 0, "--options", *options,
             "--out", tmp_path, "--workers", 1)  # fmt: skip
    result = json.loads((tmp_path / "fishing-large" / "hysteretic" / "seed-0" / "result.json").read_text())
    assert result["fish_caught"] >= 0
