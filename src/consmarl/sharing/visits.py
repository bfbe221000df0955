"""Counts of one agent's visits outside compiled code: a dictionary keyed by the observations' bytes."""

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from consmarl.errors import UsageError


class Visits:
    """Exact counts for any kind of observation."""

    PARTS: ClassVar = ("bytes", "lengths", "counts")

    def __init__(self) -> None:
        """Start empty."""
        self._counts: dict[bytes, int] = {}

    def add(self, observation: ArrayLike) -> int:
        """Count a visit and return the total, including this one."""
        key = key_of(observation)
        self._counts[key] = self._counts.get(key, 0) + 1
        return self._counts[key]

    def count(self, observation: ArrayLike) -> int:
        """Return the number of visits to an observation."""
        return self._counts.get(key_of(observation), 0)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the counts as arrays: the observations' concatenated bytes, their lengths, and their counts."""
        return {
            "bytes": np.frombuffer(b"".join(self._counts), np.uint8),
            "lengths": np.array([len(key) for key in self._counts], np.int64),
            "counts": np.array(list(self._counts.values()), np.int64),
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> Self:
        """Return counts from the arrays that `to_arrays` returned."""
        together, visits = np.asarray(arrays["bytes"], np.uint8).tobytes(), cls()
        ends = np.cumsum(arrays["lengths"])
        if len(together) != (ends[-1] if len(ends) else 0) or len(ends) != len(arrays["counts"]):
            raise UsageError("the counts of observations do not fit together: they were changed since they were saved.")
        for end, length, number in zip(
            ends.tolist(), arrays["lengths"].tolist(), arrays["counts"].tolist(), strict=True
        ):
            visits._counts[together[end - length : end]] = number
        return visits


def key_of(observation: ArrayLike) -> bytes:
    """Return the bytes that identify an observation."""
    array = np.asarray(observation)
    if array.dtype == object:
        raise UsageError("an observation must be a number or an array of numbers.")
    if np.issubdtype(array.dtype, np.floating):
        array = array + 0.0  # turns −0.0 into 0.0
    return array.tobytes()
