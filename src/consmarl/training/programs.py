"""Compiled programs stored on disk, so that later processes neither trace nor compile them again.

JAX's own cache of compiled programs saves XLA's work but not JAX's, which takes seconds by itself: JAX has to trace
and lower a program to compute its cache key. Here the key consists of the inputs that determine a program: our code,
the run's parts, and the shapes of the arguments. See docs/decisions/0011-compiled-programs.md.
"""

import dataclasses
import enum
import functools
import hashlib
import operator
import os
import pickle
import zlib
from collections.abc import Callable, Hashable, Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.experimental import serialize_executable

from consmarl.errors import UsageError
from consmarl.files import replacing

SUFFIX = ".program"
_PACKAGE = Path(__file__).parents[1]
_ROOMS = ("environments", "networks", "sharing", "learners", "training")  # packages whose code ends up in programs


@dataclasses.dataclass
class Shelf:
    """A directory of programs that keeps the most recently used ones."""

    directory: Path
    most_bytes: int

    def get(self, name: str) -> bytes | None:
        """Return the data stored under this name; None if it is missing or damaged."""
        path = self.directory / (name + SUFFIX)
        try:
            data = path.read_bytes()
            os.utime(path)  # mark it as used
        except OSError:  # missing, or just removed
            return None
        digest, body = data[:32], data[32:]
        return zlib.decompress(body) if hashlib.sha256(body).digest() == digest else None

    def put(self, name: str, data: bytes) -> None:
        """Store data atomically; a full disk is not an error."""
        body = zlib.compress(data, level=1)
        try:
            with replacing(self.directory / (name + SUFFIX)) as temporary:
                temporary.write_bytes(hashlib.sha256(body).digest() + body)
        except UsageError:
            return
        self._make_room()

    def _make_room(self) -> None:
        """Remove the least recently used files; other processes may do the same at the same time."""
        found = []
        for path in self.directory.glob("*" + SUFFIX):
            try:
                found.append((path.stat().st_mtime_ns, path.stat().st_size, path))
            except OSError:  # another process has removed it
                continue
        total = sum(size for _, size, _ in found)
        for _, size, path in sorted(found):
            if total <= self.most_bytes:
                return
            path.unlink(missing_ok=True)
            total -= size


_shelves: list[Shelf] = []  # at most one


def keep_programs(shelf: Shelf | None) -> None:
    """Store programs on this shelf from now on; with None, store none."""
    _shelves[:] = [] if shelf is None else [shelf]


class Program:
    """A compiled function: `jax.jit`, with programs stored on the shelf set by `keep_programs`.

    The first `num_static` arguments are static.
    """

    def __init__(self, function: Callable[..., Any], num_static: int, donate_argnums: tuple[int, ...] = ()) -> None:
        """Wrap the function; nothing is compiled yet."""
        self._jitted = jax.jit(function, static_argnums=tuple(range(num_static)), donate_argnums=donate_argnums)
        self._name, self._num_static = function.__name__.strip("_"), num_static
        self._file = Path(function.__code__.co_filename)
        self._loaded: dict[Hashable, Any] = {}
        # the last program is found without inspecting every array: the Python loop calls one in every step
        self._recent_statics: tuple[Any, ...] = (object(),) * num_static
        self._recent: Any = None
        functools.update_wrapper(self, function)

    def __call__(self, *arguments: Any) -> Any:
        """Call the function."""
        if not _shelves:
            return self._jitted(*arguments)
        statics, rest = arguments[: self._num_static], arguments[self._num_static :]
        if all(map(operator.is_, statics, self._recent_statics)):
            try:
                return self._recent(*rest)
            except TypeError:  # the shapes differ, which the program checks before it starts
                return self._looked_up(statics, rest)
        return self._looked_up(statics, rest)

    def _looked_up(self, statics: tuple[Any, ...], rest: tuple[Any, ...]) -> Any:
        leaves, tree = jax.tree.flatten(rest)
        if not _is_plain(leaves):
            return self._jitted(*statics, *rest)
        signature = (statics, tree, tuple(map(_kind, leaves)), _shelves[0].directory)
        if signature not in self._loaded:
            self._loaded[signature] = self._found_or_compiled((*statics, *rest), signature)
        self._recent_statics, self._recent = statics, self._loaded[signature]
        return self._recent(*rest)

    def _found_or_compiled(self, arguments: tuple[Any, ...], signature: tuple[Any, ...]) -> Any:
        statics, tree, kinds, _ = signature
        try:
            described = [*map(description, statics), str(tree), *map(str, kinds), *_surroundings(), _hash(self._file)]
        except (_NotOursError, OSError):  # third-party code is not part of the key
            return functools.partial(self._jitted, *statics)
        name = f"{self._name}-{hashlib.sha256(repr(described).encode()).hexdigest()}"
        if (data := _shelves[0].get(name)) is not None and (program := _deserialised(data)) is not None:
            return program
        program = self._jitted.lower(*arguments).compile()
        if (data := _serialised(program)) is not None:
            _shelves[0].put(name, data)
        return program


def _is_plain(leaves: list[Any]) -> bool:
    """Return whether this is an ordinary call on a single CPU device, for which a stored program can be used."""
    told, devices = jax.config.values, jax.devices()
    return (
        len(devices) == 1
        and devices[0].platform == "cpu"
        and not any(told[name] for name in ("jax_disable_jit", "jax_debug_nans", "jax_debug_infs"))
        # programs from JAX's own cache cannot be serialised again: functions for sorting would be missing
        and not (told["jax_compilation_cache_dir"] and told["jax_enable_compilation_cache"])
        # another program that includes this one is being traced
        and not any(isinstance(leaf, jax.core.Tracer) for leaf in leaves)
    )


def _kind(leaf: Any) -> tuple[Any, ...]:
    aval = jax.typeof(leaf)
    return aval.shape, str(aval.dtype), getattr(aval, "weak_type", False)


class _NotOursError(TypeError):
    """An object whose code is not ours, or whose structure is unknown."""


def description(value: Any) -> str:
    """Return a text that identifies a part of a run and everything it consists of."""
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return repr(value)
    if isinstance(value, np.dtype):
        return f"dtype {value.str}"
    if isinstance(value, enum.Enum) and _is_ours(type(value)):
        return f"{_named(type(value))}.{value.name}"
    if isinstance(value, jax.ShapeDtypeStruct):
        return repr(value)
    if type(value) is dict:
        return f"{{{', '.join(f'{key!r}: {description(value[key])}' for key in sorted(value))}}}"
    if isinstance(value, tuple) and (type(value) is tuple or _is_ours(type(value))):
        return f"{_named(type(value))}({', '.join(map(description, value))})"
    if dataclasses.is_dataclass(value) and not isinstance(value, type) and _is_ours(type(value)):
        inner = (f"{each.name}={description(getattr(value, each.name))}" for each in dataclasses.fields(value))
        return f"{_named(type(value))}({', '.join(inner)})"
    raise _NotOursError(f"{type(value).__name__} cannot be described.")


def _is_ours(kind: type) -> bool:
    return kind.__module__.startswith(tuple(f"{_PACKAGE.name}.{room}." for room in _ROOMS))


def _named(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _surroundings() -> Iterator[str]:
    """Yield the remaining parts of a program's key: our code and JAX's configuration."""
    yield _code()
    for name, value in sorted(jax.config.values.items()):
        yield f"{name}={value}"


@functools.cache
def _code() -> str:
    """Return the hashes of all our source files that programs can contain code from."""
    paths = [path for room in _ROOMS for path in sorted((_PACKAGE / room).rglob("*.py"))]
    return " ".join(f"{path.relative_to(_PACKAGE)} {_hash(path)}" for path in paths)


@functools.cache
def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _serialised(program: Any) -> bytes | None:
    try:
        return pickle.dumps(serialize_executable.serialize(program))
    except (ValueError, NotImplementedError, TypeError, jax.errors.JaxRuntimeError, pickle.PicklingError):
        # not every program can be serialised
        return None


def _deserialised(data: bytes) -> Any:
    try:
        return serialize_executable.deserialize_and_load(*pickle.loads(data))
    except Exception:  # noqa: BLE001  # whatever the error, the program can be compiled again
        return None
