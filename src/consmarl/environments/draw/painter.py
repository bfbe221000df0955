"""What a world tells the picture about itself; each world's painter is in a file of its own."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from consmarl.environments.draw.canvas import Box, Canvas, Colour

Icon = Callable[[Canvas, Box], None]
CellBox = Callable[[int, int], Box]


class Gauge(NamedTuple):
    """How far an agent has got with one thing: a bar, or a number."""

    colour: Colour
    share: float = 0.0
    number: str = ""
    is_complete: bool = False


class Painter:
    """Paints one kind of world; each painter adds what its world has beside agents."""

    def paint_board(self, canvas: Canvas, world: Any, state: Any, cell_box: CellBox) -> None:
        """Paint everything but the agents."""

    def paint_above_agents(self, canvas: Canvas, world: Any, state: Any, cell_box: CellBox) -> None:
        """Paint what lies over the agents."""

    def landmarks(self, world: Any, state: Any) -> set[tuple[int, int]]:
        """Return the cells where agents make themselves small, so that they do not hide what is there."""
        del world, state
        return set()

    def gauge_heads(self, world: Any) -> Sequence[Icon]:
        """Return what each gauge measures."""
        del world
        return ()

    def gauges(self, world: Any, state: Any, agent: int) -> Sequence[Gauge]:
        """Return how far one agent has got."""
        del world, state, agent
        return ()

    def team_lines(self, world: Any, state: Any) -> Sequence[str]:
        """Return what the team has achieved, in words."""
        del world, state
        return ()

    def legend(self, world: Any) -> Sequence[tuple[Icon, str]]:
        """Return what the icons mean."""
        del world
        return ()
