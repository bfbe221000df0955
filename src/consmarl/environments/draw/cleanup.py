"""Pictures of Cleanup: the river and its waste, the fields and their apples, the beams."""

from collections.abc import Sequence

import numpy as np

from consmarl.environments.cleanup import Cleanup, CleanupState
from consmarl.environments.draw.canvas import Box, Canvas, Colour
from consmarl.environments.draw.painter import CellBox, Gauge, Icon, Painter

WALL: Colour = (94, 98, 104)
RIVER: Colour = (150, 196, 226)
FIELD: Colour = (222, 236, 206)
WASTE: Colour = (112, 76, 30)
APPLE: Colour = (196, 42, 46)
LEAF: Colour = (66, 128, 50)
BEAM: Colour = (0, 190, 205, 110)
BEAM_EDGE: Colour = (0, 140, 155, 200)


def draw_waste(canvas: Canvas, box: Box) -> None:
    """Draw three blots."""
    for left, top, size in ((0.12, 0.36, 0.46), (0.44, 0.16, 0.36), (0.5, 0.52, 0.36)):
        canvas.disc(box.part(left, top, left + size, top + size), WASTE)


def draw_apple(canvas: Canvas, box: Box) -> None:
    """Draw an apple with a leaf."""
    canvas.disc(box.part(0.22, 0.3, 0.78, 0.86), APPLE)
    canvas.disc(box.part(0.5, 0.14, 0.74, 0.32), LEAF)


def draw_beam(canvas: Canvas, box: Box) -> None:
    """Draw a column of light."""
    canvas.rectangle(box.part(0.18, 0, 0.82, 1), BEAM, BEAM_EDGE)


class CleanupPainter(Painter):
    """Draws the Cleanup environments."""

    def paint_board(self, canvas: Canvas, world: Cleanup, state: CleanupState, cell_box: CellBox) -> None:
        """Draw walls, river and fields, with waste and apples."""
        places = world.places
        for ground, colour in ((places.is_wall, WALL), (places.is_river, RIVER), (places.is_field, FIELD)):
            for row, column in np.argwhere(ground):
                canvas.rectangle(cell_box(row, column), colour)
        for board, draw in ((state.waste, draw_waste), (state.apples, draw_apple)):
            for row, column in np.argwhere(np.asarray(board)):
                draw(canvas, cell_box(row, column))

    def paint_above_agents(self, canvas: Canvas, world: Cleanup, state: CleanupState, cell_box: CellBox) -> None:
        """Draw the beams of the last step."""
        del world
        for row, column in np.argwhere(np.asarray(state.beams)):
            draw_beam(canvas, cell_box(row, column))

    def landmarks(self, world: Cleanup, state: CleanupState) -> set[tuple[int, int]]:
        """Return the cells with waste, which agents can stand on."""
        del world
        return {(int(row), int(column)) for row, column in np.argwhere(np.asarray(state.waste))}

    def gauge_heads(self, world: Cleanup) -> Sequence[Icon]:
        """Return icons for apples eaten and waste cleaned."""
        del world
        return [draw_apple, draw_waste]

    def gauges(self, world: Cleanup, state: CleanupState, agent: int) -> Sequence[Gauge]:
        """Return the numbers of apples eaten and waste cleaned."""
        del world
        return [
            Gauge(APPLE, number=str(int(state.apples_eaten[agent]))),
            Gauge(WASTE, number=str(int(state.waste_cleaned[agent]))),
        ]

    def team_lines(self, world: Cleanup, state: CleanupState) -> Sequence[str]:
        """Return the state of the river and the fields."""
        return [
            f"waste on {int(state.waste.sum())} of {len(world.river_cells)} river cells",
            f"apples {int(state.apples.sum())}, growing at {float(world.apple_growth(state.waste)):.0%} a cell",
        ]

    def legend(self, world: Cleanup) -> Sequence[tuple[Icon, str]]:
        """Return the icons with their meanings."""
        del world
        return [(draw_waste, "waste"), (draw_apple, "apple"), (draw_beam, "cleaning beam")]
