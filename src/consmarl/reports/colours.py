"""One colour per method, the same in every figure and on the page.

The first seven are from Okabe and Ito's palette, which is distinguishable with any kind of colour vision; its black
and yellow, which are invisible on dark or white backgrounds, are replaced by one grey. Two more colours are for
comparisons of eight or nine methods.
"""

from collections.abc import Iterable

ORANGE, SKY, GREEN, BLUE = "#E69F00", "#56B4E9", "#009E73", "#0072B2"
VERMILION, PURPLE, GREY = "#D55E00", "#CC79A7", "#6E6E6E"
WINE, OLIVE = "#A0346B", "#999933"  # based on Tol's palette, for more groups than Okabe and Ito have colours
CYCLE = (BLUE, ORANGE, GREEN, PURPLE, VERMILION, SKY, GREY, WINE, OLIVE)
COLOURS = {
    "CONS": VERMILION, "AdHocTD": BLUE, "IQL": GREEN,
    "I2Q": ORANGE, "SEQL": PURPLE, "GA-Comm": SKY, "MAVEN": GREY, "VDN": WINE, "QMIX": OLIVE,
    "CONS wo-N": ORANGE, "CONS wo-P": PURPLE, "CONS wo-TE": SKY,
}  # fmt: skip


def colours_of(labels: Iterable[str]) -> dict[str, str]:
    """Return a colour for each label: that of a known method, or an unused one as long as there are any.

    Colours are assigned in the order of COLOURS. A method followed by settings, such as "IQL, hidden_size 32", gets the
    method's colour if no other label has it.
    """
    labels = list(dict.fromkeys(labels))
    known = list(COLOURS)
    colours: dict[str, str] = {}
    for label in sorted(labels, key=lambda label: known.index(label) if label in known else len(known)):
        own = COLOURS.get(label, COLOURS.get(label.split(",")[0]))
        free = [colour for colour in (own, *CYCLE) if colour and colour not in colours.values()]
        colours[label] = free[0] if free else CYCLE[len(colours) % len(CYCLE)]
    return {label: colours[label] for label in labels}
