"""Footprints: an exact memory of an agent's own path in this episode, fed to its network with the observation.

The network gets as inputs how often its agent has been on each cell in view, and how much of the grid it has not seen
yet in each of the eight directions around the view. All of this follows from the agent's own observations, but to
remember it, a network would have to learn to count and to keep a map. With footprints, an agent can tell a mine where
it has stayed long enough from one it has not visited, and a searching agent knows where it has not looked.

Axes: boards are `[..., cell]`, with cells numbered row by row; rows and columns are int32 `[...]`.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

Pair = tuple[int, int]

MOST_STEPS = 16  # maximum count per cell
STEP_SCALE = 1 / 8
ALL_UNSEEN = 255  # for a direction that contains the whole grid, unseen
UNSEEN_SCALE = 1 / 64
_ASIDE = np.array([-1, 0, 1])  # before the view, within it, beyond it
_DIRECTIONS = np.delete(np.arange(9), 4)  # of the nine parts of the grid around an agent, without the view itself


class Way(NamedTuple):
    """An agent's path so far: where it has been and what it has seen."""

    num_steps: jax.Array  # uint8 [..., cell], steps that ended on a cell
    is_seen: jax.Array  # bool [..., cell]


def first_way(shape: tuple[int, ...], grid: Pair) -> Way:
    """Return empty paths, for agents of the given shape."""
    cells = (*shape, grid[0] * grid[1])
    return Way(jnp.zeros(cells, jnp.uint8), jnp.zeros(cells, bool))


def with_step(way: Way, rows: jax.Array, columns: jax.Array, grid: Pair, view: Pair) -> Way:
    """Return the path with one more step."""
    here = jax.nn.one_hot(rows * grid[1] + columns, grid[0] * grid[1], dtype=jnp.uint8)
    near_row, near_column = (_aside(*each) == 0 for each in zip((rows, columns), grid, view, strict=True))
    sees = (near_row[..., :, None] & near_column[..., None, :]).reshape(way.is_seen.shape)
    return Way(jnp.minimum(way.num_steps + here, jnp.uint8(MOST_STEPS)), way.is_seen | sees)


def told(way: Way, rows: jax.Array, columns: jax.Array, grid: Pair, view: Pair) -> jax.Array:
    """Return the network's extra inputs: uint8 [..., what]."""
    steps = steps_in_view(way.num_steps, rows, columns, grid, view)
    return jnp.concatenate([steps, unseen_around(way.is_seen, rows, columns, grid, view)], axis=-1)


def scale_of_told(view: Pair) -> NDArray[np.float32]:
    """Return the scale of these inputs: [what]."""
    num_steps, num_unseen = view[0] * view[1], len(_DIRECTIONS)
    return np.array([STEP_SCALE] * num_steps + [UNSEEN_SCALE] * num_unseen, np.float32)


def told_in_episodes(rows: jax.Array, columns: jax.Array, grid: Pair, view: Pair) -> jax.Array:
    """Return the extra inputs for every step of episodes: int32 [step, ...] twice → uint8 [step, ..., what]."""

    def step(way: Way, place: tuple[jax.Array, jax.Array]) -> tuple[Way, jax.Array]:
        way = with_step(way, *place, grid, view)
        return way, told(way, *place, grid, view)

    # step by step, which is much faster than cumulative sums over all boards
    return jax.lax.scan(step, first_way(rows.shape[1:], grid), (rows, columns))[1]


def steps_in_view(num_steps: jax.Array, rows: jax.Array, columns: jax.Array, grid: Pair, view: Pair) -> jax.Array:
    """Return the step counts in the window around an agent, row by row: uint8; 0 outside the grid."""
    top, left = view[0] // 2, view[1] // 2
    width = grid[1] + 2 * left
    margins = [(0, 0)] * (num_steps.ndim - 1) + [(top, top), (left, left)]
    padded = jnp.pad(num_steps.reshape(*rows.shape, *grid), margins).reshape(*rows.shape, -1)
    window = (np.arange(view[0])[:, None] * width + np.arange(view[1])[None, :]).reshape(-1)
    corners = rows * width + columns
    places = corners[..., None] + window.reshape((1,) * corners.ndim + (-1,))
    return jnp.take_along_axis(padded, places, axis=-1, mode="promise_in_bounds")


def unseen_around(is_seen: jax.Array, rows: jax.Array, columns: jax.Array, grid: Pair, view: Pair) -> jax.Array:
    """Return the unseen share of the grid in each of eight directions: uint8 [..., 8], 255 for the whole grid."""
    unseen = (~is_seen).astype(jnp.float32).reshape(*rows.shape, *grid)
    sides = (_aside(*each) for each in zip((rows, columns), grid, view, strict=True))
    in_rows, in_columns = (
        (side[..., None, :] == _ASIDE.reshape((1,) * rows.ndim + (3, 1))).astype(jnp.float32) for side in sides
    )
    counts = in_rows @ unseen @ in_columns.swapaxes(-1, -2)  # [..., 3, 3]
    shares = counts.reshape(*rows.shape, 9)[..., _DIRECTIONS] / (grid[0] * grid[1])
    return jnp.floor(shares * ALL_UNSEEN).astype(jnp.uint8)


def _aside(places: jax.Array, side: int, reach: int) -> jax.Array:
    """Return which rows (or columns) lie before a window (−1), in it (0) or beyond it (1): [..., side]."""
    offsets = np.arange(side).reshape((1,) * places.ndim + (-1,)) - places[..., None]
    return jnp.sign(offsets) * (jnp.abs(offsets) > reach // 2)
