"""Runs on disk: resumed runs equal uninterrupted ones, no matter when they were killed."""

import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from safetensors.numpy import load_file
from tests.calling import consmarl
from tests.experiments.small import (
    COMMAND,
    COMPILING_ANEW,
    ONLY_READING,
    SMALL,
    arguments,
    assert_same_run,
    rows,
    wait_for_rows,
)

from consmarl.errors import UsageError
from consmarl.experiments.configuration.config import TrainConfig
from consmarl.experiments.evaluate import evaluate
from consmarl.experiments.policies import export_policy, load_policy
from consmarl.experiments.train import resume, train


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    return train(TrainConfig(**SMALL), tmp_path_factory.mktemp("run") / "whole")


def test_a_run_killed_at_random_moments_ends_like_an_uninterrupted_one(uninterrupted, tmp_path):
    out = tmp_path / "killed"
    rng = random.Random(0)
    command, settings = [COMMAND, "train", "--out", out, *arguments(SMALL)], COMPILING_ANEW
    num_killed = 0
    for attempt in range(8):
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=os.environ | settings
        )
        with process:
            if attempt < 3:
                wait_for_rows(
                    out, process, len(rows(out)) + rng.randint(1, 5) if (out / "metrics.jsonl").exists() else 3
                )
                time.sleep(rng.random() * 0.05)
                process.send_signal(signal.SIGKILL)
            errors = process.communicate(timeout=600)[1]
        num_killed += process.returncode == -signal.SIGKILL
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL, errors
        command, settings = [COMMAND, "resume", out], ONLY_READING
    assert num_killed >= 2
    assert_same_run(out, uninterrupted)


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_saves_itself_and_says_how_to_continue(uninterrupted, tmp_path, signal_number):
    out = tmp_path / "stopped"
    command = [COMMAND, "train", "--out", out, *arguments(SMALL | dict(checkpoint_every=480))]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ | ONLY_READING)
    with process:
        wait_for_rows(out, process, 3)
        process.send_signal(signal_number)
        errors = process.communicate(timeout=240)[1]
    assert process.returncode == 130, errors
    stopped_after = rows(out)[-1]["episode"]
    assert stopped_after < 480
    assert f"stopped and saved after {stopped_after} episodes: continue with `consmarl resume {out}`" in errors
    assert [path.name for path in (out / "checkpoints").iterdir()] == [f"checkpoint-{stopped_after:09d}"]
    assert consmarl("resume", out).returncode == 0
    assert_same_run(out, uninterrupted)


def test_a_second_interrupt_stops_at_once_and_loses_nothing_that_was_saved(uninterrupted, tmp_path):
    out = tmp_path / "stopped"
    process = subprocess.Popen(
        [COMMAND, "train", "--out", out, *arguments(SMALL)],
        stderr=subprocess.PIPE, text=True, env=os.environ | COMPILING_ANEW,
    )  # fmt: skip
    with process:
        wait_for_rows(out, process, 1)  # the next chunk has to be compiled first, which takes seconds
        process.send_signal(signal.SIGINT)
        assert "interrupt again to stop at once" in process.stderr.readline() + process.stderr.readline()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=2)
    assert process.returncode == 130
    resume(out)
    assert_same_run(out, uninterrupted)


def test_resuming_a_finished_run_changes_nothing(uninterrupted, tmp_path):
    copy = tmp_path / "copy"
    subprocess.check_call(["cp", "-r", uninterrupted, copy])
    (copy / "policy.safetensors").unlink()
    resume(copy)
    assert_same_run(copy, uninterrupted)


def test_a_damaged_checkpoint_is_reported_and_the_previous_one_used(uninterrupted, tmp_path, capsys):
    copy = tmp_path / "copy"
    subprocess.check_call(["cp", "-r", uninterrupted, copy])
    newest = max((copy / "checkpoints").glob("checkpoint-*"))
    with (newest / "state.safetensors").open("r+b") as file:
        file.truncate(100)
    resume(copy)
    assert newest.name in capsys.readouterr().err.replace("\n", "")
    assert_same_run(copy, uninterrupted)


def test_metrics_have_a_row_for_every_report_and_evaluations_at_their_period(uninterrupted):
    written = rows(uninterrupted)
    assert [row["episode"] for row in written] == list(range(0, 481, 8))
    assert [row["episode"] for row in written if "evaluation_return" in row] == list(range(0, 481, 40))
    assert {"return", "agent_returns", "gold_mined", "stones_taken", "epsilon", "loss", "td_error"} <= set(written[-1])


def test_default_periods_fit_the_run():
    assert (TrainConfig().chunk_episodes, TrainConfig().evaluation_period, TrainConfig().checkpoint_period) == (
        200, 1_000, 5_000)  # fmt: skip
    for episodes in (1, 30, 500, 2_000, 8_000, 12_345, 100_000):
        config = TrainConfig(episodes=episodes)
        assert episodes % config.chunk_episodes == 0
        assert config.chunk_episodes % config.round_episodes == 0
        assert config.evaluation_period % config.chunk_episodes == 0
        assert config.checkpoint_period % config.chunk_episodes == 0


def test_training_into_the_directory_of_another_run_is_refused(uninterrupted):
    with pytest.raises(UsageError, match=r"consmarl resume .* or start another with --out"):
        train(TrainConfig(**SMALL), uninterrupted)


def test_resuming_a_directory_without_a_run_is_refused(tmp_path):
    with pytest.raises(UsageError, match="not the directory of a run"):
        resume(tmp_path)


def test_a_policy_file_plays_the_same_as_its_run(uninterrupted, tmp_path):
    parameters, config = load_policy(uninterrupted / "policy.safetensors")
    assert config == TrainConfig(**SMALL).resolved()
    copy = export_policy(tmp_path / "copy.safetensors", parameters, config, 480)
    assert evaluate(copy, 50, 3) == evaluate(uninterrupted, 50, 3)
    printed = consmarl("evaluate", uninterrupted, "--episodes", "50").stdout
    assert "team return" in printed
    assert "agents: each on its own" in printed


def test_an_exported_policy_is_the_one_that_the_run_wrote(uninterrupted, tmp_path):
    out = tmp_path / "new" / "policy.safetensors"
    assert consmarl("export", uninterrupted, "--out", out).returncode == 0
    ours, theirs = load_file(out), load_file(uninterrupted / "policy.safetensors")
    assert all(np.array_equal(ours[name], theirs[name]) for name in theirs)


# One process runs all three commands: devices are set up once per process, before JAX is used.
ON_TWO_DEVICES = """
import shutil, sys
from pathlib import Path
from consmarl.cli import main

out, *words = sys.argv[1:]
assert main(["train", "--out", out, *words]) == 0
shutil.copytree(out, f"{out}-whole")
shutil.rmtree(max(Path(out, "checkpoints").glob("checkpoint-*")))
Path(out, "policy.safetensors").unlink()
assert main(["resume", out]) == 0
assert main(["export", out, "--out", f"{out}.safetensors"]) == 0
import jax
print(len(jax.devices()))
"""


def test_a_run_on_two_devices_resumes_and_exports(tmp_path):
    out, whole = tmp_path / "double", tmp_path / "double-whole"
    settings = SMALL | dict(episodes=32, evaluate_every=32, devices=2)
    command = [sys.executable, "-c", ON_TWO_DEVICES, out, *arguments(settings)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[-1] == "2"
    assert_same_run(out, whole)
    ours, theirs = (load_file(path) for path in (tmp_path / "double.safetensors", whole / "policy.safetensors"))
    assert all(np.array_equal(ours[name], theirs[name]) for name in theirs)


def test_a_file_of_another_format_is_refused_as_a_policy(tmp_path):
    foreign = tmp_path / "foreign.safetensors"
    foreign.write_bytes(b"\x80\x04K\x01.")  # a pickle
    with pytest.raises(UsageError, match="not a safetensors file"):
        load_policy(foreign)
    with pytest.raises(UsageError, match="there is no policy file"):
        load_policy(tmp_path / "none.safetensors")


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes anywhere")
def test_a_read_only_directory_raises_a_clear_error(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(UsageError, match="cannot write"):
        train(TrainConfig(**SMALL), tmp_path / "run")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (dict(episodes=0), "episodes must be a whole number of at least 1"),
        (dict(report_every=6, num_envs=4), "multiple of num_envs"),
        (dict(episodes=250), "multiple of report_every"),
        (dict(discount=1.5), "between 0 and 1"),
        (dict(learning_rate=0.0), "above 0"),
    ],
)
def test_invalid_settings_are_refused(change, sentence):
    with pytest.raises(UsageError, match=sentence):
        TrainConfig(**(SMALL | change))


def test_a_configuration_survives_a_round_trip_through_json():
    config = TrainConfig(**SMALL)
    assert TrainConfig.from_json(config.to_json()) == config
    with pytest.raises(UsageError, match="no setting 'epsiodes': did you mean 'episodes'"):
        TrainConfig.from_json('{"epsiodes": 5}')
    with pytest.raises(UsageError, match="no value 'epsilon': did you mean"):
        TrainConfig.from_json('{"exploration": "epsilon"}')
    with pytest.raises(UsageError, match="not JSON"):
        TrainConfig.from_json("episodes = 5")
    with pytest.raises(UsageError, match="set must be a list"):
        TrainConfig.from_json('{"set": "grid=4,4"}')
    with pytest.raises(UsageError, match="tensorboard must be true or false, not 'no'"):
        TrainConfig.from_json('{"tensorboard": "no"}')


def test_the_command_line_reports_an_unknown_environment(tmp_path):
    result = consmarl("train", "--env", "pgm-9ag", cwd=tmp_path)
    assert result.returncode == 2
    assert "no world 'pgm-9ag': did you mean" in result.stderr
    assert list(tmp_path.iterdir()) == []
