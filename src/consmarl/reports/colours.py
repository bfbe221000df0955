"""One colour a method, the same in every figure and on the page.

The first seven are Okabe and Ito's, which people with any kind of colour vision tell apart, without the black and the
yellow that are lost on a dark or a white background; a grey stands in for those. Two more are for whoever compares
eight or nine methods.
"""

from collections.abc import Iterable

ORANGE, SKY, GREEN, BLUE = "#E69F00", "#56B4E9", "#009E73", "#0072B2"
VERMILION, PURPLE, GREY = "#D55E00", "#CC79A7", "#6E6E6E"
WINE, OLIVE = "#A0346B", "#999933"  # after Tol, where Okabe and Ito do not suffice
CYCLE = (BLUE, ORANGE, GREEN, PURPLE, VERMILION, SKY, GREY, WINE, OLIVE)
COLOURS = {
    "CONS": VERMILION, "AdHocTD": BLUE, "IQL": GREEN,
    "I2Q": ORANGE, "SEQL": PURPLE, "GA-Comm": SKY, "MAVEN": GREY, "VDN": WINE, "QMIX": OLIVE,
    "CONS wo-N": ORANGE, "CONS wo-P": PURPLE, "CONS wo-TE": SKY,
}  # fmt: skip


def colours_of(labels: Iterable[str]) -> dict[str, str]:
    """Return a colour for each label: a known method's own, and else one that is free, as long as there are any.

    Those that come first in COLOURS choose first. A method with settings behind a comma, such as "IQL, hidden_size 32",
    has the method's colour if nobody else has.
    """
    labels = list(dict.fromkeys(labels))
    known = list(COLOURS)
    colours: dict[str, str] = {}
    for label in sorted(labels, key=lambda label: known.index(label) if label in known else len(known)):
        own = COLOURS.get(label, COLOURS.get(label.split(",")[0]))
        free = [colour for colour in (own, *CYCLE) if colour and colour not in colours.values()]
        colours[label] = free[0] if free else CYCLE[len(colours) % len(CYCLE)]
    return {label: colours[label] for label in labels}
