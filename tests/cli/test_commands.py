"""What the command line writes, lists and refuses; one test goes through the real entry point."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.calling import consmarl as run

import consmarl


def frames_of(path):
    with Image.open(path) as image:
        for number in range(image.n_frames):
            image.seek(number)
            yield np.array(image.convert("RGB")), image.info["duration"]


def test_watch_writes_the_same_gif_of_the_whole_episode_in_every_process(tmp_path):
    words = ["watch", "--env", "pgm-3ag", "--fps", "10", "--out", "watch.gif"]
    entry_point = Path(sys.executable).with_name("consmarl")
    result = subprocess.run([entry_point, *words], capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert result.returncode == 0, result.stderr
    assert "wrote watch.gif" in result.stdout
    frames = list(frames_of(tmp_path / "watch.gif"))
    assert sum(duration for _, duration in frames) == (26 + 6) * 100  # the start, 25 steps, and 6 frames for the end
    assert not np.array_equal(frames[0][0], frames[-1][0])
    assert [path.name for path in tmp_path.iterdir()] == ["watch.gif"]

    assert run(*words[:-1], "new/same.gif", cwd=tmp_path).returncode == 0
    assert run(*words[:-1], "new/other.gif", "--seed", "1", cwd=tmp_path).returncode == 0
    first, same, other = ((tmp_path / name).read_bytes() for name in ("watch.gif", "new/same.gif", "new/other.gif"))
    assert first == same
    assert first != other


def test_settings_and_number_of_episodes_reach_the_environment(tmp_path):
    out = tmp_path / "set.gif"
    settings = ("--set", "num_agents=2", "grid=5,6", "episode_limit=3")
    result = run("watch", "--env", "pgm-3ag", "--out", str(out), "--episodes", "2", *settings)
    assert result.returncode == 0, result.stderr
    assert sum(duration for _, duration in frames_of(out)) == pytest.approx(2 * (4 + 6) * 1000 / 6, rel=0.05)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--env", "pgm-6g"), "no world 'pgm-6g': did you mean 'pgm-6ag'"),
        (("--out", "watch.mp3"), "ending in .gif"),
        (("--set", "num_agents"), "written as NAME=VALUE"),
        (("--set", "num_agent=2"), "did you mean 'num_agents'"),
        (("--set", "view=4,4"), "odd sides"),
        (("--fps", "0"), "fps must be a whole number of at least 1"),
        (("--fps", "200"), "at most 50"),
        (("--episodes", "0"), "episodes"),
        (("--view-of", "6"), "agent from 0 to 5"),
        (("--seed", "-1"), "seed"),
        (("--out", "/dev/null/x.gif"), "cannot write to /dev/null/x.gif"),
    ],
)
def test_invalid_input_is_refused_in_one_line_and_writes_nothing(arguments, sentence, tmp_path):
    result = run("watch", *arguments, cwd=tmp_path)
    assert result.returncode == 2
    assert sentence in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_list_shows_every_environment_and_its_parameters():
    listed = run("list")
    assert listed.returncode == 0
    assert all(id in listed.stdout for id in consmarl.world_ids())
    assert tuple(run("list", "--ids").stdout.split()) == consmarl.world_ids()
    parameters = run("list", "--env", "pgm-3ag").stdout
    assert "mining_steps" in parameters
    assert "(8, 9)" in parameters


def test_the_error_for_an_unknown_command_names_the_known_ones():
    result = run("wach")
    assert result.returncode == 2
    assert "watch" in result.stderr + result.stdout


# Shells make background jobs ignore interrupts, and the tests may be such a job: this restores the handler.
LISTENING_ENTRY_POINT = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from consmarl.cli import main
sys.exit(main())
"""


@pytest.mark.skipif(os.name == "nt", reason="interrupts are sent otherwise there")
def test_an_interrupt_leaves_an_existing_file_unchanged(tmp_path):
    out = tmp_path / "old.gif"
    out.write_bytes(b"precious")
    process = subprocess.Popen(
        [sys.executable, "-c", LISTENING_ENTRY_POINT, "watch", "--env", "ft-20", "--episodes", "100", "--out", out],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"JAX_ENABLE_COMPILATION_CACHE": "false"},  # an interrupt could leave half an entry behind
    )
    with process:
        try:
            wait_until(lambda: len(list(tmp_path.iterdir())) == 2)  # the temporary file exists
            time.sleep(3)  # until drawing has begun: compiled code may delay an interrupt
            errors = interrupted(process)
        finally:
            process.kill()
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    assert out.read_bytes() == b"precious"
    assert [path.name for path in tmp_path.iterdir()] == ["old.gif"]


def interrupted(process, tries=8):
    """Press Ctrl-C until the process ends, as an impatient user does; return what it wrote to stderr."""
    for _ in range(tries):
        process.send_signal(signal.SIGINT)
        try:
            return process.communicate(timeout=10)[1]
        except subprocess.TimeoutExpired:
            continue
    raise AssertionError("the process does not listen to interrupts")


def wait_until(has_happened, seconds=60):
    deadline = time.monotonic() + seconds
    while not has_happened():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.1)
