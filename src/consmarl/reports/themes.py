"""Colours and dashes of groups, distinguishable on light and dark backgrounds and with any colour vision."""

from collections.abc import Iterable
from typing import NamedTuple

from consmarl.reports.colours import colours_of

ON_LIGHT, ON_DARK = "#ffffff", "#1b1e22"  # the page's cards, as in template/report.css
LEAST_ON_LIGHT, LEAST_ON_DARK = 3.0, 4.5  # contrast; WCAG 2.2 requires 3 for graphics, thin lines on dark need more
# seven dashes, coprime to the nine colours, so that all pairs occur
DASHES = ("none", "8 4", "2 3", "10 3 2 3", "14 3", "5 2", "12 3 2 3 2 3")


class Style(NamedTuple):
    """The colours of a group on light and dark backgrounds, and its dash."""

    label: str
    light: str
    dark: str
    dash: str


def styles_of(labels: Iterable[str]) -> list[Style]:
    """Return a style for each label, in order."""
    colours = colours_of(labels)
    return [
        Style(
            label,
            legible(colour, ON_LIGHT, LEAST_ON_LIGHT),
            legible(colour, ON_DARK, LEAST_ON_DARK),
            DASHES[place % len(DASHES)],
        )
        for place, (label, colour) in enumerate(colours.items())
    ]


def legible(colour: str, background: str, least: float) -> str:
    """Return the colour, darkened or lightened until its contrast with the background is at least `least`."""
    target = 0 if _luminance(background) > 0.5 else 255
    for step in range(21):
        share = step / 20
        channels = [round(channel + share * (target - channel)) for channel in _channels(colour)]
        mixed = "#" + "".join(f"{channel:02x}" for channel in channels)
        if contrast(mixed, background) >= least:
            break
    return mixed


def contrast(left: str, right: str) -> float:
    """Return the contrast ratio of two colours, from 1 to 21, as defined by WCAG."""
    lighter, darker = sorted((_luminance(left), _luminance(right)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    linear = [c / 12.92 if (c := channel / 255) <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
              for channel in _channels(colour)]  # fmt: skip
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _channels(colour: str) -> list[int]:
    return [int(colour[start : start + 2], 16) for start in (1, 3, 5)]
