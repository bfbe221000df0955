"""Checkpoints: states are restored bit for bit, and states that do not match are refused."""

import ast
import dataclasses
import json
import re
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from consmarl.errors import UsageError
from consmarl.training import checkpoints
from tests.training.counted import counted, names, save_counted, sentence_of


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
    """Return a state with every structure and dtype that a run can have, and values that are easily altered."""
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


def bits(leaf):
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return leaf.dtype, leaf.shape, np.asarray(jax.random.key_data(leaf)).tobytes()
    return leaf.dtype, leaf.shape, np.asarray(leaf).tobytes()


def shapes_of(state):
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), state)


@pytest.mark.parametrize("as_like", [lambda state: state, shapes_of], ids=["arrays", "shapes"])
def test_every_kind_of_leaf_is_restored_bit_for_bit(tmp_path, as_like):
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


def test_a_single_array_and_an_empty_tree_can_be_saved(tmp_path):
    checkpoints.save(tmp_path / "array", 1, jnp.arange(3), {}, keep=1)
    assert checkpoints.restore(tmp_path / "array", jnp.arange(3)).state.tolist() == [0, 1, 2]
    checkpoints.save(tmp_path / "empty", 1, {}, {}, keep=1)
    assert checkpoints.restore(tmp_path / "empty", {}).state == {}


def test_arrays_are_restored_with_their_sharding(tmp_path):
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


def test_the_manifest_describes_the_contents(tmp_path):
    checkpoints.save(tmp_path, 4, {"key": jax.random.key(0), "weights": jnp.zeros((2, 3))}, {"episode": 9}, keep=1)
    manifest = checkpoints.read_manifest(tmp_path, 4)
    assert (manifest["format"], manifest["number"], manifest["facts"]) == (2, 4, {"episode": 9})
    assert manifest["leaves"] == [
        {"name": "['key']", "dtype": "key<fry>", "shape": [], "key_impl": "threefry2x32"},
        {"name": "['weights']", "dtype": "float32", "shape": [2, 3]},
    ]
    with pytest.raises(UsageError, match="no checkpoint 5") as error:
        checkpoints.read_manifest(tmp_path, 5)
    assert "[4]" in sentence_of(error)


def test_file_permissions_follow_the_umask(tmp_path):
    save_counted(tmp_path, 1)
    plain = tmp_path / "plain"
    plain.touch()
    modes = {path.stat().st_mode for path in (tmp_path / "checkpoint-000000001").iterdir()}
    assert modes == {plain.stat().st_mode}


def test_only_the_newest_checkpoints_are_kept(tmp_path):
    save_counted(tmp_path, 8, 9, 10, 1_234_567_890, 11, keep=3)
    assert checkpoints.numbers(tmp_path) == [10, 11, 1_234_567_890]
    assert checkpoints.restore(tmp_path, counted(0)).number == 1_234_567_890


def test_the_checkpoint_just_saved_is_kept_even_if_its_number_is_lower(tmp_path):
    """This happens if the newest checkpoint is damaged and a run resumes from the one before."""
    save_counted(tmp_path, 30)
    save_counted(tmp_path, 20, keep=1)
    assert checkpoints.numbers(tmp_path) == [20, 30]


def test_a_missing_directory_has_no_checkpoints(tmp_path):
    assert checkpoints.numbers(tmp_path / "nowhere") == []
    with pytest.raises(UsageError, match=r"no whole checkpoint in .*nowhere: nothing was saved there") as error:
        checkpoints.restore(tmp_path / "nowhere", counted(0))
    sentence_of(error)


def test_saving_an_existing_number_replaces_it(tmp_path):
    save_counted(tmp_path, 1, 2)
    checkpoints.save(tmp_path, 2, counted(22), {"again": True}, keep=2)
    restored = checkpoints.restore(tmp_path, counted(0))
    assert (restored.number, int(restored.state["step"]), restored.facts) == (2, 22, {"again": True})
    assert names(tmp_path) == ["checkpoint-000000001", "checkpoint-000000002"]


@pytest.mark.parametrize(
    ("like", "said"),
    [
        ({"a": jnp.zeros((2, 4)), "b": jnp.int32(0)}, r"leaf \['a'\] is float32\[2,3\] there and float32\[2,4\] here"),
        ({"a": jnp.zeros((2, 3)), "b": jnp.uint32(0)}, r"leaf \['b'\] is int32\[\] there and uint32\[\] here"),
        ({"a": jnp.zeros((2, 3)), "b": jax.random.key(0)}, r"leaf \['b'\] is int32\[\] there and key<fry>\[\] here"),
        ({"a": jnp.zeros((2, 3))}, r"leaf \['b'\] is int32\[\] there and missing here"),
        (
            {"a": jnp.zeros((2, 3)), "b": jnp.int32(0), "c": jnp.zeros(1)},
            r"leaf \['c'\] is missing there and float32\[1\] here",
        ),
    ],
    ids=["shape", "dtype", "key", "too_many_saved", "too_few_saved"],
)
def test_a_state_with_another_structure_is_refused_and_the_leaf_named(tmp_path, like, said):
    checkpoints.save(tmp_path, 1, {"a": jnp.zeros((2, 3)), "b": jnp.int32(0)}, {}, keep=1)
    with pytest.raises(UsageError, match=said) as error:
        checkpoints.restore(tmp_path, like)
    assert "checkpoint-000000001 belongs to another configuration" in sentence_of(error)


def test_keys_of_another_implementation_are_refused(tmp_path):
    checkpoints.save(tmp_path, 1, jax.random.key(0), {}, keep=1)
    with pytest.raises(UsageError, match=r"key<fry>\[\] there and key<rbg>\[\] here"):
        checkpoints.restore(tmp_path, jax.random.key(0, impl="rbg"))


@pytest.mark.parametrize(
    ("number", "said"),
    [(1, "reads 2: an older version wrote it, and only that version can continue it."), (3, "reads 2.")],
)
def test_another_format_is_not_mistaken_for_damage(number, said, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "FORMAT", number)
    save_counted(tmp_path, 1)
    monkeypatch.undo()
    with pytest.raises(UsageError, match=f"has format {number}, and this version of consmarl {re.escape(said)}$"):
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
def test_invalid_arguments_are_refused_before_anything_is_written(tmp_path, changes, said):
    request = dict(number=1, state=counted(1), facts={}, keep=1) | changes
    with pytest.raises(UsageError, match=said) as error:
        checkpoints.save(tmp_path, **request)
    sentence_of(error)
    assert names(tmp_path) == []


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
