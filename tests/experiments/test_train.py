"""Runs on disk: resumed ones equal uninterrupted ones, whatever moment they were killed at."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from consmarl.errors import UsageError
from consmarl.experiments.config import ExplorationKind, TrainConfig
from consmarl.experiments.evaluate import evaluate
from consmarl.experiments.policies import export_policy, load_policy
from consmarl.experiments.train import resume, train

SMALL = dict(
    env="pgm-3ag", set=("grid=4,4", "mining_steps=1", "stones_per_pile=2", "episode_limit=8", "view=3,3"),
    exploration=ExplorationKind.EPSILON_Z_GREEDY, episodes=480, hidden_size=8, batch_episodes=4, replay_episodes=40,
    warmup_steps=40, report_every=8, evaluate_every=40, evaluation_episodes=5, checkpoint_every=16,
)  # fmt: skip
COMMAND = Path(sys.executable).with_name("consmarl")
# Whoever may be killed must not be writing to the cache of compiled programs that all tests share.
COMPILING_ANEW = {"JAX_ENABLE_COMPILATION_CACHE": "false"}
ONLY_READING = {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "inf"}
COMPILING_QUICKLY = {"JAX_DISABLE_MOST_OPTIMIZATIONS": "true"}


def arguments(config):
    words = []
    for name, value in config.items():
        values = value if isinstance(value, tuple) else (getattr(value, "value", value),)
        words += [f"--{name.replace('_', '-')}", *map(str, values)]
    return words


def rows(directory):
    lines = (directory / "metrics.jsonl").read_text().splitlines()
    return [{name: value for name, value in json.loads(line).items() if name != "seconds"} for line in lines]


def assert_same_run(left, right):
    assert rows(left) == rows(right)
    ours, theirs = (load_file(directory / "policy.safetensors") for directory in (left, right))
    assert ours.keys() == theirs.keys()
    for name in ours:
        np.testing.assert_array_equal(ours[name], theirs[name])


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    return train(TrainConfig(**SMALL), tmp_path_factory.mktemp("run") / "whole")


def test_a_run_killed_at_random_moments_ends_as_if_it_had_not_been(uninterrupted, tmp_path):
    out = tmp_path / "killed"
    rng = random.Random(0)
    command, settings = [COMMAND, "train", "--out", out, *arguments(SMALL)], COMPILING_ANEW
    num_killed = 0
    for attempt in range(12):
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=os.environ | settings
        )
        with process:
            if attempt < 5:
                wait_for_rows(
                    out, process, len(rows(out)) + rng.randint(1, 5) if (out / "metrics.jsonl").exists() else 3
                )
                time.sleep(rng.random() * 0.05)
                process.send_signal(signal.SIGKILL)
            errors = process.communicate(timeout=120)[1]
        num_killed += process.returncode == -signal.SIGKILL
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL, errors
        command, settings = [COMMAND, "resume", out], ONLY_READING
    assert num_killed >= 3
    assert_same_run(out, uninterrupted)


def wait_for_rows(out, process, count, seconds=120):
    """Wait until the run has written so many rows or is over."""
    deadline = time.monotonic() + seconds
    path = out / "metrics.jsonl"
    while process.poll() is None and time.monotonic() < deadline:
        if path.exists() and path.read_bytes().count(b"\n") >= count:
            return
        time.sleep(0.005)


def test_a_finished_run_resumes_to_itself(uninterrupted, tmp_path):
    copy = tmp_path / "copy"
    subprocess.check_call(["cp", "-r", uninterrupted, copy])
    (copy / "policy.safetensors").unlink()
    resume(copy)
    assert_same_run(copy, uninterrupted)


def test_a_damaged_checkpoint_is_named_and_the_one_before_used(uninterrupted, tmp_path, capsys):
    copy = tmp_path / "copy"
    subprocess.check_call(["cp", "-r", uninterrupted, copy])
    newest = max((copy / "checkpoints").glob("checkpoint-*"))
    with (newest / "state.safetensors").open("r+b") as file:
        file.truncate(100)
    resume(copy)
    assert newest.name in capsys.readouterr().err.replace("\n", "")
    assert_same_run(copy, uninterrupted)


def test_metrics_have_a_row_for_every_report_and_evaluations_in_between(uninterrupted):
    written = rows(uninterrupted)
    assert [row["episode"] for row in written] == list(range(0, 481, 8))
    assert [row["episode"] for row in written if "evaluation_return" in row] == list(range(0, 481, 40))
    assert {"return", "agent_returns", "gold_mined", "stones_taken", "epsilon", "loss", "td_error"} <= set(written[-1])


def test_no_second_run_begins_in_a_directory_that_has_one(uninterrupted):
    with pytest.raises(UsageError, match="consmarl resume"):
        train(TrainConfig(**SMALL), uninterrupted)


def test_a_directory_without_a_run_is_not_resumed(tmp_path):
    with pytest.raises(UsageError, match="not the directory of a run"):
        resume(tmp_path)


def test_a_policy_file_plays_as_the_run_did(uninterrupted, tmp_path):
    parameters, config = load_policy(uninterrupted / "policy.safetensors")
    assert config == TrainConfig(**SMALL)
    copy = export_policy(tmp_path / "copy.safetensors", parameters, config, 480)
    assert evaluate(copy, 50, 3) == evaluate(uninterrupted, 50, 3)
    printed = subprocess.check_output([COMMAND, "evaluate", uninterrupted, "--episodes", "50"], text=True)
    assert "team return" in printed


def test_an_unfinished_run_can_be_exported(uninterrupted, tmp_path):
    out = tmp_path / "new" / "policy.safetensors"
    subprocess.check_call([COMMAND, "export", uninterrupted, "--out", out])
    ours, theirs = load_file(out), load_file(uninterrupted / "policy.safetensors")
    assert all(np.array_equal(ours[name], theirs[name]) for name in theirs)


def test_a_run_on_two_devices_resumes_and_exports(tmp_path):
    out = tmp_path / "double"
    settings = SMALL | dict(episodes=32, evaluate_every=32, devices=2)
    quickly = dict(stderr=subprocess.DEVNULL, env=os.environ | COMPILING_QUICKLY)
    subprocess.check_call([COMMAND, "train", "--out", out, *arguments(settings)], **quickly)
    whole = rows(out), load_file(out / "policy.safetensors")
    newest = max((out / "checkpoints").glob("checkpoint-*"))
    subprocess.check_call(["rm", "-r", newest, out / "policy.safetensors"])
    subprocess.check_call([COMMAND, "resume", out], **quickly)
    again = rows(out), load_file(out / "policy.safetensors")
    assert whole[0] == again[0]
    assert all(np.array_equal(whole[1][name], again[1][name]) for name in whole[1])
    subprocess.check_call([COMMAND, "export", out, "--out", tmp_path / "policy.safetensors"], **quickly)


def test_a_foreign_file_is_no_policy(tmp_path):
    foreign = tmp_path / "foreign.safetensors"
    foreign.write_bytes(b"\x80\x04K\x01.")  # a pickle
    with pytest.raises(UsageError, match="not a safetensors file"):
        load_policy(foreign)
    with pytest.raises(UsageError, match="there is no policy file"):
        load_policy(tmp_path / "none.safetensors")


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes anywhere")
def test_a_read_only_directory_gets_one_sentence(tmp_path):
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
def test_contradictory_settings_get_one_clear_sentence(change, sentence):
    with pytest.raises(UsageError, match=sentence):
        TrainConfig(**(SMALL | change))


def test_a_configuration_survives_being_written_and_read():
    config = TrainConfig(**SMALL)
    assert TrainConfig.from_json(config.to_json()) == config
    with pytest.raises(UsageError, match="no setting 'epsiodes': did you mean 'episodes'"):
        TrainConfig.from_json('{"epsiodes": 5}')
    with pytest.raises(UsageError, match="no value 'epsilon': did you mean"):
        TrainConfig.from_json('{"exploration": "epsilon"}')
    with pytest.raises(UsageError, match="not JSON"):
        TrainConfig.from_json("episodes = 5")


def test_the_command_line_says_what_is_wrong(tmp_path):
    result = subprocess.run([COMMAND, "train", "--env", "pgm-9ag"], capture_output=True, text=True, cwd=tmp_path)
    assert result.returncode == 2
    assert "no world 'pgm-9ag': did you mean" in result.stderr
    assert list(tmp_path.iterdir()) == []
