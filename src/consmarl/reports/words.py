"""Format numbers, durations and lists as text, consistently across the page."""

import math
from collections.abc import Iterable, Sequence

from consmarl.reports.statistics import Interval

MINUS, NOT_KNOWN = "−", "–"


def decimals_for(values: Iterable[float]) -> int:
    """Return the number of decimals for values of this size, the same for a whole column."""
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    if largest >= 1_000:
        return 0
    return 1 if largest >= 10 else 2 if largest >= 1 else 3


def number(value: float | None, decimals: int | None = None, *, signed: bool = False) -> str:
    """Return a formatted number: thousands separators, a true minus sign, and a dash if it is unknown."""
    if value is None or not math.isfinite(value):
        return NOT_KNOWN
    decimals = decimals_for([value]) if decimals is None else decimals
    value = round(value, decimals) + 0.0  # avoids −0
    return f"{value:{'+' if signed else ''},.{decimals}f}".replace("-", MINUS)


def bounds(interval: Interval, decimals: int | None = None, *, signed: bool = False) -> str:
    """Return an interval's bounds, or an empty string if they are unknown."""
    if not (math.isfinite(interval.low) and math.isfinite(interval.high)):
        return ""
    decimals = decimals_for(interval) if decimals is None else decimals
    return f"[{number(interval.low, decimals, signed=signed)}, {number(interval.high, decimals, signed=signed)}]"


def with_bounds(interval: Interval, decimals: int | None = None, *, signed: bool = False) -> str:
    """Return an estimate followed by its interval: "12.5 [11.0, 14.0]"."""
    decimals = decimals_for(interval) if decimals is None else decimals
    estimate = number(interval.estimate, decimals, signed=signed)
    return f"{estimate} {bounds(interval, decimals, signed=signed)}".rstrip()


def short_count(value: float) -> str:
    """Return a number of episodes in short form for an axis, such as 20k."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{letter}".replace("-", MINUS)
    return f"{value:g}".replace("-", MINUS)


def plural(count: int, noun: str, nouns: str | None = None) -> str:
    """Return a count with its noun, such as "3 seeds"."""
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"


def listed(words: Sequence[str]) -> str:
    """Return words as a list: "a, b and c"."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"


def sentence(words: str) -> str:
    """Return words with an initial capital and a final full stop."""
    words = words.strip()
    return words[:1].upper() + words[1:] + ("" if words.endswith((".", "!", "?")) else ".")


def uncapitalised(title: str) -> str:
    """Return a title as it is written within a sentence: "gold mined", but "TD error" and "Q-value"."""
    return title[:1].lower() + title[1:] if title[1:2].islower() else title


def short_duration(seconds: float | None) -> str:
    """Return a short duration in seconds or milliseconds, with three significant digits."""
    if seconds is None or not math.isfinite(seconds):
        return NOT_KNOWN
    value, unit = (seconds, "s") if seconds >= 1 else (1e3 * seconds, "ms")
    return f"{number(value, 0 if value >= 100 else 1 if value >= 10 else 2)} {unit}"


def duration(seconds: float | None) -> str:
    """Return a duration in at most two units, such as "2 h 5 min"."""
    if seconds is None or not math.isfinite(seconds):
        return NOT_KNOWN
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours < 24 else f"{hours // 24} d {hours % 24} h"
