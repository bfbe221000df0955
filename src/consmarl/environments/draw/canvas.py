"""A drawing surface: shapes, text and translucent fills. `Picture` renders pixels, `svg.Shapes` SVG elements."""

import abc
import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

OVERSAMPLING = 2

Colour = tuple[int, int, int] | tuple[int, int, int, int]

INK: Colour = (38, 42, 48)
FAINT_INK: Colour = (122, 126, 133)
PAPER: Colour = (252, 251, 248)
RULE: Colour = (222, 218, 208)


class Box(NamedTuple):
    """A rectangle in pixels."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def width(self) -> float:
        """The width."""
        return self.right - self.left

    @property
    def centre(self) -> tuple[float, float]:
        """The centre point."""
        return (self.left + self.right) / 2, (self.top + self.bottom) / 2

    def part(self, left: float, top: float, right: float, bottom: float) -> "Box":
        """Return a part of the rectangle, given in fractions of its width and height."""
        width, height = self.width, self.bottom - self.top
        return Box(
            self.left + left * width,
            self.top + top * height,
            self.left + right * width,
            self.top + bottom * height,
        )


@functools.cache
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


class Canvas(abc.ABC):
    """A surface to draw on; all sizes and positions are in pixels of the finished picture."""

    @abc.abstractmethod
    def rectangle(
        self,
        box: Box,
        fill: Colour | None = None,
        outline: Colour | None = None,
        line: float = 1,
        radius: float = 0,
    ) -> None:
        """Draw a rectangle, optionally rounded."""

    @abc.abstractmethod
    def disc(self, box: Box, fill: Colour | None = None, outline: Colour | None = None, line: float = 1) -> None:
        """Draw the ellipse that fits a rectangle."""

    @abc.abstractmethod
    def polygon(self, corners: Sequence[tuple[float, float]], fill: Colour, outline: Colour | None = None) -> None:
        """Draw a closed shape."""

    @abc.abstractmethod
    def line(self, start: tuple[float, float], end: tuple[float, float], colour: Colour, width: float = 1) -> None:
        """Draw a straight line."""

    @abc.abstractmethod
    def text(
        self, place: tuple[float, float], words: str, size: float, colour: Colour = INK, anchor: str = "lm"
    ) -> None:
        """Draw text; `anchor` is Pillow's: l, m, r for left, middle, right, then m for the middle of the line."""

    def gauge(self, box: Box, share: float, colour: Colour) -> None:
        """Draw a bar filled to a fraction of its length."""
        self.rectangle(box, fill=(228, 225, 217), radius=2)
        if share > 0:
            self.rectangle(box.part(0, 0, max(min(share, 1), 0.08), 1), fill=colour, radius=2)


class Picture(Canvas):
    """A bitmap picture, drawn enlarged and reduced at the end, so that edges are smooth."""

    def __init__(self, width: int, height: int) -> None:
        """Start an empty picture."""
        size = (width * OVERSAMPLING, height * OVERSAMPLING)
        self._image = Image.new("RGB", size, PAPER[:3])
        self._pen = ImageDraw.Draw(self._image, "RGBA")

    def _scaled(self, box: Box) -> list[float]:
        left, top, right, bottom = (side * OVERSAMPLING for side in box)
        return [left, top, max(right - 1, left), max(bottom - 1, top)]

    def rectangle(
        self,
        box: Box,
        fill: Colour | None = None,
        outline: Colour | None = None,
        line: float = 1,
        radius: float = 0,
    ) -> None:
        """See `Canvas`."""
        self._pen.rounded_rectangle(self._scaled(box), radius * OVERSAMPLING, fill, outline, round(line * OVERSAMPLING))

    def disc(self, box: Box, fill: Colour | None = None, outline: Colour | None = None, line: float = 1) -> None:
        """See `Canvas`."""
        self._pen.ellipse(self._scaled(box), fill, outline, round(line * OVERSAMPLING))

    def polygon(self, corners: Sequence[tuple[float, float]], fill: Colour, outline: Colour | None = None) -> None:
        """See `Canvas`."""
        scaled = [(x * OVERSAMPLING, y * OVERSAMPLING) for x, y in corners]
        self._pen.polygon(scaled, fill, outline, OVERSAMPLING)

    def line(self, start: tuple[float, float], end: tuple[float, float], colour: Colour, width: float = 1) -> None:
        """See `Canvas`."""
        ends = [tuple(side * OVERSAMPLING for side in point) for point in (start, end)]
        self._pen.line(ends, colour, round(width * OVERSAMPLING))

    def text(
        self, place: tuple[float, float], words: str, size: float, colour: Colour = INK, anchor: str = "lm"
    ) -> None:
        """See `Canvas`."""
        scaled = (place[0] * OVERSAMPLING, place[1] * OVERSAMPLING)
        self._pen.text(scaled, words, colour, _font(round(size * OVERSAMPLING)), anchor)

    def pixels(self) -> NDArray[np.uint8]:
        """Return the finished picture: uint8 [row, column, RGB]."""
        return np.array(self._image.reduce(OVERSAMPLING))
