"""Read NumPy archives from untrusted sources: only plain arrays, with bounded memory.

`np.load` evaluates headers as Python literals and allocates as much memory as they claim. Here a header must have the
form that NumPy writes for arrays of numbers, booleans and text, and must match the size of the data.
"""

import math
import re
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from consmarl.errors import UsageError

MOST_ARRAYS, MOST_BYTES = 200, 512 * 2**20  # per archive; ours have about 50 arrays and a few megabytes
_HEADER = re.compile(
    rb"\{'descr': '(?P<descr>[<|>]?[a-zA-Z]\d{0,9})', 'fortran_order': (?P<fortran>True|False), "
    rb"'shape': \((?P<shape>(\d{1,18}, ?)*(\d{1,18})?)\), \} *\n"
)


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays of an archive by name; an invalid archive raises a `UsageError`."""
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            if len(members) > MOST_ARRAYS or sum(member.file_size for member in members) > MOST_BYTES:
                raise UsageError(f"it has more than {MOST_ARRAYS} arrays or {MOST_BYTES // 2**20} megabytes.")
            return {member.filename.removesuffix(".npy"): _array(archive, member) for member in members}
    # zipfile also raises RuntimeError for archives that it cannot read
    except (OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise UsageError(f"{' '.join(str(error).split()).rstrip('.') or type(error).__name__}.") from error


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    name = repr(member.filename[:100])
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise UsageError(f"{name} is not compressed the way NumPy does it.")
    with archive.open(member) as file:
        content = file.read(member.file_size)  # without a limit, it would unpack any amount of data
    start = 10 + int.from_bytes(content[8:10], "little")
    header = _HEADER.fullmatch(content[10:start])
    if content[:8] != b"\x93NUMPY\x01\x00" or header is None:
        raise UsageError(f"{name} is not a plain array.")
    dtype = np.dtype(_kind(name, header["descr"].decode()))
    shape = tuple(int(each) for each in header["shape"].replace(b",", b" ").split())
    if dtype.itemsize == 0 or math.prod(shape) * dtype.itemsize != len(content) - start:
        raise UsageError(f"{name} has {len(content) - start} bytes, which is not the size of its shape.")
    order: Any = "F" if header["fortran"] == b"True" else "C"
    return np.ndarray(shape, dtype, buffer=content, offset=start, order=order)


def _kind(name: str, descr: str) -> str:
    if descr.lstrip("<|>")[0] not in "biufU":
        raise UsageError(f"{name} is not a plain array: its type is {descr!r}, and Python objects are never loaded.")
    return descr
