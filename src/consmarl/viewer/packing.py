"""Pack arrays as text for a page: a JSON header and the raw numbers, compressed without loss.

The page unpacks an episode only when it is shown, so a page with many episodes opens quickly.
"""

import base64
import gzip
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

ALIGNMENT = 8
KINDS = {"float32": "f4", "float64": "f8", "int32": "i4", "uint32": "u4", "uint16": "u2", "uint8": "u1", "bool": "u1"}


def packed(facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> str:
    """Return facts and arrays as base64; the same input always gives the same text."""
    described, parts, offset = {}, [], 0
    for name, array in arrays.items():
        described[name] = [KINDS[array.dtype.name], list(array.shape), offset]
        whole = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()
        parts.append(whole + bytes(-len(whole) % ALIGNMENT))
        offset += len(parts[-1])
    header = json.dumps({"facts": facts, "arrays": described}, allow_nan=False, separators=(",", ":")).encode()
    header += b" " * (-len(header) % ALIGNMENT)
    start = np.array([len(header), 0], "<u4").tobytes()  # two numbers, so that the header is aligned
    return base64.b64encode(gzip.compress(start + header + b"".join(parts), mtime=0)).decode("ascii")


def unpacked(text: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the facts and arrays in a packed text."""
    whole = gzip.decompress(base64.b64decode(text))
    start = 8 + int(np.frombuffer(whole, "<u4", 1)[0])
    header = json.loads(whole[8:start])
    arrays = {}
    for name, (kind, shape, offset) in header["arrays"].items():
        count = int(np.prod(shape))
        arrays[name] = np.frombuffer(whole, f"<{kind}", count, start + offset).reshape(shape)
    return header["facts"], arrays
