"""Footprints: how often an agent has been on each cell in its view, in this episode.

All of it follows from what the agent has seen of its own place, but a network that is to remember it has to learn to
count and to keep a map. Here it is exact: whoever has stayed on a mine long enough can tell it from one where it has
not been.
Axes: boards are `[..., cell]`, cells being numbered row by row.
"""

import jax
import jax.numpy as jnp
import numpy as np

Pair = tuple[int, int]

MOST_STEPS = 16  # on one cell that are told apart
SCALE = 1 / 8


def stepped_on(rows: jax.Array, columns: jax.Array, grid: Pair) -> jax.Array:
    """Return 1 on the cell where an agent is and 0 elsewhere: int32 [...] twice → uint8 [..., cell]."""
    return jax.nn.one_hot(rows * grid[1] + columns, grid[0] * grid[1], dtype=jnp.uint8)


def with_step(board: jax.Array, rows: jax.Array, columns: jax.Array, grid: Pair) -> jax.Array:
    """Return the footprints so far and one more."""
    return jnp.minimum(board + stepped_on(rows, columns, grid), jnp.uint8(MOST_STEPS))


def windows_of(rows: jax.Array, columns: jax.Array, grid: Pair, view: Pair) -> jax.Array:
    """Return what `in_view` does in every step of whole episodes: int32 [step, ...] twice → uint8 [step, ..., cell]."""

    def step(board: jax.Array, place: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        board = with_step(board, *place, grid)
        return board, in_view(board, *place, grid, view)

    # step by step, which takes a fraction of the time of a cumulative sum over all boards
    first = jnp.zeros((*rows.shape[1:], grid[0] * grid[1]), jnp.uint8)
    return jax.lax.scan(step, first, (rows, columns))[1]


def in_view(board: jax.Array, rows: jax.Array, columns: jax.Array, grid: Pair, view: Pair) -> jax.Array:
    """Return the footprints in the window around an agent, uint8 row by row; none outside the grid."""
    top, left = view[0] // 2, view[1] // 2
    width = grid[1] + 2 * left
    margins = [(0, 0)] * (board.ndim - 1) + [(top, top), (left, left)]
    padded = jnp.pad(board.reshape(*board.shape[:-1], *grid), margins)
    window = (np.arange(view[0])[:, None] * width + np.arange(view[1])[None, :]).reshape(-1)
    corners = rows * width + columns
    places = corners[..., None] + window.reshape((1,) * corners.ndim + (-1,))
    flat = padded.reshape(*board.shape[:-1], -1)
    return jnp.take_along_axis(flat, places, axis=-1, mode="promise_in_bounds")
