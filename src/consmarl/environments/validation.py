"""Validation of user input (parameters of environments and fixed layouts), with one clear message for each error."""

import operator
from collections.abc import Collection, Mapping
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from consmarl.errors import UsageError, nearest, shown
from consmarl.records import Check

Cells = NDArray[np.int32]  # [thing, (row, column)]

# Compiled code counts in 32 bits. Seeds are limited as well: JAX silently drops higher bits, so that two seeds
# would give the same run, and evaluations draw from the keys of seeds 2^31 and above.
MOST_WHOLE = 2**31 - 1
MOST_FINITE = float(np.finfo(np.float32).max)


def whole_number(name: str, value: object, *, least: int, most: int | None = MOST_WHOLE) -> int:
    """Return `value` as an int from `least` to `most`."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = None
    if number is None or isinstance(value, bool | np.bool_) or number < least:
        raise UsageError(f"{name} must be a whole number of at least {least}, not {shown(value)}.")
    if most is not None and number > most:
        raise UsageError(f"{name} must be a whole number from {least} to {most:,}, not {shown(value)}.")
    return number


def finite_number(name: str, value: object) -> float:
    """Return `value` as a float that single precision can represent."""
    is_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not is_number or not -MOST_FINITE <= value <= MOST_FINITE:  # type: ignore[operator]
        raise UsageError(f"{name} must be a finite number, not {shown(value)}.")
    return float(value)  # type: ignore[arg-type]


def fraction(name: str, value: object) -> float:
    """Return `value` as a float from 0 to 1."""
    number = finite_number(name, value)
    if not 0 <= number <= 1:
        raise UsageError(f"{name} must lie between 0 and 1, not {shown(value)}.")
    return number


def probability(name: str, value: object) -> float:
    """Return `value` as a float from 0 to 1; the message calls it a probability."""
    number = finite_number(name, value)
    if not 0 <= number <= 1:
        raise UsageError(f"{name} is a probability and must lie between 0 and 1, not {shown(value)}.")
    return number


def not_negative(name: str, value: object) -> float:
    """Return `value` as a float of at least 0."""
    number = finite_number(name, value)
    if number < 0:
        raise UsageError(f"{name} must be at least 0, not {shown(value)}.")
    return number


def positive(name: str, value: object) -> float:
    """Return `value` as a float above 0."""
    number = finite_number(name, value)
    if number <= 0:
        raise UsageError(f"{name} must be above 0, not {shown(value)}.")
    return number


def at_least(least: int) -> Check:
    """Return a check for whole numbers of at least `least`."""
    return Check(lambda name, value: whole_number(name, value, least=least))


Fraction = Annotated[float, Check(fraction)]
NotNegative = Annotated[float, Check(not_negative)]
Positive = Annotated[float, Check(positive)]
Size = Annotated[int, at_least(1)]


def whole_pair(name: str, value: object, *, least: int) -> tuple[int, int]:
    """Return `value` as (rows, columns)."""
    if not isinstance(value, list | tuple | np.ndarray) or len(value) != 2:
        raise UsageError(f"{name} must be a pair (rows, columns), such as (12, 12), not {shown(value)}.")
    rows, columns = (whole_number(f"each side of {name}", side, least=least) for side in value)
    return rows, columns


def odd_pair(name: str, value: object) -> tuple[int, int]:
    """Return `value` as the (rows, columns) of a window with a centre cell."""
    rows, columns = whole_pair(name, value, least=1)
    if rows % 2 == 0 or columns % 2 == 0:
        odd = (rows | 1, columns | 1)
        raise UsageError(
            f"{name} must have odd sides, so that the agent stands in its middle: {(rows, columns)} could be {odd}."
        )
    return rows, columns


def room_for(grid: tuple[int, int], things: Mapping[str, int]) -> None:
    """Check that all objects fit on distinct cells; `things` are their numbers by kind."""
    num_cells, num_things = grid[0] * grid[1], sum(things.values())
    if num_things > num_cells:
        listed = " + ".join(f"{count} {name}" for name, count in things.items() if count)
        raise UsageError(
            f"{listed} need {num_things} distinct cells, and a {grid[0]}×{grid[1]} grid has {num_cells}: "
            "enlarge the grid or place fewer things."
        )


def known_keys(what: str, given: Collection[str], required: Collection[str]) -> None:
    """Check that a description has exactly the required keys."""
    for key in given:
        if key not in required:
            raise UsageError(f"{what} has no part {key!r}: {nearest(str(key), required)}")
    missing = [key for key in required if key not in given]
    if missing:
        raise UsageError(f"{what} lacks {', '.join(map(repr, missing))}; it needs {', '.join(map(repr, required))}.")


def cells(name: str, value: object, count: int, grid: tuple[int, int]) -> Cells:
    """Return `value` as `count` cells (row, column) on the grid."""
    try:
        array = np.asarray(value)
    except ValueError:
        array = np.empty((), dtype=object)
    if count == 0 and array.size == 0:
        return np.zeros((0, 2), np.int32)
    if array.shape != (count, 2) or array.dtype.kind not in "iu":
        raise UsageError(f"layout {name!r} must be {count} cells [row, column] in whole numbers, not {shown(value)}.")
    outside = [tuple(cell.tolist()) for cell in array if not (0 <= cell[0] < grid[0] and 0 <= cell[1] < grid[1])]
    if outside:
        raise UsageError(
            f"layout {name!r} has {outside[0]} outside the grid: rows go from 0 to {grid[0] - 1}, "
            f"columns from 0 to {grid[1] - 1}."
        )
    return array.astype(np.int32)


def distinct(groups: Mapping[str, Cells]) -> None:
    """Check that no two objects share a cell."""
    taken: dict[tuple[Any, ...], str] = {}
    for name, group in groups.items():
        for cell in map(tuple, group.tolist()):
            if cell in taken:
                raise UsageError(f"layout puts {name!r} and {taken[cell]!r} on one cell, {cell}: each needs its own.")
            taken[cell] = name


def index_into(group: str, name: str, description: Mapping[str, Any], count: int) -> int:
    """Return `description[name]` as an index into a group of `count` objects."""
    index = whole_number(f"layout {name!r}", description[name], least=0)
    if index >= max(count, 1):
        raise UsageError(f"layout {name!r} is an index into {group!r} and can be at most {count - 1}, not {index}.")
    return index
