"""The interface between an environment and its pictures; each environment's painter is in its own file."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from consmarl.environments.draw.canvas import Box, Canvas, Colour

Icon = Callable[[Canvas, Box], None]
CellBox = Callable[[int, int], Box]


class Gauge(NamedTuple):
    """An agent's progress in one respect, shown as a bar or as a number."""

    colour: Colour
    share: float = 0.0
    number: str = ""
    is_complete: bool = False


class Painter:
    """Draws one kind of environment; subclasses draw everything but the agents."""

    def paint_board(self, canvas: Canvas, world: Any, state: Any, cell_box: CellBox) -> None:
        """Draw everything that lies below the agents."""

    def paint_above_agents(self, canvas: Canvas, world: Any, state: Any, cell_box: CellBox) -> None:
        """Draw everything that lies above the agents."""

    def landmarks(self, world: Any, state: Any) -> set[tuple[int, int]]:
        """Return the cells where agents are drawn small, so that they do not hide the object on the cell."""
        del world, state
        return set()

    def gauge_heads(self, world: Any) -> Sequence[Icon]:
        """Return one icon per gauge, which shows what it measures."""
        del world
        return ()

    def gauges(self, world: Any, state: Any, agent: int) -> Sequence[Gauge]:
        """Return the gauges of one agent's progress."""
        del world, state, agent
        return ()

    def team_lines(self, world: Any, state: Any) -> Sequence[str]:
        """Return the team's achievements as text."""
        del world, state
        return ()

    def legend(self, world: Any) -> Sequence[tuple[Icon, str]]:
        """Return the icons with their meanings."""
        del world
        return ()
