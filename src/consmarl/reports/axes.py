"""Compute axes with ticks at round values, and positions of labels that do not overlap."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from consmarl.reports.words import MINUS

UNITS = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"), (1.0, "s"))  # units of time, in seconds
CLOCK_STEPS = (1, 2, 5, 10, 15, 30)  # tick spacing for minutes and seconds


class Axis(NamedTuple):
    """The range of an axis and its ticks."""

    low: float
    high: float
    ticks: list[tuple[float, str]]

    def share(self, value: float) -> float:
        """Return a value's position along the axis, from 0 to 1."""
        return (value - self.low) / (self.high - self.low)


def value_axis(values: Iterable[float], *, num_ticks: int = 7) -> Axis:
    """Return an axis that spans these values with a small margin, with ticks at round numbers."""
    finite = [value for value in values if math.isfinite(value)] or [0.0]
    low, high = min(finite), max(finite)
    if high - low < 1e-9 * max(1.0, abs(high)):
        around = 0.5 * abs(high) if abs(high) > 1e-6 else 0.5
        low, high = low - around, high + around
    room = 0.04 * (high - low)
    low = 0.0 if 0 <= low < 3 * room else low - room  # values that start near 0 get an axis from 0
    high += room
    step = round_step((high - low) / num_ticks)
    counts = range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
    return Axis(low, high, [(count * step, tick_label(count * step, step)) for count in counts])


def episode_axis(last: float, label: Callable[[float], str], *, num_ticks: int = 4) -> Axis:
    """Return an axis from 0 to `last`, a number of episodes or steps, with ticks at round numbers."""
    last = max(last, 1.0)
    step = max(1.0, round_step(last / num_ticks))
    return Axis(0.0, last, [(count * step, label(count * step)) for count in range(math.floor(last / step) + 1)])


def time_axis(last: float, *, num_ticks: int = 4) -> Axis:
    """Return an axis from 0 to a number of seconds, with round ticks in the unit that fits."""
    size, unit = next((each for each in UNITS if last >= 2 * each[0]), UNITS[-1])
    wished = last / size / num_ticks
    of_a_clock = [each for each in CLOCK_STEPS if each >= wished >= 1 and unit in ("min", "s")]
    step = (of_a_clock[0] if of_a_clock else round_step(wished)) * size
    counts = range(math.floor(last / step * (1 + 1e-9)) + 1)
    return Axis(0.0, last, [(count * step, f"{count * step / size:g} {unit}" if count else "0") for count in counts])


def round_step(step: float) -> float:
    """Return the smallest number of the series …, 1, 2, 2.5, 5, 10, 20, … that is at least `step`."""
    size = 10.0 ** math.floor(math.log10(step))
    return next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor >= step * (1 - 1e-9))


def tick_label(value: float, step: float) -> str:
    """Return a tick's label with as many decimals as the step needs."""
    if step >= 1_000:
        return f"{value / 1_000:g}k".replace("-", MINUS) if value else "0"
    decimals = next((each for each in range(5) if math.isclose(step, round(step, each))), None)
    if decimals is None:
        return f"{value:g}".replace("-", MINUS)
    return f"{round(value, decimals) + 0.0:,.{decimals}f}".replace("-", MINUS)


def spread(places: Sequence[float], gap: float) -> list[float]:
    """Return positions, moved as little as possible, that are at least `gap` apart and between 0 and 1."""
    order = sorted(range(len(places)), key=lambda index: places[index])
    gap = min(gap, 1.0 / max(1, len(places) - 1))
    blocks: list[tuple[float, int]] = []  # (start, size); blocks that touch are merged and moved together
    for index in order:
        start, size = places[index], 1
        while blocks and start < blocks[-1][0] + gap * blocks[-1][1]:
            before, num_before = blocks.pop()
            start = (before * num_before + (start - gap * num_before) * size) / (num_before + size)
            size += num_before
        blocks.append((start, size))
    moved = [start + gap * step for start, size in blocks for step in range(size)]
    limits = [(gap * step, 1 - gap * (len(order) - 1 - step)) for step in range(len(order))]
    within = [min(max(place, low), high) for place, (low, high) in zip(moved, limits, strict=True)]
    return [within[order.index(index)] for index in range(len(places))]
