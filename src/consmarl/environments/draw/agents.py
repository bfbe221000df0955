"""Agents as numbered discs, side by side where several share a cell."""

import math
from collections import defaultdict
from collections.abc import Collection, Iterator

import numpy as np
from numpy.typing import NDArray

from consmarl.environments.draw.canvas import Box, Canvas, Colour
from consmarl.environments.draw.painter import CellBox

WHITE: Colour = (255, 255, 255)
# After Okabe and Ito: distinguishable with any colour vision. Numbers distinguish more than eight agents.
AGENT_COLOURS: tuple[tuple[int, int, int], ...] = (
    (0, 114, 178),
    (213, 94, 0),
    (0, 138, 100),
    (190, 90, 150),
    (60, 60, 66),
    (60, 150, 205),
    (180, 115, 0),
    (120, 70, 190),
)


def agent_colour(agent: int) -> tuple[int, int, int]:
    """Return the colour of an agent."""
    return AGENT_COLOURS[agent % len(AGENT_COLOURS)]


def draw_agent(canvas: Canvas, box: Box, agent: int) -> None:
    """Draw a disc with the agent's number."""
    canvas.disc(box, agent_colour(agent), WHITE, line=1)
    size = box.width * (0.62 if agent < 10 else 0.5)
    canvas.text(box.centre, str(agent), size, WHITE, "mm")


def agent_boxes(
    cells: NDArray[np.int32], cell_box: CellBox, landmarks: Collection[tuple[int, int]]
) -> Iterator[tuple[int, Box]]:
    """Yield every agent and its box: on a landmark, in the upper corner, so that both stay visible."""
    together: dict[tuple[int, int], list[int]] = defaultdict(list)
    for agent, (row, column) in enumerate(cells.tolist()):
        together[row, column].append(agent)
    for (row, column), agents in together.items():
        box = cell_box(row, column)
        if (row, column) in landmarks:
            box = box.part(0.3, -0.02, 1.02, 0.7) if len(agents) == 1 else box.part(0.04, -0.04, 1.0, 0.92)
        per_side = math.ceil(math.sqrt(len(agents)))
        side = 0.72 if per_side == 1 else 0.96 / per_side
        start = 0.5 - side * per_side / 2
        for place, agent in enumerate(agents):
            top, left = start + side * (place // per_side), start + side * (place % per_side)
            yield agent, box.part(left, top, left + side, top + side)


def draw_agents(
    canvas: Canvas, cells: NDArray[np.int32], cell_box: CellBox, landmarks: Collection[tuple[int, int]]
) -> None:
    """Draw every agent on its cell."""
    for agent, box in agent_boxes(cells, cell_box, landmarks):
        draw_agent(canvas, box, agent)
