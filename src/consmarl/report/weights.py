"""Figure 10 of the paper: how fast trust passes from negative to positive knowledge. It takes no runs."""

import numpy as np

from consmarl.report.charts import Figure, figure
from consmarl.report.curves import MOST_POINTS, Line
from consmarl.report.metrics import Metric
from consmarl.report.plots import WEIGHT_END, WEIGHT_SHAPES, WEIGHT_START
from consmarl.report.statistics import Band
from consmarl.report.words import MINUS

METRIC = Metric("negative_weight", "Weight of negative knowledge, h(x)", "Equation 8")


def shape_labels() -> list[str]:
    """Return the curves' names."""
    return [f"{world}, a = {shape:g}".replace("-", MINUS) for world, shape in WEIGHT_SHAPES.items()]


def weights_figure(id: str) -> Figure:
    """Return the chart of h(x)."""
    import jax.numpy as jnp  # no other page needs JAX

    from consmarl.sharing.equations import negative_weight

    episodes = np.linspace(WEIGHT_START, WEIGHT_END, MOST_POINTS).round().astype(np.int64)
    unknown = np.full(len(episodes), np.nan)
    lines = []
    for place, shape in enumerate(WEIGHT_SHAPES.values()):
        weights = np.asarray(negative_weight(jnp.asarray(episodes), WEIGHT_START, shape), np.float64)
        lines.append(Line(place, 1, episodes, {"value": Band(weights, unknown, unknown)}))
    groups = [(label, place) for place, label in enumerate(shape_labels())]
    drawn = figure(id, groups, [(METRIC, lines)], "by episode")
    assert drawn is not None  # it has lines
    return drawn
