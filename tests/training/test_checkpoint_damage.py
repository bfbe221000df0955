"""Checkpoints: a valid one remains, whatever happens to the writer, the disk or the files."""

import os
import resource
import subprocess
import sys

import pytest
from safetensors import SafetensorError

from consmarl.errors import UsageError
from consmarl.training import checkpoints
from tests.training.counted import contents, counted, names, save_counted, sentence_of


def truncate(checkpoint):
    os.truncate(checkpoint / checkpoints.TENSORS, 60)


def flip_one_byte(checkpoint):
    file = checkpoint / checkpoints.TENSORS
    data = bytearray(file.read_bytes())
    data[-3] ^= 1
    file.write_bytes(data)


def delete_tensors(checkpoint):
    (checkpoint / checkpoints.TENSORS).unlink()


def delete_manifest(checkpoint):
    (checkpoint / checkpoints.MANIFEST).unlink()


def break_json(checkpoint):
    file = checkpoint / checkpoints.MANIFEST
    file.write_text(file.read_text()[:-20])


def break_encoding(checkpoint):
    (checkpoint / checkpoints.MANIFEST).write_bytes(b"\xff\xfe{}")


def empty_manifest(checkpoint):
    (checkpoint / checkpoints.MANIFEST).write_text("[]")


def change_a_fact(checkpoint):
    file = checkpoint / checkpoints.MANIFEST
    file.write_text(file.read_text().replace('"episode": 2', '"episode": 3'))


DAMAGES = {
    truncate: "state.safetensors has 60 bytes instead of",
    flip_one_byte: "the checksum of its state.safetensors is wrong",
    delete_tensors: "state.safetensors cannot be read (No such file or directory)",
    delete_manifest: "manifest.json cannot be read (No such file or directory)",
    break_json: "manifest.json cannot be read",
    break_encoding: "manifest.json cannot be read",
    empty_manifest: "manifest.json cannot be read",
    change_a_fact: "the checksum of its manifest.json is wrong",
}


@pytest.mark.parametrize(("damage", "said"), DAMAGES.items(), ids=lambda each: getattr(each, "__name__", ""))
def test_a_damaged_newest_checkpoint_is_reported_and_the_previous_one_used(tmp_path, damage, said):
    save_counted(tmp_path, 1, 2)
    damage(tmp_path / "checkpoint-000000002")
    restored = checkpoints.restore(tmp_path, counted(0))
    assert (restored.number, int(restored.state["step"]), restored.facts) == (1, 1, {"episode": 1})
    (sentence,) = restored.damaged
    assert sentence.startswith(f"{tmp_path / 'checkpoint-000000002'} is damaged: ")
    assert said in sentence
    save_counted(tmp_path, 2)
    assert checkpoints.restore(tmp_path, counted(0)).damaged == []


def test_if_all_checkpoints_are_damaged_each_is_named(tmp_path):
    save_counted(tmp_path, 1, 2)
    truncate(tmp_path / "checkpoint-000000001")
    delete_manifest(tmp_path / "checkpoint-000000002")
    with pytest.raises(UsageError, match="no whole checkpoint") as error:
        checkpoints.restore(tmp_path, counted(0))
    assert all(name in sentence_of(error) for name in names(tmp_path))


def test_leftovers_of_a_killed_writer_are_removed_at_the_next_save(tmp_path):
    save_counted(tmp_path, 1)
    leftover = tmp_path / ".unfinished-checkpoint-000000007"
    leftover.mkdir()
    (leftover / checkpoints.TENSORS).write_bytes(b"half of it")
    assert checkpoints.numbers(tmp_path) == [1]
    assert checkpoints.restore(tmp_path, counted(0)).damaged == []
    save_counted(tmp_path, 2)
    assert names(tmp_path) == ["checkpoint-000000001", "checkpoint-000000002"]


NO_SPACE = OSError(28, "No space left on device")


@pytest.mark.parametrize("number", [2, 3], ids=["replacing", "new"])
@pytest.mark.parametrize("error", [NO_SPACE, SafetensorError("I/O error: No space left on device")], ids=["os", "own"])
def test_a_full_disk_leaves_existing_checkpoints_unchanged(tmp_path, monkeypatch, number, error):
    save_counted(tmp_path, 1, 2)
    before = contents(tmp_path)

    def fail(_, path):
        path.write_bytes(b"half of it")
        raise error

    monkeypatch.setattr(checkpoints, "save_file", fail)
    with pytest.raises(
        UsageError, match=r"cannot save .*checkpoint-00000000\d \(.*No space left on device\)\."
    ) as caught:
        save_counted(tmp_path, number, keep=1)
    sentence_of(caught)
    assert contents(tmp_path) == before


def test_a_file_size_limit_leaves_existing_checkpoints_unchanged(tmp_path):
    save_counted(tmp_path, 1)
    before = contents(tmp_path)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(UsageError, match="File too large") as error:
            checkpoints.save(tmp_path, 2, counted(2, size=100_000), {}, keep=1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    sentence_of(error)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_a_failed_rename_leaves_a_complete_checkpoint(tmp_path, monkeypatch, failing):
    """Replacing a checkpoint takes three renames: the old one aside, the new one into place, the old one hidden."""
    save_counted(tmp_path, 2)
    rename, calls = os.replace, []

    def fail(source, target, **others):
        calls.append(target)
        if len(calls) == failing + 1:
            raise OSError(30, "Read-only file system")
        rename(source, target, **others)

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(UsageError, match="Read-only file system") as error:
        checkpoints.save(tmp_path, 2, counted(22), {}, keep=1)
    sentence_of(error)
    monkeypatch.undo()
    assert checkpoints.numbers(tmp_path) == [2]
    restored = checkpoints.restore(tmp_path, counted(0))
    assert int(restored.state["step"]) == (22 if failing == 2 else 2)
    assert restored.damaged == []
    save_counted(tmp_path, 3)
    assert names(tmp_path) == ["checkpoint-000000002", "checkpoint-000000003"]


def test_a_file_instead_of_a_directory_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot save") as error:
        save_counted(tmp_path / "file", 1)
    sentence_of(error)
    with pytest.raises(UsageError, match="cannot read") as error:
        checkpoints.restore(tmp_path / "file", counted(0))
    sentence_of(error)


# Children are forked from a process that has imported JAX but not initialised it, so each death takes milliseconds.
DIE_AT_EVERY_STEP = """
import os, shutil, signal, sys
from pathlib import Path
import numpy as np
from consmarl.training import checkpoints

def save(directory, number, value):
    state = {"count": np.full(10, value, np.int32), "step": np.int32(value)}
    checkpoints.save(directory, number, state, {"episode": value}, keep=2)

def save_and_die(directory, number, value, fatal_step):
    step = 0
    def count(event, _):
        nonlocal step
        if event == "open" or event.startswith("os."):
            step += 1
            if step == fatal_step:
                os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(count)
    save(directory, number, value)
    os._exit(0)

root, number, value = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
template = root.with_name("template")
save(template, 1, 1)
save(template, 2, 2)
status, fatal_step = None, 0
while status != 0:
    fatal_step += 1
    directory = root / f"{fatal_step:03d}"
    shutil.copytree(template, directory)
    if (child := os.fork()) == 0:
        save_and_die(directory, number, value, fatal_step)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL), status
"""


@pytest.mark.parametrize(("number", "value"), [(3, 3), (2, 22)], ids=["new", "replacing"])
def test_being_killed_at_any_step_of_saving_leaves_the_old_or_the_new_checkpoint(tmp_path, number, value):
    root = tmp_path / "deaths"
    subprocess.run([sys.executable, "-c", DIE_AT_EVERY_STEP, str(root), str(number), str(value)], check=True)
    values = []
    for directory in sorted(root.iterdir()):
        restored = checkpoints.restore(directory, counted(0))
        values.append(restored.facts["episode"])
        assert restored.state["count"].tolist() == [values[-1]] * 10
        assert restored.damaged == []
        assert {2, restored.number} <= set(checkpoints.numbers(directory))
        save_counted(directory, 4, keep=2)
        assert names(directory) == [f"checkpoint-{each:09d}" for each in (restored.number, 4)]
    assert set(values) == {2, value}
    assert values == sorted(values)  # once the new one exists, it stays
    assert len(values) > 20


DIE_AT_ANY_MOMENT = """
import os, random, shutil, signal, sys, time
from pathlib import Path
import numpy as np
from consmarl.training import checkpoints

def save(directory, number):
    state = {"count": np.full(500_000, number, np.int32), "step": np.int32(number)}
    checkpoints.save(directory, number, state, {"episode": number}, keep=2)

root = Path(sys.argv[1])
directory = root.with_name("run")
save(directory, 0)
for death in range(8):
    if (child := os.fork()) == 0:
        while True:
            save(directory, checkpoints.numbers(directory)[-1] + 1)
    time.sleep(random.uniform(0.02, 0.15))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    shutil.copytree(directory, root / str(death))
"""


def test_being_killed_at_any_moment_leaves_complete_checkpoints(tmp_path):
    root = tmp_path / "deaths"
    subprocess.run([sys.executable, "-c", DIE_AT_ANY_MOMENT, str(root)], check=True)
    reached = []
    for directory in sorted(root.iterdir()):
        restored = checkpoints.restore(directory, counted(0, size=500_000))
        assert restored.damaged == []
        assert restored.number == restored.facts["episode"] == int(restored.state["step"])
        assert bool((restored.state["count"] == restored.number).all())
        reached.append(restored.number)
    assert reached == sorted(reached)
    assert reached[-1] > 0
