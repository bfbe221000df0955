"""A slow reference: the observations of grid environments, computed cell by cell."""

import numpy as np


def observed_slowly(grid, view, num_agents, limit, agents, num_steps, second, third):
    """Return [agent, observation]; `second` and `third` map cells to the values of those channels."""
    rows = []
    for row, column in agents:
        seen = [row / max(grid[0] - 1, 1), column / max(grid[1] - 1, 1), num_steps / limit]
        for down in range(-(view[0] // 2), view[0] // 2 + 1):
            for right in range(-(view[1] // 2), view[1] // 2 + 1):
                cell = (row + down, column + right)
                here = sum(1 for other in agents if tuple(other) == cell)
                seen += [here / num_agents, second.get(cell, 0), third.get(cell, 0)]
        rows.append(seen)
    return np.array(rows)
