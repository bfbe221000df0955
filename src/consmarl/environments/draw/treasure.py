"""Pictures of Find the Treasure: closed boxes with their letter, opened ones with their contents."""

from collections.abc import Sequence
from functools import partial

from consmarl.environments.draw.canvas import Box, Canvas, Colour
from consmarl.environments.draw.painter import CellBox, Gauge, Icon, Painter
from consmarl.environments.treasure import FindTreasure, TreasureState

BOX_COLOURS: dict[str, Colour] = {"yellow": (235, 190, 40), "red": (198, 56, 44), "green": (52, 140, 84)}
COIN: Colour = (250, 205, 60)
GEM: Colour = (54, 132, 222)
LIGHT: Colour = (255, 255, 255)
DARK: Colour = (70, 52, 30)


def draw_closed_box(canvas: Canvas, box: Box, kind: str) -> None:
    """Draw a chest with a lid, and the letter of its colour for colour-blind readers."""
    canvas.rectangle(box.part(0.12, 0.2, 0.88, 0.86), BOX_COLOURS[kind], DARK, radius=3)
    lid, end = box.part(0.12, 0.42, 0.88, 0.42), box.part(0.88, 0.42, 0.88, 0.42)
    canvas.line(lid[:2], end[:2], DARK)
    letter_colour = DARK if kind == "yellow" else LIGHT
    canvas.text(box.part(0.5, 0.65, 0.5, 0.65)[:2], kind[0].upper(), box.width * 0.36, letter_colour, "mm")


def draw_open_box(canvas: Canvas, box: Box, kind: str) -> None:
    """Draw a chest without its lid, as an outline."""
    canvas.rectangle(box.part(0.16, 0.4, 0.84, 0.86), (240, 237, 229), BOX_COLOURS[kind], line=1.5, radius=2)
    corners = [box.part(x, y, x, y)[:2] for x, y in ((0.16, 0.4), (0.24, 0.22), (0.92, 0.22), (0.84, 0.4))]
    canvas.polygon(corners, (222, 218, 208), BOX_COLOURS[kind])


def draw_coin(canvas: Canvas, box: Box) -> None:
    """Draw a coin."""
    canvas.disc(box.part(0.3, 0.42, 0.7, 0.82), COIN, DARK)


def draw_treasure(canvas: Canvas, box: Box) -> None:
    """Draw a gem."""
    outline = [(0.3, 0.46), (0.42, 0.34), (0.62, 0.34), (0.74, 0.46), (0.52, 0.82)]
    canvas.polygon([box.part(x, y, x, y)[:2] for x, y in outline], GEM, DARK)


class TreasurePainter(Painter):
    """Draws the FT environments."""

    def paint_board(self, canvas: Canvas, world: FindTreasure, state: TreasureState, cell_box: CellBox) -> None:
        """Draw boxes, closed or open, and items that can be picked up."""
        is_visible = world.item_is_visible(state)
        for number, kind in enumerate(world.kind_of_box):
            box = cell_box(*state.boxes[number])
            if not state.opened[number]:
                draw_closed_box(canvas, box, kind)
                continue
            draw_open_box(canvas, box, kind)
            if is_visible[number]:
                (draw_coin if kind == "yellow" else draw_treasure)(canvas, box)

    def landmarks(self, world: FindTreasure, state: TreasureState) -> set[tuple[int, int]]:
        """Return the cells of all boxes, closed or open."""
        del world
        return {(int(row), int(column)) for row, column in state.boxes}

    def gauge_heads(self, world: FindTreasure) -> Sequence[Icon]:
        """Return no icons: all achievements are the team's."""
        del world
        return []

    def gauges(self, world: FindTreasure, state: TreasureState, agent: int) -> Sequence[Gauge]:  # noqa: ARG002
        """Return no gauges: all achievements are the team's."""
        return []

    def team_lines(self, world: FindTreasure, state: TreasureState) -> Sequence[str]:
        """Return the boxes opened and items found."""
        achieved = world.counters(state).team
        lines = [
            f"{kind} boxes {int(achieved[f'{kind}_opened'])} of {count} opened"
            for kind, count in world.box_counts.items()
            if count
        ]
        if world.num_yellow:
            lines.append(f"coins {int(achieved['coins_taken'])} of {world.num_yellow}")
        num_treasures = (world.num_red > 0) + (world.num_green > 0)
        return [*lines, f"treasures {int(achieved['treasures_taken'])} of {num_treasures}"]

    def legend(self, world: FindTreasure) -> Sequence[tuple[Icon, str]]:
        """Return the icons with their meanings."""
        boxes: list[tuple[Icon, str]] = [
            (partial(draw_closed_box, kind=kind), f"{kind} box") for kind, count in world.box_counts.items() if count
        ]
        return [
            *boxes,
            (partial(draw_open_box, kind="red"), "opened"),
            (draw_coin, "coin"),
            (draw_treasure, "treasure"),
        ]
