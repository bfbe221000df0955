"""Figure 10 of the paper: how weight shifts from negative to positive knowledge over time. It needs no runs."""

import numpy as np

from consmarl.metrics import Metric
from consmarl.reports.charts import Figure, figure
from consmarl.reports.curves import Line
from consmarl.reports.statistics import Band
from consmarl.reports.words import MINUS

METRIC = Metric("negative_weight", "Weight of negative knowledge, h(x)", "Equation 8")
SHAPES = {"PGM": 0.0, "FT": 0.3, "Cleanup": -0.5}  # the paper's a
START, END, EVERY = 5_000, 80_000, 250  # episodes


def shape_labels() -> list[str]:
    """Return the names of the curves."""
    return [f"{world}, a = {shape:g}".replace("-", MINUS) for world, shape in SHAPES.items()]


def weight_lines() -> list[Line]:
    """Return h(x), the weight of negative knowledge (Eq. 8), for each of the paper's shapes."""
    import jax.numpy as jnp  # no other page needs JAX

    from consmarl.sharing.equations import negative_weight

    episodes = np.arange(START, END + 1, EVERY)
    unknown = np.full(len(episodes), np.nan)
    lines = []
    for place, shape in enumerate(SHAPES.values()):
        weights = np.asarray(negative_weight(jnp.asarray(episodes), START, shape), np.float64)
        lines.append(Line(place, 1, episodes, {"value": Band(weights, unknown, unknown)}))
    return lines


def weights_figure(id: str) -> Figure:
    """Return the figure of h(x)."""
    groups = [(label, place) for place, label in enumerate(shape_labels())]
    drawn = figure(id, groups, [(METRIC, weight_lines())], "by episode")
    assert drawn is not None  # it has lines
    return drawn
