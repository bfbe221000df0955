"""Nothing is written through links, nothing is imported from the current folder, and pictures must be GIFs."""

import os
import subprocess
import sys

import pytest
from PIL import Image

from consmarl.environments.foreign import confirmation
from consmarl.experiments.directory import held
from consmarl.experiments.sweeps.job import Job, WorkerProcess
from consmarl.processes import python_command, python_path
from consmarl.reports import pictures
from tests.security.sentences import refused


@pytest.mark.parametrize("name", [".lock", "log.txt", "checkpoints", "events", "exchanges"])
def test_nothing_is_written_through_a_link_in_a_run(tmp_path, name):
    mine = tmp_path / "mine"
    mine.write_text("precious")
    run = tmp_path / "run"
    run.mkdir()
    (run / name).symlink_to(mine)
    with refused(f"{name} is a link to another place"), held(run, "this run"):
        pass
    with refused("is a link to another place"):
        WorkerProcess(Job("run", run, "{}"), core=None)
    assert mine.read_text() == "precious"
    assert {path.name for path in run.iterdir()} == {name}


def test_a_runs_directory_may_be_a_link(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "run").symlink_to(tmp_path / "disk")
    with held(tmp_path / "run", "this run"):
        pass


def test_our_processes_do_not_import_from_the_current_folder(tmp_path, monkeypatch):
    """Working inside a directory from a stranger does not run the modules in it."""
    (tmp_path / "json.py").write_text("from pathlib import Path\nPath('PWNED').touch()\n")
    (tmp_path / "wanted").mkdir()
    (tmp_path / "wanted" / "somebodys_own.py").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path / "wanted")
    subprocess.run(
        [*python_command(), "-c", "import json, somebodys_own"],
        env=os.environ | {"PYTHONPATH": python_path()}, check=True,
    )  # fmt: skip
    assert not (tmp_path / "PWNED").exists()
    subprocess.run([sys.executable, "-c", "import json"], check=True)
    assert (tmp_path / "PWNED").exists(), "it would have been found"


@pytest.mark.parametrize("kind", ["PNG", "EPS", "BMP"])
def test_only_gifs_are_opened_as_pictures(tmp_path, kind):
    path = tmp_path / "policy.gif"
    Image.new("RGB", (4, 4)).save(path, kind)
    with refused("is not a picture"):
        pictures._first_frame(path.read_bytes(), path)


def test_a_picture_that_claims_to_be_huge_or_ends_early_is_refused(tmp_path):
    path = tmp_path / "policy.gif"
    Image.new("P", (4, 4)).save(path, "GIF")
    small = path.read_bytes()
    with refused("is not a picture"):
        pictures._first_frame(small[: len(small) - 8], path)
    huge = small[:6] + b"\xff\xff\xff\xff" + small[10:]  # 65,535 × 65,535
    with refused("is not a picture|too large"):
        pictures._first_frame(huge, path)
    large = small[:6] + b"\x00\x10\x00\x10" + small[10:]  # 4,096 × 4,096
    with refused("too large"):
        pictures._first_frame(large, path)
    assert pictures._first_frame(small, path)[1] == (4, 4)


def test_suggested_commands_name_third_party_environments():
    assert confirmation("pgm-3ag") == ""
    assert confirmation("pettingzoo:a.b") == " --env pettingzoo:a.b"
