"""Text maps of Cleanup: `@` wall, `R` river, `H` river with waste, `B` apple field, `P` start, blank ground."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from consmarl.errors import UsageError

WALL, RIVER, WASTE, FIELD, START = "@RHBP"

# The map "10x10_sym" of the authors' release, used in the paper; its walls leave 8×8 cells.
PUBLISHED_MAP = (
    "@@@@@@@@@@",
    "@HH   P B@",
    "@RR    BB@",
    "@HH   P B@",
    "@RR    BB@",
    "@HH P   B@",
    "@RR    BB@",
    "@HH     B@",
    "@RRP   BB@",
    "@@@@@@@@@@",
)


class CleanupMap(NamedTuple):
    """A parsed map: bool [row, column] each, and the start cells in agent order."""

    is_wall: NDArray[np.bool_]
    is_river: NDArray[np.bool_]
    is_waste: NDArray[np.bool_]
    is_field: NDArray[np.bool_]
    starts: NDArray[np.int32]  # [agent, 2]


def generate_map(grid: tuple[int, int], num_agents: int) -> tuple[str, ...]:
    """Return the published map, or one that follows its pattern for another grid or team size.

    The river is in columns 1 and 2, with waste in every other row; fields are in the last column inside the walls, and
    in every other row of the one before it; starts are spread evenly over the ground in between.
    """
    if grid == (10, 10) and num_agents == 4:
        return PUBLISHED_MAP
    rows, columns = grid
    if rows < 4 or columns < 7:
        raise UsageError(
            f"grid {grid} is too small for a river, a field and ground between: at least (4, 7) is needed."
        )
    lines = [[WALL] * columns for _ in range(rows)]
    for row in range(1, rows - 1):
        has_waste = row % 2 == 1
        bank = [WASTE if has_waste else RIVER] * 2
        field = [" ", FIELD] if has_waste else [FIELD, FIELD]
        lines[row][1:-1] = bank + [" "] * (columns - 6) + field
    ground = [(row, column) for row in range(1, rows - 1) for column in range(3, columns - 3)]
    if num_agents > len(ground):
        raise UsageError(
            f"a {rows}×{columns} map has ground for {len(ground)} agents to start on, not for {num_agents}: "
            "enlarge the grid."
        )
    for place in np.linspace(0, len(ground) - 1, num_agents).round().astype(int):
        row, column = ground[place]
        lines[row][column] = START
    return tuple("".join(line) for line in lines)


def read_map(lines: tuple[str, ...], num_agents: int) -> CleanupMap:
    """Parse and validate a map; the last start on the map is agent 0's, as in the authors' release."""
    letters = np.array([list(line) for line in lines])
    unknown = sorted(set("".join(lines)) - set("@RHBP "))
    if unknown:
        raise UsageError(
            f"map has the letter {unknown[0]!r}; it may use '@' wall, 'R' river, 'H' waste, 'B' apple "
            "field, 'P' start and blanks."
        )
    is_wall = letters == WALL
    rim = np.concatenate([is_wall[0], is_wall[-1], is_wall[:, 0], is_wall[:, -1]])
    if not rim.all():
        raise UsageError("map must be closed by walls '@' on all four sides.")
    starts = np.argwhere(letters == START)[::-1].astype(np.int32)
    if len(starts) < num_agents:
        raise UsageError(f"map has {len(starts)} starts 'P', and {num_agents} agents need one each.")
    is_waste = letters == WASTE
    is_river = is_waste | (letters == RIVER)
    if not is_river.any():
        raise UsageError("map has no river 'R' or 'H', without which nothing governs how apples grow.")
    return CleanupMap(is_wall, is_river, is_waste, letters == FIELD, starts[:num_agents])


def check_lines(lines: object) -> tuple[str, ...]:
    """Return a map, given as one string or as rows, as rows of equal length."""
    if isinstance(lines, str):
        lines = tuple(lines.strip("\n").split("\n"))
    if not isinstance(lines, list | tuple) or not all(isinstance(line, str) for line in lines) or not lines:
        raise UsageError(f"map must be rows of text such as {PUBLISHED_MAP[:2]}, not {lines!r}.")
    if len({len(line) for line in lines}) != 1:
        raise UsageError(f"map has rows of different lengths: {[len(line) for line in lines]}.")
    return tuple(lines)
