"""Each extension example is one file; what the files register can be trained, resumed, swept and reported."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.calling import consmarl

EXAMPLES = Path(__file__).parents[2] / "examples" / "extending"
NAMES = ("fishing", "hysteretic", "importance_advising", "boltzmann")
PLUGINS = [word for name in NAMES for word in ("--plugin", str(EXAMPLES / f"{name}.py"))]
SETTINGS = {
    "env": "fishing-large", "method": "hysteretic", "learn.hysteresis": 0.6, "sharing": "importance",
    "share.threshold": 0.1, "share.start_episode": 8, "exploration": "boltzmann", "explore.temperature": 0.3,
    "episodes": 24, "evaluation_episodes": 4, "final_episodes": 4, "warmup_steps": 100, "replay_episodes": 40,
    "hidden_size": 8, "checkpoint_every": 12, "report_every": 4,
}  # fmt: skip
WORDS = [word for name, value in SETTINGS.items() for word in (f"--{name.replace('_', '-')}", str(value))]


@pytest.fixture(autouse=True)
def _plugins_are_forgotten(unregistered):  # noqa: ARG001
    """Forget the plugins after each test, so that each starts like a new process."""
    yield
    for name in NAMES:
        sys.modules.pop(name, None)


def done(*words):
    """Run a command with all four plugins, and check that it succeeds."""
    result = consmarl(*PLUGINS, *words)
    assert result.returncode == 0, result.stderr
    return result


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A finished run with a custom environment, learner, way of sharing and exploration.

    It is trained in a process of its own, as users start it.
    """
    out = tmp_path_factory.mktemp("extending") / "run"
    command = [sys.executable, "-m", "consmarl.cli", *PLUGINS, "train", *WORDS, "--out", str(out)]
    trained = subprocess.run(command, capture_output=True, text=True, check=False)
    assert trained.returncode == 0, trained.stderr
    return out


def test_the_four_extensions_work_together(run):
    config, result = (json.loads((run / name).read_text()) for name in ("config.json", "result.json"))
    assert (config["method"], config["sharing"], config["exploration"]) == ("hysteretic", "importance", "boltzmann")
    assert config["learn"]["hysteresis"] == 0.6
    assert config["share"]["threshold"] == 0.1
    assert config["explore"]["temperature"] == 0.3
    assert {"fish_caught", "large_fish_caught"} <= set(result)
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert sum(row.get("requests", 0) for row in rows) > 0
    assert json.loads((run / "run.json").read_text())["plugins"]


def test_a_run_with_extensions_can_be_resumed_drawn_and_reported(run, tmp_path):
    for name in ("result.json", "policy.safetensors"):
        (run / name).rename(tmp_path / name)
    done("resume", run)
    again, before = (json.loads((place / "result.json").read_text())["return"] for place in (run, tmp_path))
    assert again == before
    done("report", run, "--out", tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "Fish caught" in page
    assert "hysteretic + importance" in page
    assert (run / "policy.gif").is_file()


@pytest.mark.parametrize("command", ["evaluate", "resume", "watch"])
def test_a_run_is_refused_without_its_plugins(command, run):
    refused = consmarl(command, run)
    assert refused.returncode == 2
    assert "was made with" in refused.stderr
    assert "--plugin" in refused.stderr


def test_a_sweep_in_other_processes_gives_the_same_result(run, tmp_path):
    options = [f"{name}={value}" for name, value in SETTINGS.items() if name not in ("env", "method")]
    done("sweep", "--methods", "hysteretic", "--envs", SETTINGS["env"], "--seeds", 0, "--options", *options,
         "--out", tmp_path, "--workers", 1)  # fmt: skip
    swept = tmp_path / SETTINGS["env"] / "hysteretic" / "seed-0"
    ours, alone = (json.loads((place / "result.json").read_text()) | {"seconds": None} for place in (swept, run))
    assert ours == alone


def test_every_environment_that_a_file_registers_is_listed():
    listed = consmarl(*PLUGINS, "list", "--ids").stdout.split()
    assert {"fishing", "fishing-large"} <= set(listed)
