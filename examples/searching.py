"""Plan a path that reveals as many cells of a grid as possible while they can still be reached.

Sets of cells are integers with one bit per cell, so that unions, differences and counts are single operations.
"""

import functools

Cell = tuple[int, int]  # row, column
Size = tuple[int, int]  # rows, columns

Path = tuple[int, tuple[Cell, ...], Cell, int]  # number of cells found, path, its end, all cells seen

NUM_KEPT = 100  # beam width; three times as many find nothing better on 8×9 cells


def as_bits(cells: list[Cell], grid: Size) -> int:
    """Return a set of distinct cells as an integer."""
    return sum(1 << (row * grid[1] + column) for row, column in cells)


def all_cells(grid: Size) -> list[Cell]:
    """Return all cells of a grid."""
    return [(row, column) for row in range(grid[0]) for column in range(grid[1])]


@functools.cache
def cells_in_view(cell: Cell, grid: Size, view: Size) -> int:
    """Return the set of cells that an agent on this cell sees."""
    tall, wide = view[0] // 2, view[1] // 2
    return as_bits([(r, c) for r, c in all_cells(grid) if abs(r - cell[0]) <= tall and abs(c - cell[1]) <= wide], grid)


@functools.cache
def cells_within(cell: Cell, grid: Size, num_steps: int) -> int:
    """Return the set of cells that an agent on this cell can reach in `num_steps`."""
    return as_bits([(r, c) for r, c in all_cells(grid) if abs(r - cell[0]) + abs(c - cell[1]) <= num_steps], grid)


@functools.cache
def neighbours(cell: Cell, grid: Size) -> tuple[Cell, ...]:
    """Return the cells one step away."""
    return tuple((r, c) for r, c in all_cells(grid) if abs(r - cell[0]) + abs(c - cell[1]) == 1)


@functools.cache  # many episodes start on the same cell with nothing seen yet
def best_path(here: Cell, seen: int, num_steps: int, grid: Size, view: Size) -> tuple[Cell, ...]:
    """Return the path that brings most new cells into view that can then still be reached.

    The steps until a cell is seen, and from there to the cell, must not exceed `num_steps` in total. This is a beam
    search: of all paths of the same length, only the best are continued.
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
        best = max(best, kept[0], key=lambda each: each[0])  # of equal ones the first, which is shorter
    return best[1]
