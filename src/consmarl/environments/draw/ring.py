"""A frame of a third-party environment: its own picture, or else the agents in a ring, beside the agents' actions."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from consmarl.environments.draw.agents import draw_agent
from consmarl.environments.draw.canvas import Box, Canvas, Picture
from consmarl.environments.draw.frame import (
    BOARD_SIDE,
    HEAD_HEIGHT,
    MARGIN,
    PANEL_WIDTH,
    ROW_HEIGHT,
    Status,
    draw_agent_rows,
    draw_head,
    num_agent_rows,
)
from consmarl.environments.draw.painter import Painter


def draw_beside(world: Any, status: Status, picture: NDArray[np.uint8] | None) -> NDArray[np.uint8]:
    """Return a frame: uint8 [row, column, RGB]; `picture` is the environment's own, or None."""
    height = max(BOARD_SIDE, HEAD_HEIGHT + num_agent_rows(world) * ROW_HEIGHT) + 2 * MARGIN
    left = BOARD_SIDE + 2 * MARGIN
    canvas = Picture(left + PANEL_WIDTH + MARGIN, height)
    if picture is None:
        _draw_ring(canvas, world.num_agents)
    panel = Box(left, MARGIN, left + PANEL_WIDTH, 0)
    draw_head(canvas, world, None, status, panel)
    draw_agent_rows(canvas, world, None, status, Painter(), panel)
    frame = canvas.pixels()
    if picture is not None:
        own = Image.fromarray(picture)
        own.thumbnail((BOARD_SIDE, BOARD_SIDE))
        frame[MARGIN : MARGIN + own.height, MARGIN : MARGIN + own.width] = np.asarray(own)
    return frame


def _draw_ring(canvas: Canvas, num_agents: int) -> None:
    middle, radius = MARGIN + BOARD_SIDE / 2, 0.38 * BOARD_SIDE
    side = min(48.0, 2 * math.pi * radius / max(num_agents, 1) * 0.8)
    for agent in range(num_agents):
        angle = 2 * math.pi * agent / num_agents
        x, y = middle + radius * math.sin(angle), middle - radius * math.cos(angle)
        draw_agent(canvas, Box(x - side / 2, y - side / 2, x + side / 2, y + side / 2), agent)
