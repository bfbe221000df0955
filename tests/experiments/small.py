"""A run small enough for tests, and helpers that read its directory."""

import json
import sys
import time
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

SMALL = dict(
    env="pgm-3ag", set=("grid=4,4", "mining_steps=1", "stones_per_pile=2", "episode_limit=8", "view=3,3"),
    exploration="epsilon-z-greedy", episodes=480, hidden_size=8, batch_episodes=4, replay_episodes=40,
    warmup_steps=40, report_every=8, evaluate_every=40, evaluation_episodes=5, final_episodes=5,
    checkpoint_every=16,
)  # fmt: skip
COMMAND = Path(sys.executable).with_name("consmarl")
# A process that may be killed must not write to the compilation cache that all tests share.
COMPILING_ANEW = {"JAX_ENABLE_COMPILATION_CACHE": "false"}
ONLY_READING = {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "inf"}


def arguments(config):
    words = []
    for name, value in config.items():
        values = value if isinstance(value, tuple) else (getattr(value, "value", value),)
        words += [f"--{name.replace('_', '-')}", *map(str, values)]
    return words


def rows(directory):
    lines = (directory / "metrics.jsonl").read_text().splitlines()
    return [{name: value for name, value in json.loads(line).items() if name != "seconds"} for line in lines]


def result(directory):
    return json.loads((directory / "result.json").read_text()) | {"seconds": None}


def assert_same_run(left, right):
    assert rows(left) == rows(right)
    assert result(left) == result(right)
    ours, theirs = (load_file(directory / "policy.safetensors") for directory in (left, right))
    assert ours.keys() == theirs.keys()
    for name in ours:
        np.testing.assert_array_equal(ours[name], theirs[name])


def wait_for_rows(out, process, count, seconds=600):
    """Wait until the run has written that many rows or has ended."""
    deadline = time.monotonic() + seconds
    path = out / "metrics.jsonl"
    while process.poll() is None and not (path.exists() and path.read_bytes().count(b"\n") >= count):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.005)
