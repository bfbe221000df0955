"""Where to walk to see as much as possible of a grid while it still matters.

Sets of cells are whole numbers with a bit for each cell: unions, differences and counts are then one operation each.
"""

import functools

Cell = tuple[int, int]  # row, column
Size = tuple[int, int]  # rows, columns

Path = tuple[int, tuple[Cell, ...], Cell, int]  # cells found, the way, its end, all that was seen

NUM_KEPT = 100  # unfinished paths; three times as many find nothing better on 8×9 cells


def as_bits(cells: list[Cell], grid: Size) -> int:
    """Return a set of distinct cells as a number."""
    return sum(1 << (row * grid[1] + column) for row, column in cells)


def all_cells(grid: Size) -> list[Cell]:
    """Return the cells of a grid."""
    return [(row, column) for row in range(grid[0]) for column in range(grid[1])]


@functools.cache
def cells_in_view(cell: Cell, grid: Size, view: Size) -> int:
    """Return what an agent on this cell sees."""
    tall, wide = view[0] // 2, view[1] // 2
    return as_bits([(r, c) for r, c in all_cells(grid) if abs(r - cell[0]) <= tall and abs(c - cell[1]) <= wide], grid)


@functools.cache
def cells_within(cell: Cell, grid: Size, num_steps: int) -> int:
    """Return what an agent on this cell can reach in so many steps."""
    return as_bits([(r, c) for r, c in all_cells(grid) if abs(r - cell[0]) + abs(c - cell[1]) <= num_steps], grid)


@functools.cache
def neighbours(cell: Cell, grid: Size) -> tuple[Cell, ...]:
    """Return the cells one step away."""
    return tuple((r, c) for r, c in all_cells(grid) if abs(r - cell[0]) + abs(c - cell[1]) == 1)


@functools.cache  # many episodes begin on the same cell with nothing seen yet
def best_path(here: Cell, seen: int, num_steps: int, grid: Size, view: Size) -> tuple[Cell, ...]:
    """Return the path that brings most new cells into view from which it is not too far to get there as well.

    All walking, to where a cell is seen and from there to the cell, has to be done in `num_steps`. It is a beam
    search: of all paths of one length only the best are continued.
    """
    best: Path = (0, (), here, seen)
    kept = [best]
    for num_left in reversed(range(num_steps)):
        longer: dict[tuple[Cell, int], Path] = {}
        for found, path, end, known in kept:
            for cell in neighbours(end, grid):
                new = cells_in_view(cell, grid, view) & ~known
                now_found = found + (new & cells_within(cell, grid, num_left)).bit_count()
                if (cell, known | new) not in longer or longer[cell, known | new][0] < now_found:
                    longer[cell, known | new] = (now_found, (*path, cell), cell, known | new)
        kept = sorted(longer.values(), key=lambda each: -each[0])[:NUM_KEPT]
        best = max(best, kept[0], key=lambda each: each[0])  # of equals the first, which is shorter
    return best[1]
