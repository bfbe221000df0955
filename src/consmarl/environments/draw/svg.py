"""Drawings as SVG elements, for pages that show environments without bitmap images."""

import html
from collections.abc import Sequence

from consmarl.environments.draw.canvas import INK, Box, Canvas, Colour

ANCHORS = {"l": "start", "m": "middle", "r": "end"}


class Shapes(Canvas):
    """Drawn shapes, as one SVG element each, in drawing order."""

    def __init__(self) -> None:
        """Start an empty drawing."""
        self.elements: list[str] = []

    def rectangle(
        self,
        box: Box,
        fill: Colour | None = None,
        outline: Colour | None = None,
        line: float = 1,
        radius: float = 0,
    ) -> None:
        """See `Canvas`."""
        size = f'width="{short(box.width)}" height="{short(box.bottom - box.top)}"'
        rounded = f' rx="{short(radius)}"' if radius else ""
        place = f'x="{short(box.left)}" y="{short(box.top)}" {size}{rounded}'
        self.elements.append(f"<rect {place}{_painted(fill, outline, line)}/>")

    def disc(self, box: Box, fill: Colour | None = None, outline: Colour | None = None, line: float = 1) -> None:
        """See `Canvas`."""
        across, down = box.centre
        radii = f'rx="{short(box.width / 2)}" ry="{short((box.bottom - box.top) / 2)}"'
        place = f'cx="{short(across)}" cy="{short(down)}" {radii}'
        self.elements.append(f"<ellipse {place}{_painted(fill, outline, line)}/>")

    def polygon(self, corners: Sequence[tuple[float, float]], fill: Colour, outline: Colour | None = None) -> None:
        """See `Canvas`."""
        points = " ".join(f"{short(x)},{short(y)}" for x, y in corners)
        self.elements.append(f'<polygon points="{points}"{_painted(fill, outline, 1)}/>')

    def line(self, start: tuple[float, float], end: tuple[float, float], colour: Colour, width: float = 1) -> None:
        """See `Canvas`."""
        ends = f'x1="{short(start[0])}" y1="{short(start[1])}" x2="{short(end[0])}" y2="{short(end[1])}"'
        self.elements.append(f"<line {ends}{_painted(None, colour, width)}/>")

    def text(
        self, place: tuple[float, float], words: str, size: float, colour: Colour = INK, anchor: str = "lm"
    ) -> None:
        """See `Canvas`."""
        where = f'x="{short(place[0])}" y="{short(place[1])}" text-anchor="{ANCHORS[anchor[0]]}"'
        look = f'font-size="{short(size)}" dominant-baseline="central"{_painted(colour, None, 1)}'
        self.elements.append(f"<text {where} {look}>{html.escape(words)}</text>")


def short(number: float) -> str:
    """Return a number as text with at most two decimals."""
    return f"{number:.2f}".rstrip("0").rstrip(".")


def hexadecimal(colour: Colour) -> str:
    """Return a colour in CSS notation."""
    return "#" + "".join(f"{channel:02x}" for channel in colour)


def _painted(fill: Colour | None, outline: Colour | None, line: float) -> str:
    inside = f' fill="{hexadecimal(fill)}"' if fill is not None else ' fill="none"'
    return inside + (f' stroke="{hexadecimal(outline)}" stroke-width="{short(line)}"' if outline is not None else "")
