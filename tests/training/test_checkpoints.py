"""Checkpoints: what is saved comes back bit for bit, whatever happens to the writer, the disk or the files."""

import ast
import dataclasses
import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors import SafetensorError

from consmarl.errors import UsageError
from consmarl.training import checkpoints


class Moments(NamedTuple):
    mean: jax.Array
    count: jax.Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Buffer:
    frames: jax.Array
    done: jax.Array
    empty: jax.Array


def everything():
    """Return a state with every structure and dtype that a run has, and values that are easily lost."""
    return {
        "moments": Moments(jnp.asarray([0.1, -0.0, jnp.inf, jnp.nan], jnp.float32), jnp.uint32(2**32 - 1)),
        "buffer": Buffer(
            frames=jnp.arange(24, dtype=jnp.uint8).reshape(2, 3, 4),
            done=jnp.asarray([True, False, True]),
            empty=jnp.zeros((0, 5), jnp.float32),
        ),
        "key": jax.random.key(7),
        "keys": jax.random.split(jax.random.key(8, impl="rbg"), (2, 3)),
        "old_style_key": jax.random.PRNGKey(9),
        "half": jnp.linspace(-1, 1, 7, dtype=jnp.bfloat16),
        "numpy": np.array([-(2**31), 2**31 - 1], np.int32),
        "strange_nan": np.array([0x7FC12345], np.uint32).view(np.float32),
        "transposed": np.arange(6, dtype=np.float32).reshape(2, 3).T,
        "sliced": np.arange(10, dtype=np.int32)[::-3],
        "layers": [(jnp.int32(3), None), {"agent's": jnp.float32(0.5)}],
    }


def counted(number, size=10):
    return {"count": np.full(size, number, np.int32), "step": np.int32(number)}


def save_counted(directory, *numbers, keep=10):
    for number in numbers:
        checkpoints.save(directory, number, counted(number), {"episode": number}, keep=keep)


def names(directory):
    return sorted(path.name for path in directory.iterdir())


def contents(directory):
    return {path.relative_to(directory): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def bits(leaf):
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return leaf.dtype, leaf.shape, np.asarray(jax.random.key_data(leaf)).tobytes()
    return leaf.dtype, leaf.shape, np.asarray(leaf).tobytes()


def shapes_of(state):
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), state)


def sentence_of(error):
    text = str(error.value)
    assert text.endswith(".")
    assert "\n" not in text
    return text


@pytest.mark.parametrize("as_like", [lambda state: state, shapes_of], ids=["arrays", "shapes"])
def test_every_kind_of_leaf_comes_back_bit_for_bit(tmp_path, as_like):
    state = everything()
    path = checkpoints.save(tmp_path, 12_000, state, {"episode": 3, "config": {"world": "ft", "lr": 1e-4}}, keep=1)
    assert path == tmp_path / "checkpoint-000012000"
    restored = checkpoints.restore(tmp_path, as_like(state))
    assert restored.number == 12_000
    assert restored.facts == {"episode": 3, "config": {"world": "ft", "lr": 1e-4}}
    assert restored.damaged == []
    assert jax.tree.structure(restored.state) == jax.tree.structure(state)
    for given, returned in zip(jax.tree.leaves(state), jax.tree.leaves(restored.state), strict=True):
        assert isinstance(returned, jax.Array)
        assert bits(returned) == bits(given)


def test_restored_keys_draw_the_same_numbers(tmp_path):
    state = everything()
    checkpoints.save(tmp_path, 1, state, {}, keep=1)
    returned = checkpoints.restore(tmp_path, state).state
    for name in ("key", "old_style_key"):
        assert bits(jax.random.normal(returned[name], (4,))) == bits(jax.random.normal(state[name], (4,)))
    assert jax.random.key_impl(returned["keys"]) == "rbg"


def test_a_single_array_and_an_empty_tree_are_states_too(tmp_path):
    checkpoints.save(tmp_path / "array", 1, jnp.arange(3), {}, keep=1)
    assert checkpoints.restore(tmp_path / "array", jnp.arange(3)).state.tolist() == [0, 1, 2]
    checkpoints.save(tmp_path / "empty", 1, {}, {}, keep=1)
    assert checkpoints.restore(tmp_path / "empty", {}).state == {}


def test_arrays_return_to_the_sharding_they_had(tmp_path):
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("run",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("run"))
    placed = [jax.device_put(jnp.arange(4), sharding), jax.device_put(jax.random.split(jax.random.key(0)), sharding)]
    state = {"placed": placed, "free": [jnp.arange(4), jax.random.key(1)]}
    checkpoints.save(tmp_path, 1, state, {}, keep=1)
    returned = checkpoints.restore(tmp_path, state).state
    assert [leaf.sharding for leaf in returned["placed"]] == [sharding, sharding]
    assert [leaf.committed for leaf in returned["placed"] + returned["free"]] == [True, True, False, False]


def test_a_restored_state_can_be_donated(tmp_path):
    save_counted(tmp_path, 5)
    state = checkpoints.restore(tmp_path, counted(0)).state
    add_one = jax.jit(lambda tree: jax.tree.map(lambda leaf: leaf + 1, tree), donate_argnums=0)
    assert int(add_one(state)["step"]) == 6
    assert int(checkpoints.restore(tmp_path, counted(0)).state["step"]) == 5


def test_the_manifest_says_what_is_inside(tmp_path):
    checkpoints.save(tmp_path, 4, {"key": jax.random.key(0), "weights": jnp.zeros((2, 3))}, {"episode": 9}, keep=1)
    manifest = checkpoints.read_manifest(tmp_path, 4)
    assert (manifest["format"], manifest["number"], manifest["facts"]) == (1, 4, {"episode": 9})
    assert manifest["leaves"] == [
        {"name": "['key']", "dtype": "key<fry>", "shape": [], "key_impl": "threefry2x32"},
        {"name": "['weights']", "dtype": "float32", "shape": [2, 3]},
    ]
    with pytest.raises(UsageError, match="no checkpoint 5") as error:
        checkpoints.read_manifest(tmp_path, 5)
    assert "[4]" in sentence_of(error)


def test_others_may_read_the_files_if_the_umask_lets_them(tmp_path):
    save_counted(tmp_path, 1)
    plain = tmp_path / "plain"
    plain.touch()
    modes = {path.stat().st_mode for path in (tmp_path / "checkpoint-000000001").iterdir()}
    assert modes == {plain.stat().st_mode}


def test_only_the_newest_are_kept(tmp_path):
    save_counted(tmp_path, 8, 9, 10, 1_234_567_890, 11, keep=3)
    assert checkpoints.numbers(tmp_path) == [10, 11, 1_234_567_890]
    assert checkpoints.restore(tmp_path, counted(0)).number == 1_234_567_890


def test_the_one_just_saved_stays_even_below_others(tmp_path):
    """As after a damaged newest checkpoint, when a run goes on from the one before."""
    save_counted(tmp_path, 30)
    save_counted(tmp_path, 20, keep=1)
    assert checkpoints.numbers(tmp_path) == [20, 30]


def test_a_directory_that_is_not_there_has_no_checkpoints(tmp_path):
    assert checkpoints.numbers(tmp_path / "nowhere") == []
    with pytest.raises(UsageError, match=r"no whole checkpoint in .*nowhere: nothing was saved there") as error:
        checkpoints.restore(tmp_path / "nowhere", counted(0))
    sentence_of(error)


def test_an_existing_number_is_replaced(tmp_path):
    save_counted(tmp_path, 1, 2)
    checkpoints.save(tmp_path, 2, counted(22), {"again": True}, keep=2)
    restored = checkpoints.restore(tmp_path, counted(0))
    assert (restored.number, int(restored.state["step"]), restored.facts) == (2, 22, {"again": True})
    assert names(tmp_path) == ["checkpoint-000000001", "checkpoint-000000002"]


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
    empty_manifest: "the checksum of its manifest.json is wrong",
    change_a_fact: "the checksum of its manifest.json is wrong",
}


@pytest.mark.parametrize(("damage", "said"), DAMAGES.items(), ids=lambda each: getattr(each, "__name__", ""))
def test_a_damaged_newest_is_named_and_the_one_before_used(tmp_path, damage, said):
    save_counted(tmp_path, 1, 2)
    damage(tmp_path / "checkpoint-000000002")
    restored = checkpoints.restore(tmp_path, counted(0))
    assert (restored.number, int(restored.state["step"]), restored.facts) == (1, 1, {"episode": 1})
    (sentence,) = restored.damaged
    assert sentence.startswith(f"{tmp_path / 'checkpoint-000000002'} is damaged: ")
    assert said in sentence
    save_counted(tmp_path, 2)
    assert checkpoints.restore(tmp_path, counted(0)).damaged == []


def test_when_all_are_damaged_each_is_named(tmp_path):
    save_counted(tmp_path, 1, 2)
    truncate(tmp_path / "checkpoint-000000001")
    delete_manifest(tmp_path / "checkpoint-000000002")
    with pytest.raises(UsageError, match="no whole checkpoint") as error:
        checkpoints.restore(tmp_path, counted(0))
    assert all(name in sentence_of(error) for name in names(tmp_path))


@pytest.mark.parametrize(
    ("like", "said"),
    [
        ({"a": jnp.zeros((2, 4)), "b": jnp.int32(0)}, r"leaf \['a'\] is float32\[2,3\] in it, float32\[2,4\] here"),
        ({"a": jnp.zeros((2, 3)), "b": jnp.uint32(0)}, r"leaf \['b'\] is int32\[\] in it, uint32\[\] here"),
        ({"a": jnp.zeros((2, 3)), "b": jax.random.key(0)}, r"leaf \['b'\] is int32\[\] in it, key<fry>\[\] here"),
        ({"a": jnp.zeros((2, 3))}, r"leaf \['b'\] is int32\[\] in it, missing here"),
        (
            {"a": jnp.zeros((2, 3)), "b": jnp.int32(0), "c": jnp.zeros(1)},
            r"leaf \['c'\] is missing in it, float32\[1\] here",
        ),
    ],
    ids=["shape", "dtype", "key", "too_many_saved", "too_few_saved"],
)
def test_a_state_of_another_make_is_refused_by_its_first_leaf(tmp_path, like, said):
    checkpoints.save(tmp_path, 1, {"a": jnp.zeros((2, 3)), "b": jnp.int32(0)}, {}, keep=1)
    with pytest.raises(UsageError, match=said) as error:
        checkpoints.restore(tmp_path, like)
    assert "checkpoint-000000001 is of another configuration" in sentence_of(error)


def test_keys_of_another_make_are_refused(tmp_path):
    checkpoints.save(tmp_path, 1, jax.random.key(0), {}, keep=1)
    with pytest.raises(UsageError, match=r"key<fry>\[\] in it, key<rbg>\[\] here"):
        checkpoints.restore(tmp_path, jax.random.key(0, impl="rbg"))


def test_a_format_of_the_future_is_not_taken_for_damage(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "FORMAT", 2)
    save_counted(tmp_path, 1)
    monkeypatch.undo()
    with pytest.raises(UsageError, match="has format 2, and this version of consmarl reads 1"):
        checkpoints.restore(tmp_path, counted(0))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (dict(number=-1), "cannot save checkpoint -1"),
        (dict(keep=0), "keep 0"),
        (dict(facts={"world": object()}), "JSON cannot hold"),
        (dict(state={"step": 3}), r"leaf \['step'\] is of type int"),
        (dict(state={"step": np.zeros(2)}), r"leaf \['step'\] is float64\[2\]"),
        (dict(state={"step": jnp.zeros(2, jnp.float8_e4m3fn)}), r"leaf \['step'\] is float8_e4m3fn\[2\]"),
    ],
)
def test_what_cannot_be_saved_is_refused_before_anything_is_written(tmp_path, changes, said):
    request = dict(number=1, state=counted(1), facts={}, keep=1) | changes
    with pytest.raises(UsageError, match=said) as error:
        checkpoints.save(tmp_path, **request)
    sentence_of(error)
    assert names(tmp_path) == []


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
def test_a_full_disk_costs_nothing_that_was_there(tmp_path, monkeypatch, number, error):
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


def test_a_file_that_the_system_refuses_to_let_grow_costs_nothing_either(tmp_path):
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
def test_a_rename_that_fails_leaves_a_whole_checkpoint(tmp_path, monkeypatch, failing):
    """Saving a number again renames three times: the old one aside, the new one in, the old one out of sight."""
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


def test_a_file_in_the_place_of_the_directory_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot save") as error:
        save_counted(tmp_path / "file", 1)
    sentence_of(error)
    with pytest.raises(UsageError, match="cannot read") as error:
        checkpoints.restore(tmp_path / "file", counted(0))
    sentence_of(error)


# Forked from a process that has loaded JAX once and never started it, so that each death costs milliseconds.
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
def test_death_before_any_step_of_saving_leaves_the_old_or_the_new(tmp_path, number, value):
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
    assert values == sorted(values)  # once the new one is there, it stays
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


def test_death_at_any_moment_leaves_whole_checkpoints(tmp_path):
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


def test_nothing_is_pickled():
    tree = ast.parse(Path(checkpoints.__file__).read_text(encoding="utf-8"))
    imported = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    imported += [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert "json" in imported
    assert not [name for name in imported if name.split(".")[0] in ("pickle", "cloudpickle", "dill", "marshal")]


def test_the_manifest_is_plain_json(tmp_path):
    save_counted(tmp_path, 1)
    manifest = json.loads((tmp_path / "checkpoint-000000001" / checkpoints.MANIFEST).read_text(encoding="utf-8"))
    assert manifest["facts"] == {"episode": 1}
