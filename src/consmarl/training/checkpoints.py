"""Training states on disk, in one directory each, written atomically.

A checkpoint has a hidden name until it is complete, so its writer (one at a time) may be killed at any moment.
"""

import json
import os
import re
import shutil
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from consmarl.errors import UsageError
from consmarl.json_files import parse_json_object

FORMAT = 2  # format 1 had other learner states, from before targets and optimisers could be chosen
TENSORS = "state.safetensors"
MANIFEST = "manifest.json"
_UNFINISHED = ".unfinished-"
_REPLACED = ".replaced"  # not hidden: between two renames it may be the only valid checkpoint
_NAME = re.compile(rf"checkpoint-(\d{{9,}})({re.escape(_REPLACED)})?")
# Types that safetensors can both write and read. None with 64 bits, which JAX would silently truncate to 32.
_DTYPES = {"bool", "int8", "int16", "int32", "uint8", "uint16", "uint32", "float16", "bfloat16", "float32"}
# Random keys: JAX's names of their dtypes and implementations; ours use its default.
_KEYS = {"key<fry>": "threefry2x32", "key<rbg>": "rbg", "key<urbg>": "unsafe_rbg"}


class Restored(NamedTuple):
    """A restored training state, and the newer checkpoints that could not be read."""

    number: int
    state: Any
    facts: dict[str, Any]
    damaged: list[str]  # one error message each


class _DamagedError(UsageError):
    """A checkpoint's files are corrupt or incomplete, as opposed to written by another configuration."""


def save(directory: Path, number: int, state: Any, facts: Mapping[str, Any], *, keep: int) -> Path:
    """Write a checkpoint, delete all but the newest `keep` and the one just written, and return its path.

    `state` is a pytree of arrays. `facts` are stored as JSON, so tuples are restored as lists and keys as strings.
    """
    if number < 0 or keep < 1:
        raise UsageError(f"cannot save checkpoint {number} and keep {keep}: at least number 0 and keep 1 are needed.")
    leaves = _named_leaves(state)
    described = [_described(name, leaf) for name, leaf in leaves.items()]
    manifest = {"format": FORMAT, "number": number, "facts": _as_json(facts), "leaves": described}
    path = directory / f"checkpoint-{number:09d}"
    unfinished = directory / (_UNFINISHED + path.name)
    with _explained(f"cannot save {path}"):
        directory.mkdir(parents=True, exist_ok=True)
        _clear_up_after_a_killed_writer(directory)
        try:
            _write(unfinished, leaves, manifest)
            if path.exists():
                path.replace(path.with_name(path.name + _REPLACED))
            unfinished.replace(path)
            _sync(directory)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    with _explained(f"{path} is saved, but older ones cannot be deleted"):
        outdated = set(numbers(directory)[:-keep]) - {number}
        for each, old in _candidates(directory):
            if each in outdated or old.suffix == _REPLACED:
                _delete(old)
    return path


def restore(directory: Path, like: Any) -> Restored:
    """Read the newest valid checkpoint, into the structure and onto the devices of `like`.

    The leaves of `like` are arrays or `jax.ShapeDtypeStruct`; names, dtypes and shapes must match. If shapes
    change during a run, `like` is a function that builds the structure from the saved facts.
    """
    damaged: list[str] = []
    for _, path in reversed(_candidates(directory)):
        try:
            manifest = _checked_manifest(path)
            tensors = _checked_tensors(path, manifest)
        except _DamagedError as error:
            damaged.append(str(error))
            continue
        saved = {leaf["name"]: leaf for leaf in manifest["leaves"]}
        wanted = like(_sizes(path, manifest)) if callable(like) else like
        expected = _named_leaves(wanted)
        _require_match(path, saved, expected)
        leaves = [_placed(tensors[name], saved[name], leaf) for name, leaf in expected.items()]
        state = jax.tree.unflatten(jax.tree.structure(wanted), leaves)
        return Restored(manifest["number"], state, manifest["facts"], damaged)
    found = "; ".join(each.removesuffix(".") for each in damaged) or "nothing was saved there"
    raise UsageError(f"there is no whole checkpoint in {directory}: {found}.")


def _sizes(path: Path, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts, which determine array sizes; refuse numbers larger than the file that holds the arrays."""
    facts: dict[str, Any] = manifest["facts"]
    if any(isinstance(each, int) and not 0 <= each <= manifest["size"] for each in facts.values()):
        raise UsageError(f"{path} is damaged: its facts describe arrays larger than its {TENSORS}.")
    return facts


def numbers(directory: Path) -> list[int]:
    """Return the numbers of the checkpoints with all their files, oldest first."""
    files = (TENSORS, MANIFEST)
    return sorted({number for number, path in _candidates(directory) if all((path / file).is_file() for file in files)})


def read_manifest(directory: Path, number: int) -> dict[str, Any]:
    """Return a checkpoint's manifest, with its facts and the names of its leaves, without reading its tensors."""
    paths = dict(_candidates(directory))
    if number not in paths:
        raise UsageError(f"there is no checkpoint {number} in {directory}: those there are {sorted(paths)}.")
    return _checked_manifest(paths[number])


def _named_leaves(tree: Any) -> dict[str, Any]:
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    named = {jax.tree_util.keystr(path): leaf for path, leaf in leaves}
    if len(named) < len(leaves):
        raise UsageError("two leaves of the state have one name: give its dictionaries plainer keys.")
    return named


def _described(name: str, leaf: Any) -> dict[str, Any]:
    if not hasattr(leaf, "dtype"):
        raise UsageError(f"leaf {name} is of type {type(leaf).__name__}: a training state is made of arrays.")
    described = {"name": name, "dtype": leaf.dtype.name, "shape": list(leaf.shape)}
    if _is_key(leaf):
        return described | ({"key_impl": jax.random.key_impl(leaf)} if isinstance(leaf, jax.Array) else {})
    if leaf.dtype.name not in _DTYPES:
        raise UsageError(f"leaf {name} is {_kind(described)}, which would not come back as it was: convert it first.")
    return described


def _is_key(leaf: Any) -> bool:
    return bool(jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key))


def _kind(described: Mapping[str, Any]) -> str:
    return f"{described['dtype']}[{','.join(map(str, described['shape']))}]"


def _on_host(leaf: Any) -> np.ndarray:
    # safetensors copies raw memory, so a transposed view must be made contiguous first.
    return np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf, order="C")


def _placed(tensor: np.ndarray, saved: Mapping[str, Any], like: Any) -> jax.Array:
    # A committed array could not be combined with arrays on other devices.
    sharding = like.sharding if isinstance(like, jax.Array) and like.committed else None
    array = jax.random.wrap_key_data(jnp.asarray(tensor), impl=saved["key_impl"]) if "key_impl" in saved else tensor
    return jax.device_put(array, sharding)


def _require_match(path: Path, saved: Mapping[str, Any], like: Mapping[str, Any]) -> None:
    expected = {name: _described(name, leaf) for name, leaf in like.items()}
    for name in [*expected, *saved]:
        there, here = (_kind(leaves[name]) if name in leaves else "missing" for leaves in (saved, expected))
        if there != here:
            raise UsageError(f"{path} belongs to another configuration: leaf {name} is {there} there and {here} here.")


def _write(path: Path, leaves: Mapping[str, Any], manifest: dict[str, Any]) -> None:
    path.mkdir()
    tensors = path / TENSORS
    save_file({name: _on_host(leaf) for name, leaf in leaves.items()}, tensors)
    manifest = manifest | {"size": tensors.stat().st_size, "checksum": _file_checksum(tensors)}
    manifest["manifest_checksum"] = _manifest_checksum(manifest)
    (path / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")
    tensors.chmod((path / MANIFEST).stat().st_mode)  # safetensors creates private files
    for written in (tensors, path / MANIFEST, path):
        _sync(written)


def _delete(path: Path) -> None:
    hidden = path.with_name(_UNFINISHED + path.name)
    path.replace(hidden)  # otherwise a kill would leave half a checkpoint under its name
    shutil.rmtree(hidden)


def _clear_up_after_a_killed_writer(directory: Path) -> None:
    for unfinished in directory.glob(f"{_UNFINISHED}*"):
        shutil.rmtree(unfinished)
    for _, path in _candidates(directory):
        if path.suffix == _REPLACED:
            _delete(path) if path.with_suffix("").exists() else path.replace(path.with_suffix(""))


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _as_json(facts: Mapping[str, Any]) -> Any:
    try:
        return json.loads(json.dumps(dict(facts)))
    except (TypeError, ValueError) as error:
        raise UsageError(f"cannot save facts that JSON cannot hold: {error}.") from error


@contextmanager
def _explained(failure: str, kind: type[Exception] = UsageError) -> Iterator[None]:
    try:
        yield
    except (OSError, SafetensorError, json.JSONDecodeError, UnicodeDecodeError) as error:
        # A full disk may surface as safetensors' own error, which has no strerror.
        raise kind(f"{failure} ({getattr(error, 'strerror', None) or error}).") from error


def _candidates(directory: Path) -> list[tuple[int, Path]]:
    """Return the numbers and paths of all entries named like a checkpoint; the one to try first comes last."""
    with _explained(f"cannot read {directory}"):
        entries = list(directory.iterdir()) if directory.exists() else []
    named = [(int(match[1]), path) for path in entries if (match := _NAME.fullmatch(path.name))]
    return sorted(named, key=lambda each: (each[0], each[1].suffix != _REPLACED))


def _checked_manifest(path: Path) -> dict[str, Any]:
    with _explained(f"{path} is damaged: its {MANIFEST} cannot be read", _DamagedError):
        content = (path / MANIFEST).read_bytes()
    try:
        manifest = parse_json_object(content, "it")
    except UsageError as error:
        raise _DamagedError(f"{path} is damaged: its {MANIFEST} cannot be read ({str(error).rstrip('.')}).") from error
    if manifest.pop("manifest_checksum", None) != _manifest_checksum(manifest):
        raise _DamagedError(f"{path} is damaged: the checksum of its {MANIFEST} is wrong.")
    if manifest.get("format") != FORMAT:
        found = manifest.get("format")
        older = ": an older version wrote it, and only that version can continue it" if found == 1 else ""
        raise UsageError(f"{path} has format {found}, and this version of consmarl reads {FORMAT}{older}.")
    if not _is_manifest(manifest):
        raise _DamagedError(f"{path} is damaged: its {MANIFEST} is incomplete.")
    return manifest


def _is_manifest(manifest: Mapping[str, Any]) -> bool:
    """Return whether all entries exist and have the right types; a correct checksum does not prove their origin."""
    kinds = {"number": int, "facts": dict, "leaves": list, "size": int, "checksum": int}
    if not all(isinstance(manifest.get(name), kind) for name, kind in kinds.items()):
        return False
    return all(
        isinstance(leaf, dict)
        and all(isinstance(leaf.get(name), kind) for name, kind in (("name", str), ("dtype", str), ("shape", list)))
        and _KEYS.get(leaf["dtype"]) == leaf.get("key_impl")
        for leaf in manifest["leaves"]
    )


def _checked_tensors(path: Path, manifest: Mapping[str, Any]) -> dict[str, np.ndarray]:
    tensors = path / TENSORS
    with _explained(f"{path} is damaged: its {TENSORS} cannot be read", _DamagedError):
        if (size := tensors.stat().st_size) != manifest["size"]:
            raise _DamagedError(f"{path} is damaged: its {TENSORS} has {size} bytes instead of {manifest['size']}.")
        if _file_checksum(tensors) != manifest["checksum"]:
            raise _DamagedError(f"{path} is damaged: the checksum of its {TENSORS} is wrong.")
        loaded = load_file(tensors)
    for leaf in manifest["leaves"]:
        there = loaded.get(leaf["name"])
        if there is None or not _fits(there, leaf):
            raise _DamagedError(f"{path} is damaged: {leaf['name']} in its {TENSORS} is not {_kind(leaf)}.")
    return loaded


def _fits(tensor: np.ndarray, described: Mapping[str, Any]) -> bool:
    shape = list(tensor.shape)
    if "key_impl" in described:
        size = jax.random.key_data(jax.random.key(0, impl=described["key_impl"])).size
        return tensor.dtype == np.uint32 and shape == [*described["shape"], size]
    return tensor.dtype.name == described["dtype"] and shape == described["shape"]


def _manifest_checksum(manifest: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(manifest, sort_keys=True).encode())


def _file_checksum(path: Path) -> int:
    checksum = 0
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            checksum = zlib.crc32(block, checksum)
    return checksum
