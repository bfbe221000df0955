"""Symmetries of environments: mirrored and rotated grids.

A mirrored episode is also a valid episode, and learners can learn from it as from any other.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

Pair = tuple[int, int]


class Symmetry(NamedTuple):
    """How observations and actions are transformed."""

    codes: tuple[int, ...]  # for each position, the index of the code that moves there
    counts_down: tuple[int, ...]  # positions whose new code is its limit minus the old one
    actions: tuple[int, ...]  # the action that each action becomes


def grid_symmetries(
    grid: Pair, view: Pair, walk_names: Sequence[str], num_features: int, num_channels: int
) -> tuple[Symmetry, ...]:
    """Return the symmetries of a grid, except for the identity.

    Observations start with row, column and features without a direction; the channels of the window's cells follow, row
    by row. Square grids with square windows have seven symmetries, others three.
    """
    is_square = grid[0] == grid[1] and view[0] == view[1]
    ways = [
        (swaps, rows, columns) for swaps in (False, is_square) for rows in (False, True) for columns in (False, True)
    ]
    found = dict.fromkeys(ways)
    return tuple(_symmetry(way, view, walk_names, num_features, num_channels) for way in found if any(way))


def _symmetry(
    way: tuple[bool, bool, bool], view: Pair, names: Sequence[str], num_features: int, num_channels: int
) -> Symmetry:
    """Return the result of swapping rows and columns, then flipping rows, then flipping columns; each optional."""
    swaps, turns_rows, turns_columns = way
    window = num_features + np.arange(view[0] * view[1] * num_channels).reshape(*view, num_channels)
    window = window.swapaxes(0, 1) if swaps else window
    window = window[:: -1 if turns_rows else 1, :: -1 if turns_columns else 1]
    place = (1, 0) if swaps else (0, 1)
    becomes = {name: name for name in names}
    if swaps:
        becomes |= {"down": "right", "right": "down", "up": "left", "left": "up"}
    turned = ({"up": "down", "down": "up"} if turns_rows else {}) | (
        {"left": "right", "right": "left"} if turns_columns else {}
    )
    return Symmetry(
        codes=(*place, *range(2, num_features), *window.reshape(-1).tolist()),
        counts_down=tuple(index for index, turns in enumerate((turns_rows, turns_columns)) if turns),
        actions=tuple(names.index(turned.get(becomes[name], becomes[name])) for name in names),
    )
