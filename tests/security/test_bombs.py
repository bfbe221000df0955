"""Files that claim or unpack to an enormous size are refused before memory is allocated."""

import io
import json
import pickle
import struct
import tracemalloc
import zipfile
import zlib
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from consmarl.experiments import archives, exchanges
from consmarl.experiments.configuration.config import TrainConfig
from consmarl.experiments.directory import begin_session, read_config
from consmarl.experiments.exchanges import read_episode
from consmarl.experiments.metrics import MetricsFile
from consmarl.experiments.policies import load_policy, policy_config
from consmarl.training import checkpoints
from tests.security import hostile
from tests.security.sentences import refused

LITTLE = 16 * 2**20
DEEP = "[" * 100_000 + "]" * 100_000


@contextmanager
def little_memory():
    """Check that less than `LITTLE` bytes of memory are allocated."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < LITTLE
    finally:
        tracemalloc.stop()


def safetensors_bytes(header, content=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + content


META = {"__metadata__": {"format": "consmarl-policy-1", "config": "{}"}}
POLICIES = {
    "nothing": b"",
    "only_a_length": struct.pack("<Q", 5),
    "longest_header": safetensors_bytes(b"{}", length=2**63),
    "header_beyond_the_file": safetensors_bytes(b"{}", length=90 * 2**20),
    "deep_header": safetensors_bytes(DEEP.encode()),
    "giant_shape": safetensors_bytes(META | {"w": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}}),
    "shape_that_overflows": safetensors_bytes(
        META | {"w": {"dtype": "F32", "shape": [2**33, 2**33], "data_offsets": [0, 4]}}, bytes(4)
    ),
    "hole": safetensors_bytes(META | {"w": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}}, bytes(8)),
    "pickle": pickle.dumps({"config": 1}),
}


@pytest.mark.parametrize("kind", POLICIES)
def test_a_policy_with_a_false_header_is_refused(tmp_path, kind):
    path = tmp_path / "policy.safetensors"
    path.write_bytes(POLICIES[kind])
    with little_memory(), refused("is not a safetensors file"):
        load_policy(path)


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ({"format": "consmarl-policy-1"}, "is not a consmarl policy"),
        ({"format": "consmarl-policy-1", "config": "[]"}, "must contain an object"),
        ({"format": "consmarl-policy-1", "config": DEEP}, "nested too deeply"),
        ({"format": "consmarl-policy-1", "config": '{"set": ' + DEEP + "}"}, "nested too deeply"),
        ({"format": "consmarl-policy-1", "config": '{"env": 5}'}, "env"),
        ({"format": "consmarl-policy-1", "config": '{"share": 5}'}, "share"),
        ({"format": "consmarl-policy-1", "config": '{"seed": ' + "9" * 5000 + "}"}, "is not JSON"),
    ],
)
def test_a_policy_with_an_invalid_configuration_is_refused(tmp_path, header, said):
    save_file({"w": np.zeros(1, np.float32)}, tmp_path / "policy.safetensors", header)
    with little_memory(), refused(said):
        policy_config(tmp_path / "policy.safetensors")


def test_weights_that_do_not_fit_the_configuration_are_not_read(tmp_path):
    """A network of ten million units takes no memory here, because the file does not hold it."""
    huge = hostile.write_policy(tmp_path / "policy.safetensors", {"hidden_size": 10_000_000})
    with refused("does not fit its own configuration"):
        load_policy(huge)


def test_weights_of_the_wrong_type_are_refused(tmp_path):
    config = TrainConfig(hidden_size=4)
    learner = config.trainer().learner
    import jax

    from consmarl.experiments.policies import _named

    shapes = _named(jax.eval_shape(lambda key: learner.parameters(learner.init(key)), jax.random.key(0)))
    weights = {name: np.zeros(shape.shape, np.int64) for name, shape in shapes}
    path = hostile.write_policy(tmp_path / "policy.safetensors", {"hidden_size": 4}, weights)
    with refused("should have type float32"):
        load_policy(path)


class Harm:
    def __reduce__(self):
        return Path.touch, (Path("PWNED"),)


def npy(array, header=None):
    """An array as NumPy writes it, with a different header if one is given."""
    written = io.BytesIO()
    np.save(written, array, allow_pickle=True)
    if header is None:
        return written.getvalue()
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + array.tobytes()


def described(shape, descr="<f4"):
    return f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"


ARRAYS = {
    "objects": (npy(np.array([Harm()], object)), "Python objects"),
    "giant": (npy(np.zeros(2, np.float32), described("(1099511627776,)")), "not the size of its shape"),
    "negative": (npy(np.zeros(2, np.float32), described("(-1, -2)")), "damaged"),
    "overflowing": (npy(np.zeros(2, np.float32), described("(4294967296, 4294967296)")), "not the size of its shape"),
    "of_no_size": (npy(np.zeros(0, np.float32), described("(1099511627776,)", "|V0")), "damaged"),
    "deep_header": (npy(np.zeros(2, np.float32), "-" * 9000 + "1"), "damaged"),
    "brackets": (npy(np.zeros(2, np.float32), "(" * 9000), "damaged"),
    "code": (npy(np.zeros(2, np.float32), "__import__('pathlib').Path('PWNED').touch()"), "damaged"),
    "long_header": (npy(np.zeros(2, np.float32), described("(2,)") + " " * 60_000), "damaged"),
    "pickle": (pickle.dumps(Harm()), "damaged"),
    "nothing": (b"", "damaged"),
}


@pytest.mark.parametrize("kind", ARRAYS)
@pytest.mark.parametrize("name", ["steps/rewards", "header", "world/extra"])
def test_a_record_with_false_array_headers_is_refused(tmp_path, monkeypatch, kind, name):
    monkeypatch.chdir(tmp_path)
    content, said = ARRAYS[kind]
    path = hostile.write_record(tmp_path, {}, **{name: None})
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(f"{name}.npy", content)
    with little_memory(), refused(said):
        read_episode(path)
    assert not Path("PWNED").exists()


def zeros(size, method, claimed=None):
    """An archive with an array of `size` bytes of zeros, which may claim a different size."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", method) as archive, archive.open("steps/rewards.npy", "w") as member:
        member.write(npy(np.zeros(0, np.float32), described(f"({size // 4},)")))
        for _ in range(size // 2**20):
            member.write(bytes(2**20))
    whole = written.getvalue()
    if claimed is None:
        return whole
    real = zipfile.ZipFile(io.BytesIO(whole)).infolist()[0].file_size
    return whole.replace(struct.pack("<I", real), struct.pack("<I", claimed))


ARCHIVES = {
    "more_than_any_record": (lambda: zeros(2 * LITTLE, zipfile.ZIP_DEFLATED), "more than"),
    "more_than_it_claims": (lambda: zeros(2 * LITTLE, zipfile.ZIP_DEFLATED, claimed=4096), "damaged"),
    "without_bounds": (lambda: zeros(2**20, zipfile.ZIP_BZIP2), "not compressed the way NumPy does it"),
    "no_archive": (lambda: b"PK\x03\x04" + bytes(100), "damaged"),
}


@pytest.mark.parametrize("kind", ARCHIVES)
def test_a_record_that_would_fill_memory_is_refused(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(archives, "MOST_BYTES", LITTLE)
    made, said = ARCHIVES[kind]
    path = tmp_path / "episode.npz"
    path.write_bytes(made())
    with little_memory(), refused(said):
        read_episode(path)


def test_a_record_with_too_many_arrays_is_refused(tmp_path):
    path = hostile.write_record(tmp_path, {}, **{f"world/{number}": np.zeros(3) for number in range(300)})
    with refused("more than 200 arrays"):
        read_episode(path)


@pytest.mark.parametrize(
    "header",
    [DEEP, "5", "[]",
     '{"format": "consmarl-exchange-2", "kind": ["x"], "episode": 1, "config": {}}',
     '{"format": "consmarl-exchange-2", "kind": "training", "episode": 1, "config": {}, "after": "<b>"}',
     '{"format": {}, "kind": "training"}'],
    ids=["deep", "number", "list", "kind", "after", "format"],
)  # fmt: skip
def test_a_record_with_an_invalid_header_is_refused(tmp_path, header):
    with refused("not a recorded episode|damaged"):
        read_episode(hostile.write_record(tmp_path, {}, header=np.array(header)))


def checkpoint(directory, **changes):
    """A checkpoint with valid checksums and a manifest that can say anything."""
    tensors = directory / "checkpoint-000000001" / "state.safetensors"
    tensors.parent.mkdir(parents=True)
    save_file({"['x']": np.zeros(2, np.float32)}, tensors)
    leaf = {"name": "['x']", "dtype": "float32", "shape": [2]}
    size = tensors.stat().st_size
    manifest = {"format": checkpoints.FORMAT, "number": 1, "facts": {}, "leaves": [leaf], "size": size,
                "checksum": zlib.crc32(tensors.read_bytes())} | changes  # fmt: skip
    manifest["manifest_checksum"] = zlib.crc32(json.dumps(manifest, sort_keys=True).encode())
    (tensors.parent / "manifest.json").write_text(json.dumps(manifest))


LIKE = {"x": np.zeros(2, np.float32)}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (dict(format=None), "has format None"),
        (dict(number="1"), "is incomplete"),
        (dict(facts=[]), "is incomplete"),
        (dict(leaves=[5]), "is incomplete"),
        (dict(leaves=[{"name": "['x']"}]), "is incomplete"),
        (dict(leaves=[{"name": "['x']", "dtype": "float32", "shape": [3]}]), r"is not float32\[3\]"),
        (dict(leaves=[{"name": "['y']", "dtype": "float32", "shape": [2]}]), "is not float32"),
        (dict(leaves=[{"name": "['x']", "dtype": "key<fry>", "shape": [], "key_impl": "rbg"}]), "is incomplete"),
        (dict(leaves=[{"name": "['x']", "dtype": "key<fry>", "shape": [], "key_impl": "threefry2x32"}]), "is not key"),
    ],
)
def test_a_checkpoint_with_a_valid_checksum_is_still_checked(tmp_path, changes, said):
    checkpoint(tmp_path, **changes)
    with refused(said):
        checkpoints.restore(tmp_path, LIKE)


def test_a_checkpoint_cannot_claim_more_memory_than_its_file_could_fill(tmp_path):
    checkpoint(tmp_path, facts={"table_places": 2**50})
    with refused("larger than its"):
        checkpoints.restore(tmp_path, lambda facts: {"x": np.zeros(facts["table_places"], np.float32)})


def test_a_deeply_nested_manifest_is_refused(tmp_path):
    checkpoint(tmp_path)
    (tmp_path / "checkpoint-000000001" / "manifest.json").write_text(DEEP)
    with refused("nested too deeply"):
        checkpoints.restore(tmp_path, LIKE)


FACTS = {
    b"[]": "must contain an object", b"\xff": "not UTF-8", DEEP.encode(): "nested too deeply",
    b'{"sessions": "x"}': "is damaged", b'{"sessions": [5]}': "is damaged", b'{"sessions": [{"versions": [1]}]}':
    "is damaged", b'{"sessions": [{"versions": {"jax": {}}}]}': "is damaged",
}  # fmt: skip


@pytest.mark.parametrize("content", FACTS, ids=lambda content: content[:40].decode("latin-1"))
def test_an_invalid_run_json_is_refused_and_left_unchanged(tmp_path, content):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "run.json").write_bytes(content)
    for call in (read_config, lambda run: begin_session(run, 0)):
        with refused(FACTS[content]) as error:
            call(tmp_path)
        assert "run.json" in str(error.value)
    assert (tmp_path / "run.json").read_bytes() == content


@pytest.mark.parametrize("content", [b"[]", b"\xff\xfe", DEEP.encode(), b'{"share": [1]}', b'{"env": null}', b'"x"'])
def test_an_invalid_configuration_is_refused(tmp_path, content):
    (tmp_path / "config.json").write_bytes(content)
    for call in (read_config, lambda run: TrainConfig.from_file(run / "config.json")):
        with refused("config.json"):
            call(tmp_path)


@pytest.mark.parametrize("row", [b"[]", b"\xff\xfe", DEEP.encode(), b"{}", b'{"episode": "5"}'])
def test_an_invalid_row_of_metrics_loses_no_other_row_on_resuming(tmp_path, row):
    path = tmp_path / "metrics.jsonl"
    content = b'{"episode": 0}\n' + row + b'\n{"episode": 8}\n'
    path.write_bytes(content)
    assert "line 2" in MetricsFile(path).keep_until(8)
    assert path.read_bytes() == content


def test_a_partial_last_line_is_skipped(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b'{"episode": 0}\n{"episode": 8}\n{"epis')
    assert MetricsFile(path).rows() == [{"episode": 0}, {"episode": 8}]


def test_an_unchanged_record_can_be_read(tmp_path):
    """The unchanged record is valid, so those above are refused because of their changes."""
    recorded = read_episode(hostile.write_record(tmp_path, {"env": "x"}, 7))
    assert (recorded.episode, recorded.kind, recorded.num_steps) == (7, exchanges.TRAINING, 2)
