"""A whole frame: the board on the left; step, team and agents on the right."""

import importlib
import math
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import jax
import numpy as np
from numpy.typing import NDArray

from consmarl.environments.draw.agents import agent_colour, draw_agent, draw_agents
from consmarl.environments.draw.canvas import FAINT_INK, INK, RULE, Box, Canvas, Picture
from consmarl.environments.draw.painter import CellBox, Gauge, Painter
from consmarl.environments.grid import GridWorld
from consmarl.errors import UsageError

Thing = TypeVar("Thing")

MARGIN = 12
PANEL_WIDTH = 300
BOARD_SIDE = 480  # approximate length of a board's longer side, in pixels
ROW_HEIGHT = 24
LONGEST_NAME = 40  # maximum characters shown of an environment's name
LONGEST_ACTION = 30  # maximum characters shown of an action's name, which is long with many dimensions
HEAD_HEIGHT = 92  # of the panel: title, step, return


@dataclass(frozen=True)
class Status:
    """Information for a frame that the state itself does not contain."""

    actions: NDArray[Any] | None = None  # [agent, …], the last ones
    returns: NDArray[Any] | None = None  # [agent], sum of rewards so far
    num_steps: int | None = None


def painter_of(world: Any) -> Painter:
    """Return the painter for this kind of environment."""
    named = world.painter
    if named is None:
        raise UsageError(f"nobody paints worlds of the kind {type(world).__name__}: give the class a painter.")
    if isinstance(named, str):
        module, _, name = named.partition(":")
        named = getattr(importlib.import_module(module), name)
    painter: Painter = named()
    return painter


def draw_frame(
    world: GridWorld[Any, Any, Any], state: Any, status: Status | None = None, view_of: int | None = 0
) -> NDArray[np.uint8]:
    """Return a picture of a state: uint8 [row, column, RGB]; `view_of` is the agent whose view is outlined."""
    state = jax.device_get(state)
    status = status or Status()
    painter = painter_of(world)
    rows, columns = world.grid
    cell = max(min(BOARD_SIDE // max(rows, columns), 56), 12)
    panel = Box(columns * cell + 3 * MARGIN, MARGIN, columns * cell + 2 * MARGIN + PANEL_WIDTH, 0)
    panel_height = HEAD_HEIGHT + num_agent_rows(world) * ROW_HEIGHT + _foot_height(world, state, painter)
    height = max(rows * cell, panel_height) + 2 * MARGIN
    canvas = Picture(int(panel.right) + MARGIN, height)

    def cell_box(row: int, column: int) -> Box:
        left, top = MARGIN + int(column) * cell, MARGIN + int(row) * cell
        return Box(left, top, left + cell, top + cell)

    _draw_board(canvas, world, state, painter, cell_box, view_of)
    draw_head(canvas, world, state, status, panel)
    draw_agent_rows(canvas, world, state, status, painter, panel)
    _draw_foot(canvas, world, state, painter, panel, view_of)
    return canvas.pixels()


def _draw_board(
    canvas: Canvas,
    world: GridWorld[Any, Any, Any],
    state: Any,
    painter: Painter,
    cell_box: CellBox,
    view_of: int | None,
) -> None:
    rows, columns = world.grid
    for row in range(rows):
        for column in range(columns):
            canvas.rectangle(cell_box(row, column), (255, 255, 255), RULE, line=0.5)
    painter.paint_board(canvas, world, state, cell_box)
    if view_of is not None:
        _draw_view(canvas, world, state, cell_box, view_of)
    draw_agents(canvas, np.asarray(state.agents), cell_box, painter.landmarks(world, state))
    painter.paint_above_agents(canvas, world, state, cell_box)
    whole = Box(*cell_box(0, 0)[:2], *cell_box(rows - 1, columns - 1)[2:])
    canvas.rectangle(whole, None, FAINT_INK)


def _draw_view(canvas: Canvas, world: GridWorld[Any, Any, Any], state: Any, cell_box: CellBox, view_of: int) -> None:
    """Tint and outline the part of the board that one agent sees."""
    row, column = np.asarray(state.agents)[view_of].tolist()
    up, left = world.view[0] // 2, world.view[1] // 2
    first = cell_box(max(row - up, 0), max(column - left, 0))
    last = cell_box(min(row + up, world.grid[0] - 1), min(column + left, world.grid[1] - 1))
    seen = Box(first.left, first.top, last.right, last.bottom)
    canvas.rectangle(seen, (*agent_colour(view_of), 26), (*agent_colour(view_of), 255), line=2)


def draw_head(canvas: Canvas, world: Any, state: Any, status: Status, panel: Box) -> None:
    """Write the environment's name, the step number and the team's return."""
    num_steps = int(state.num_steps) if status.num_steps is None else status.num_steps
    name = world.id if len(world.id) <= LONGEST_NAME else f"…{world.id[1 - LONGEST_NAME :]}"
    # long names are written smaller, so that they do not overlap the number of steps
    canvas.text((panel.left, panel.top + 10), name, min(19, 380 // len(name)) if name else 19)
    canvas.text((panel.right, panel.top + 10), f"step {num_steps} of {world.episode_limit}", 13, INK, "rm")
    track = Box(panel.left, panel.top + 26, panel.right, panel.top + 32)
    canvas.gauge(track, num_steps / world.episode_limit, FAINT_INK)
    if status.returns is not None:
        canvas.text((panel.left, panel.top + 50), "team return", 13, FAINT_INK)
        total = float(np.sum(status.returns))
        canvas.text((panel.right, panel.top + 50), f"{total:+.2f}", 15, INK, "rm")


def num_agent_rows(world: Any) -> int:
    """Return the number of rows for agents: at most 20, and one that counts the rest, so that frames fit a screen."""
    return min(world.num_agents, 20) + (world.num_agents > 20)


def draw_agent_rows(canvas: Canvas, world: Any, state: Any, status: Status, painter: Painter, panel: Box) -> None:
    """Write every agent's last action, its gauges and its return."""
    shown = min(world.num_agents, 20)
    heads = _gauge_space(panel, panel.top + HEAD_HEIGHT - 8)
    for icon, place in _side_by_side(painter.gauge_heads(world), heads):
        middle_x, middle_y = place.centre
        icon(canvas, Box(middle_x - 8, middle_y - 8, middle_x + 8, middle_y + 8))
    for agent in range(shown):
        middle = panel.top + HEAD_HEIGHT + (agent + 0.5) * ROW_HEIGHT
        draw_agent(canvas, Box(panel.left, middle - 10, panel.left + 20, middle + 10), agent)
        if status.actions is not None:
            name = textwrap.shorten(world.name_of(status.actions[agent]), LONGEST_ACTION, placeholder=" …")
            canvas.text((panel.left + 28, middle), name, 13)
        space = _gauge_space(panel, middle)
        for gauge, place in _side_by_side(painter.gauges(world, state, agent), space):
            _draw_gauge(canvas, gauge, place)
        if status.returns is not None:
            canvas.text((panel.right, middle), f"{float(status.returns[agent]):+.2f}", 13, INK, "rm")
    if world.num_agents > shown:
        middle = panel.top + HEAD_HEIGHT + (shown + 0.5) * ROW_HEIGHT
        canvas.text((panel.left + 28, middle), f"and {world.num_agents - shown} more", 13, FAINT_INK)


def _gauge_space(panel: Box, middle: float) -> Box:
    return Box(panel.left + 76, middle - 9, panel.right - 64, middle + 9)


def _side_by_side(things: Sequence[Thing], space: Box) -> Iterator[tuple[Thing, Box]]:
    """Yield things with their places, equal parts of a space from left to right."""
    for number, thing in enumerate(things):
        yield thing, space.part(number / len(things), 0, (number + 1) / len(things), 1)


def _draw_gauge(canvas: Canvas, gauge: Gauge, place: Box) -> None:
    if gauge.number:
        canvas.text(place.centre, gauge.number, 13, INK, "mm")
        return
    middle = place.centre[1]
    bar = Box(place.left + 2, middle - 3, place.right - 2, middle + 3)
    canvas.gauge(bar, gauge.share, gauge.colour)
    if gauge.is_complete:
        canvas.rectangle(bar, None, INK, radius=2)


def _legend_columns(world: GridWorld[Any, Any, Any], painter: Painter) -> int:
    return 1 if max((len(words) for _, words in painter.legend(world)), default=0) > 16 else 2


def _foot_height(world: GridWorld[Any, Any, Any], state: Any, painter: Painter) -> int:
    num_legend_rows = math.ceil((len(painter.legend(world)) + 1) / _legend_columns(world, painter))
    return 24 + 20 * len(painter.team_lines(world, state)) + 24 * num_legend_rows


def _draw_foot(
    canvas: Canvas,
    world: GridWorld[Any, Any, Any],
    state: Any,
    painter: Painter,
    panel: Box,
    view_of: int | None,
) -> None:
    top = panel.top + HEAD_HEIGHT + num_agent_rows(world) * ROW_HEIGHT + 8
    canvas.line((panel.left, top), (panel.right, top), RULE)
    top += 14
    for line in painter.team_lines(world, state):
        canvas.text((panel.left, top), line, 13)
        top += 20
    num_columns = _legend_columns(world, painter)
    legend = list(painter.legend(world))
    if view_of is not None:
        legend.append((partial(_draw_view_swatch, agent=view_of), f"seen by agent {view_of}"))
    for number, (icon, words) in enumerate(legend):
        left = panel.left + (number % num_columns) * PANEL_WIDTH / num_columns
        middle = top + 8 + (number // num_columns) * 24
        icon(canvas, Box(left, middle - 10, left + 20, middle + 10))
        canvas.text((left + 26, middle), words, 12, FAINT_INK)


def _draw_view_swatch(canvas: Canvas, box: Box, agent: int) -> None:
    canvas.rectangle(box.part(0.1, 0.1, 0.9, 0.9), (*agent_colour(agent), 26), agent_colour(agent), line=2)
