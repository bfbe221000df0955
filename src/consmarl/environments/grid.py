"""The common parts of all grid environments: moves, distinct cells, and egocentric windows as codes.

Cells are (row, column), with rows increasing downwards. Walking actions: 0 stay, 1 down, 2 left, 3 up, 4 right;
any other action stays in place.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from consmarl.environments import validation
from consmarl.environments.interface import MAX_CODE, DrawsT, Environment, Ground, LayoutT, StateT
from consmarl.environments.symmetry import Symmetry, grid_symmetries
from consmarl.errors import UsageError

WALK_NAMES = ("stay", "down", "left", "up", "right")

# The three channels of a cell are packed into one integer, so that a window takes one gather instead of three.
CHANNEL_BITS = 10
NUM_CHANNELS = 3
MAX_CELL_CODE = 2**CHANNEL_BITS - 1
# every running environment stores its grid, and every observation its whole view: larger ones would exhaust memory
MAX_GRID_CELLS, MAX_VIEW_CELLS = 2**22, 2**16


def walk(cells: jax.Array, actions: jax.Array, grid: tuple[int, int]) -> jax.Array:
    """Move every agent one cell, stopping at the border; agents never block each other."""
    down = (actions == 1).astype(jnp.int32) - (actions == 3)
    right = (actions == 4).astype(jnp.int32) - (actions == 2)
    rows = jnp.clip(cells[:, 0] + down, 0, grid[0] - 1)
    columns = jnp.clip(cells[:, 1] + right, 0, grid[1] - 1)
    return jnp.stack([rows, columns], axis=-1)


def same_cell(cells: jax.Array, others: jax.Array) -> jax.Array:
    """Return which of `cells` lie on which of `others`: bool [cell, other]."""
    return (cells[:, None, :] == others[None, :, :]).all(axis=-1)


def draw_distinct_cells(key: jax.Array, grid: tuple[int, int], count: int) -> jax.Array:
    """Draw `count` distinct cells, with all ordered selections equally likely: int32 [count] cell numbers."""
    num_cells = grid[0] * grid[1]
    slots = jnp.arange(count)
    picks = slots + jax.random.randint(key, (count,), 0, num_cells - slots)

    def swap(deck: jax.Array, draw: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        slot, pick = draw
        return deck.at[pick].set(deck[slot]), deck[pick]

    _, drawn = jax.lax.scan(swap, jnp.arange(num_cells), (slots, picks))
    return drawn


def row_major(cell_numbers: jax.Array, grid: tuple[int, int]) -> jax.Array:
    """Convert cell numbers to cells [thing, (row, column)], topmost and leftmost first."""
    ordered = jnp.sort(cell_numbers)
    return jnp.stack([ordered // grid[1], ordered % grid[1]], axis=-1)


def in_channel(codes: jax.Array, channel: int) -> jax.Array:
    """Shift codes into one channel of a packed cell."""
    return codes.astype(jnp.int32) << (CHANNEL_BITS * channel)


def read_windows(board: jax.Array, agents: jax.Array, grid: tuple[int, int], view: tuple[int, int]) -> jax.Array:
    """Return each agent's window of a board, row by row: [agent, window cell].

    The board is flat and has a margin of half a view on every side, so that no window extends beyond it.
    """
    width = grid[1] + 2 * (view[1] // 2)
    window = (np.arange(view[0])[:, None] * width + np.arange(view[1])[None, :]).reshape(-1)
    corners = agents[:, 0] * width + agents[:, 1]
    return board.at[corners[:, None] + window[None, :]].get(mode="promise_in_bounds")


def packed_windows(
    agents: jax.Array, things: jax.Array, packed: jax.Array, grid: tuple[int, int], view: tuple[int, int]
) -> jax.Array:
    """Return the contents of each agent's window, row by row: int32 [agent, window cell].

    `packed` has one value per thing; values of things on the same cell add up, and cells outside the grid
    are 0.
    """
    top, left = view[0] // 2, view[1] // 2
    width = grid[1] + 2 * left
    places = (things[:, 0] + top) * width + things[:, 1] + left
    board = jnp.zeros((grid[0] + 2 * top) * width, packed.dtype)
    board = board.at[places].add(packed, mode="promise_in_bounds")
    return read_windows(board, agents, grid, view)


@dataclass(frozen=True, kw_only=True)
class GridWorld(Environment[LayoutT, StateT, DrawsT]):
    """The settings of every grid environment, with their validation."""

    grid: tuple[int, int]  # (rows, columns)
    num_agents: int
    view: tuple[int, int]  # (rows, columns) of an agent's window, both odd
    episode_limit: int  # steps
    id: str = field(default="custom", compare=False)

    feature_names: ClassVar[tuple[str, ...]]  # the first entries of an observation
    channel_names: ClassVar[tuple[str, str, str]]  # followed by these for every cell of the window, row by row

    def __post_init__(self) -> None:
        """Validate and normalise the settings."""
        self._settle("grid", validation.whole_pair("grid", self.grid, least=1))
        self._settle("num_agents", validation.whole_number("num_agents", self.num_agents, least=1))
        self._settle("view", validation.odd_pair("view", self.view))
        self._settle("episode_limit", validation.whole_number("episode_limit", self.episode_limit, least=1))
        for name, value, most in (
            ("num_agents", self.num_agents, MAX_CELL_CODE),
            ("episode_limit", self.episode_limit, MAX_CODE),
            ("each side of grid", max(self.grid), MAX_CODE),
        ):
            if value > most:
                raise UsageError(f"{name} can be at most {most}, so that observations stay small codes, not {value}.")
        for name, (rows, columns), most in (("grid", self.grid, MAX_GRID_CELLS), ("view", self.view, MAX_VIEW_CELLS)):
            if rows * columns > most:
                raise UsageError(f"{name} can have at most {most:,} cells, not {rows:,}×{columns:,}.")

    def _settle(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)  # the dataclass is frozen

    def _settle_numbers(self, *names: str) -> None:
        for name in names:
            self._settle(name, validation.finite_number(name, getattr(self, name)))


class WalkerWorld(GridWorld[LayoutT, StateT, tuple[()]]):
    """A grid environment with a random layout, whose agents observe their position, the time and three channels."""

    feature_names: ClassVar[tuple[str, ...]] = ("row", "column", "time")
    channel_scales: ClassVar[tuple[float, float]]  # of the second and third channel
    channel_limits: ClassVar[tuple[int, int]]

    def draw(self, key: jax.Array) -> tuple[()]:  # noqa: ARG002
        """Return an empty tuple: only the layout is random."""
        return ()

    @cached_property
    def observation_scale(self) -> NDArray[np.float32]:
        """1/(rows−1), 1/(columns−1), 1/limit, then (1/agents, and the environment's two) per window cell."""
        place = [1 / max(side - 1, 1) for side in self.grid]
        window = np.tile([1 / self.num_agents, *self.channel_scales], self.view[0] * self.view[1])
        return np.array([*place, 1 / self.episode_limit, *window], np.float32)

    @cached_property
    def observation_limit(self) -> NDArray[np.int64]:
        """The largest value that each code can take."""
        window = np.tile([self.num_agents, *self.channel_limits], self.view[0] * self.view[1])
        return np.array([self.grid[0] - 1, self.grid[1] - 1, self.episode_limit, *window], np.int64)

    @cached_property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """Mirrored and, if grid and window are square, rotated: no side of the grid is special."""
        num_features, num_channels = len(self.feature_names), len(self.channel_names)
        return grid_symmetries(self.grid, self.view, self.action_names, num_features, num_channels)

    @property
    def ground(self) -> Ground:
        """The grid; agents observe their row and column."""
        return Ground(self.grid, self.view)

    @property
    def num_places(self) -> int:
        """The number of cells of the grid."""
        return self.grid[0] * self.grid[1]

    def places_in_view(self, codes: jax.Array) -> jax.Array:
        """Return which cells are in the window around an agent's position."""

        def is_near(code: jax.Array, side: int, reach: int) -> jax.Array:
            numbers = jnp.arange(side).reshape((1,) * code.ndim + (-1,))
            return jnp.abs(numbers - code.astype(jnp.int32)[..., None]) <= reach

        rows, columns = (is_near(codes[..., axis], self.grid[axis], self.view[axis] // 2) for axis in (0, 1))
        return (rows[..., :, None] & columns[..., None, :]).reshape(*codes.shape[:-1], self.num_places)

    def _codes(self, agents: jax.Array, num_steps: jax.Array, things: jax.Array, packed: jax.Array) -> jax.Array:
        """Concatenate an agent's position, the time and its window, with agents counted in channel 0."""
        everyone = jnp.concatenate([agents, things])
        values = jnp.concatenate([in_channel(jnp.ones(self.num_agents), 0), packed])
        windows = packed_windows(agents, everyone, values, self.grid, self.view)
        channels = [(windows >> (CHANNEL_BITS * channel)) & MAX_CELL_CODE for channel in range(NUM_CHANNELS)]
        dtype = self.observation_dtype
        seen = jnp.stack(channels, axis=-1).astype(dtype).reshape(self.num_agents, -1)
        time = jnp.broadcast_to(num_steps.astype(dtype), (self.num_agents, 1))
        return jnp.concatenate([agents.astype(dtype), time, seen], axis=-1)
