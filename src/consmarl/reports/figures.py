"""Draw figures for papers with matplotlib: curves with 95 % bands, budgets, bars of counters, and h(x).

A study is a plain dict: "plot", "metric", "worlds" and "groups" determine what is drawn, the other keys describe it.
"""

import dataclasses
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from consmarl.errors import UsageError
from consmarl.files import replacing
from consmarl.metrics import EVALUATION, TRAINING, Metric
from consmarl.reports.achievements import BarPanel, bar_panels
from consmarl.reports.across import TITLES, Across
from consmarl.reports.curves import ALL_POINTS, Line, lines_of
from consmarl.reports.finals import by_world, drawn_runs
from consmarl.reports.metrics import schema_of
from consmarl.reports.plots import Stroke, draw_bars, draw_curves, draw_weights, strokes_of
from consmarl.reports.runs import Group
from consmarl.reports.statistics import mean
from consmarl.reports.words import uncapitalised

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SUFFIXES = ("png", "pdf", "svg")
STYLE = {
    "font.size": 9, "axes.titlesize": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
    "grid.color": "#DDDDDD", "grid.linewidth": 0.6, "axes.axisbelow": True, "axes.edgecolor": "#666666",
    "legend.frameon": False, "figure.titlesize": 10, "figure.titleweight": "bold", "pdf.fonttype": 42,
    "svg.hashsalt": "consmarl",
}  # fmt: skip
UNDATED: dict[str, dict[str, Any]] = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}  # reproducible files

Panels = Mapping[str, Sequence[Group]]  # groups by environment


def write_figures(
    groups: Sequence[Group],
    directory: Path,
    *,
    study: Mapping[str, Any] | None = None,
    suffix: Sequence[str] = ("png", "pdf"),
    across: Across = Across.EPISODES,
) -> list[Path]:
    """Write a study's figure, or each environment's curves, budgets and counters; return the paths of the files.

    `across` selects the x-axis of the curves.
    """
    rc_context = _matplotlib().rc_context
    for each in suffix:
        if each not in SUFFIXES:
            raise UsageError(f"figures can be written as {', '.join(SUFFIXES)}, not as {each!r}.")
    written = []
    with rc_context(STYLE):
        named = {str(study["name"]): study_figure(groups, study, across)} if study else {}
        figures = named or dict(_figures_of_worlds(groups, across))
        if not figures:
            raise UsageError("these runs have nothing to draw yet: wait for their first evaluation.")
        for name, figure in figures.items():
            for each in suffix:
                path = Path(directory) / f"{name}.{each}"
                with replacing(path) as temporary:
                    figure.savefig(temporary, dpi=200, metadata=UNDATED.get(each))
                written.append(path)
    return written


def study_figure(groups: Sequence[Group], study: Mapping[str, Any], across: Across = Across.EPISODES) -> "Figure":
    """Return a study's figure."""
    plot, labels = study["plot"], study.get("groups", ())
    title = str(study["title"])
    found = by_world([group for group in groups if group.label in labels], labels)
    panels = {world: found.get(world, []) for world in study.get("worlds", ())}
    remarks = _remarks(study, panels)
    strokes = strokes_of([*labels, *(group.label for of_world in panels.values() for group in of_world)])
    if plot == "weights":
        return weights_figure(title, remarks)
    if plot == "items":
        figure = items_figure(panels, title, strokes, remarks)
    elif plot in ("curve", "budget"):
        metric = study.get("metric", "evaluation_return") if plot == "curve" else "budget_used"
        figure = curves_figure(panels, metric, title, strokes, remarks, across)
    else:
        raise UsageError(f"a study's plot must be curve, budget, items or weights, not {plot!r}.")
    if figure is None:
        raise UsageError(f"there is nothing to draw for study {study['name']!r} yet: run `{study.get('command')}`.")
    return figure


def curves_figure(
    panels: Panels,
    metric: str,
    title: str,
    strokes: Mapping[str, Stroke],
    remarks: Sequence[str] = (),
    across: Across = Across.EPISODES,
) -> "Figure | None":
    """Return a figure of a metric's curves, one panel per environment; None if no run has the metric."""
    found = {world: _curves_of(groups, metric, across) for world, groups in panels.items()}
    curves = {world: of_world for world, of_world in found.items() if of_world}
    if not curves:
        return None
    if len(curves) == 1:  # sort the legend like the ends of the lines, from top to bottom
        curves = {world: dict(sorted(each.items(), key=_from_the_top)) for world, each in curves.items()}
    seeds = [(label, line.num_seeds) for of_world in curves.values() for label, line in of_world.items()]
    figure, axes = _framed(list(curves), title, [_seeds(seeds), *_unfinished(panels), *remarks])
    for each, of_world in zip(axes, curves.values(), strict=True):
        draw_curves(each, of_world, strokes, across)
        if metric == "budget_used":
            each.set_ylim(bottom=0)
            each.yaxis.set_major_formatter("{x:,.0f}")
    runs = (run for groups in panels.values() for group in groups for run in group.runs)
    axes[0].set_ylabel(_axis_title(schema_of(runs)[metric]))
    _add_legend(figure, axes)
    return figure


def _curves_of(groups: Sequence[Group], metric: str, across: Across) -> dict[str, Line]:
    """Return the mean curves of the groups that have a metric, by label and at full resolution."""
    lines = lines_of(groups, metric, ALL_POINTS, {"mean": mean})
    for line in lines:
        if across is not Across.EPISODES and across not in line.elsewhere:
            raise UsageError(
                f"{groups[line.group].name} cannot be drawn over {across.value}: not all rows of its runs record "
                f"{TITLES[across]}."
            )
    return {groups[line.group].label: line for line in lines}


def _from_the_top(curve: tuple[str, Line]) -> float:
    return -float(curve[1].bands["mean"].estimate[-1])


def _axis_title(metric: Metric) -> str:
    is_both = metric.family in (EVALUATION, TRAINING)  # the same metric may be in both families
    return uncapitalised(metric.title) + (f" ({metric.family.lower()})" if is_both else "")


def items_figure(
    panels: Panels, title: str, strokes: Mapping[str, Stroke], remarks: Sequence[str] = ()
) -> "Figure | None":
    """Return a figure with bars of counters as shares of their maximum; None if no run has finished."""
    return counters_figure(panels, title, strokes, remarks, as_shares=True)


def counters_figure(
    panels: Panels,
    title: str,
    strokes: Mapping[str, Stroke],
    remarks: Sequence[str] = (),
    *,
    as_shares: bool = False,
) -> "Figure | None":
    """Return a figure with bars of the final policies' counters, one panel per environment.

    Return None if no run has finished.
    """
    finished = {world: _finished(groups) for world, groups in panels.items()}
    found = {world: _bars_of(world, groups, as_shares=as_shares) for world, groups in finished.items() if groups}
    counted = {world: bars for world, bars in found.items() if bars}
    if not counted:
        return None
    there = {world: {bar.label for panel in bars for bar in panel.bars} for world, bars in counted.items()}
    drawn = {world: [group for group in finished[world] if group.label in there[world]] for world in counted}
    seeds = [(group.label, len(group.runs)) for groups in drawn.values() for group in groups]
    figure, axes = _framed(list(counted), title, [_seeds(seeds) + ", dots are seeds", *_unfinished(panels), *remarks])
    for each, (world, bars) in zip(axes, counted.items(), strict=True):
        draw_bars(each, bars, [group.label for group in drawn[world]], strokes)
    if as_shares:
        axes[0].yaxis.set_major_formatter("{x:.0%}")
    axes[0].set_ylabel("share of the maximum" if as_shares else "mean per episode")
    _add_legend(figure, axes)
    return figure


def _finished(groups: Sequence[Group]) -> list[Group]:
    """Return the groups with only their finished runs, omitting groups that have none."""
    found = [dataclasses.replace(each, runs=tuple(run for run in each.runs if run.result)) for each in groups]
    return [group for group in found if group.runs]


def _bars_of(world: str, groups: Sequence[Group], *, as_shares: bool) -> list[BarPanel]:
    bars = bar_panels(groups, as_shares=as_shares)
    if not as_shares:
        return bars
    shares = [panel for panel in bars if panel.is_share]
    if bars and not shares:
        raise UsageError(f"shares of items need runs that record each counter's maximum; those of {world} do not.")
    return shares


def weights_figure(title: str, remarks: Sequence[str] = ()) -> "Figure":
    """Return a figure of h(x) for the shapes used in the paper."""
    figure, axes = _framed(["h(x)"], title, remarks)
    draw_weights(axes[0])
    _add_legend(figure, axes)
    return figure


def _figures_of_worlds(groups: Sequence[Group], across: Across) -> "Iterator[tuple[str, Figure]]":
    for world, of_world in by_world(groups).items():
        panels, strokes = {world: of_world}, strokes_of(group.label for group in of_world)
        name = re.sub(r"[^A-Za-z0-9.=]+", "-", world).strip("-")
        figures = {
            "return": curves_figure(panels, "evaluation_return", world, strokes, (), across),
            "budget": curves_figure(panels, "budget_used", f"{world}: requests spent", strokes, (), across),
            "counters": counters_figure(panels, f"{world}: what the final policies do", strokes),
        }
        yield from ((f"{name}-{kind}", figure) for kind, figure in figures.items() if figure is not None)


def _remarks(study: Mapping[str, Any], panels: Panels) -> list[str]:
    """Return remarks for the figure: its number in the paper, the scale, and groups without runs."""
    remarks = [f"after figure {study['figure']} of the paper"] if study.get("figure") else []
    if study["plot"] == "weights":
        return remarks  # it has no runs
    if (scale := study.get("scale", 1)) != 1:
        remarks.append(f"shortened to {100 * scale:g} % (scale {scale:g})")
    has_runs = {group.label for groups in panels.values() for group in groups}
    if missing := [label for label in study.get("groups", ()) if label not in has_runs]:
        remarks.append(f"no runs: {', '.join(missing)}")
    return remarks


def _seeds(drawn: Sequence[tuple[str, int]]) -> str:
    """Return a remark on how many seeds are averaged, and which groups have fewer."""
    most = max(num_seeds for _, num_seeds in drawn)
    if most == 1:
        return "one seed"
    fewer = dict.fromkeys(f"{label} {num_seeds}" for label, num_seeds in drawn if num_seeds < most)
    seeds = f"{most} seeds ({', '.join(fewer)})" if fewer else f"{most} seeds"
    return f"means over {seeds}, 95 % bootstrap intervals"


def _unfinished(panels: Panels) -> list[str]:
    groups = [group for of_world in panels.values() for group in of_world]
    going = [group.label for group in groups if all(run.state != "finished" for run in group.runs)]
    num_left_out = sum(len(group.runs) - len(drawn_runs(group)) for group in groups)
    remarks = [f"not finished: {', '.join(dict.fromkeys(going))}"] if going else []
    runs = "run that has" if num_left_out == 1 else "runs that have"
    return remarks + ([f"without {num_left_out} {runs} not finished"] if num_left_out else [])


def _framed(panels: Sequence[str], title: str, remarks: Sequence[str]) -> "tuple[Figure, list[Axes]]":
    """Return an empty figure with its title and remarks, and one axis per panel."""
    _matplotlib()
    from matplotlib.figure import Figure

    width = 3.6 * len(panels) + 1.8
    figure = Figure(figsize=(width, 3.2), layout="constrained")
    axes = list(figure.subplots(1, len(panels), squeeze=False)[0])
    if len(panels) > 1:
        for each, panel in zip(axes, panels, strict=True):
            each.set_title(panel, loc="left")
    figure.suptitle(textwrap.fill(title, round(11 * width)), x=0.01, ha="left")
    unbroken = " · ".join(remark.replace(" ", "\u00a0") for remark in remarks)
    note = textwrap.fill(unbroken, round(19 * width)).replace("\u00a0", " ")  # break lines only between remarks
    figure.supxlabel(note, x=0.01, ha="left", fontsize=7, color="#555555")
    return figure, axes


def _add_legend(figure: "Figure", axes: "Sequence[Axes]") -> None:
    """Put a legend to the right of all panels and make room for it."""
    entries: dict[str, Any] = {}
    for each in axes:
        for handle, label in zip(*each.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    texts = [textwrap.fill(label, 32) for label in entries]
    lines = [line for text in texts for line in text.splitlines()]
    width, height = figure.get_size_inches()
    figure.set_size_inches(width + 0.06 * max(map(len, lines)), max(height, 0.18 * len(lines) + 1.0))
    figure.legend(list(entries.values()), texts, loc="outside right upper")


def _matplotlib() -> Any:
    try:
        import matplotlib
    except ImportError as error:
        raise UsageError("figures need matplotlib: pip install 'consmarl[figures]'.") from error
    return matplotlib
