"""A state as the parts that a web page draws: shapes below and above the agents, agents, gauges and text."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from consmarl.environments.draw.agents import agent_boxes
from consmarl.environments.draw.canvas import Box
from consmarl.environments.draw.frame import painter_of
from consmarl.environments.draw.painter import Gauge, Icon
from consmarl.environments.draw.svg import Shapes
from consmarl.environments.grid import GridWorld

CELL = 40  # side of a cell, in pixels
ICON = 20


@dataclass(frozen=True)
class Scene:
    """A drawn state; the board's top left corner is at 0, 0, and cells have sides of length `CELL`."""

    below: list[str]  # SVG elements under the agents
    above: list[str]
    agents: NDArray[np.float32]  # [agent, (left, top, side)]
    gauges: list[Sequence[Gauge]]  # for every agent
    lines: Sequence[str]  # the team's achievements


def draw_scene(world: GridWorld[Any, Any, Any], state: Any) -> Scene:
    """Return the scene of a state, whose leaves are NumPy arrays."""
    painter, below, above = painter_of(world), Shapes(), Shapes()

    def cell_box(row: int, column: int) -> Box:
        left, top = int(column) * CELL, int(row) * CELL
        return Box(left, top, left + CELL, top + CELL)

    painter.paint_board(below, world, state, cell_box)
    painter.paint_above_agents(above, world, state, cell_box)
    agents = np.zeros((world.num_agents, 3), np.float32)
    for agent, box in agent_boxes(np.asarray(state.agents), cell_box, painter.landmarks(world, state)):
        agents[agent] = box.left, box.top, box.width
    gauges = [painter.gauges(world, state, agent) for agent in range(world.num_agents)]
    return Scene(below.elements, above.elements, agents, gauges, painter.team_lines(world, state))


def legend(world: GridWorld[Any, Any, Any]) -> list[tuple[str, str]]:
    """Return the legend of the board: icons as SVG elements in a square of side `ICON`, and text."""
    return [(_drawn(icon), words) for icon, words in painter_of(world).legend(world)]


def gauge_heads(world: GridWorld[Any, Any, Any]) -> list[str]:
    """Return the icon of each of an agent's gauges, as SVG elements."""
    return [_drawn(icon) for icon in painter_of(world).gauge_heads(world)]


def _drawn(icon: Icon) -> str:
    shapes = Shapes()
    icon(shapes, Box(0, 0, ICON, ICON))
    return "".join(shapes.elements)
