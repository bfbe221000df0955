"""Code shared by the collecting scripts: small files that summarise finished runs, and figures that show every seed."""

import json
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from consmarl.reports.statistics import Interval, area_under_curve, band, interval

# Mean team returns: examples/scripted_*.py (400 episodes, seed 1), and the weights that the paper's authors released.
SCRIPTS = {"pgm-3ag": 23.7, "pgm-6ag": 176.2, "ft": 8.7, "cleanup": 140.0}
RELEASED = {"pgm-3ag": 14.1, "pgm-6ag": 19.7, "ft": 2.9, "cleanup": 74.6}
VERSIONS = ("consmarl", "jax", "jaxlib")  # of the packages that determine a run's bits
ABLATION_HEAD = (
    "| variant | n | final return | difference [95 %] | area | difference [95 %] |\n|---|---|---|---|---|---|"
)
BLOCK = re.compile(r"(<!-- table: (?P<name>.+?) -->\n).*?(<!-- end -->)", flags=re.DOTALL)
MINUS = re.compile(r"(?<!\w)-(?=\d)")
FEWEST_WITH_INTERVAL = 3  # seeds: an interval of fewer would only repeat them
LINE_STYLES = (("black", "--"), ("grey", ":"), ("black", "-."), ("grey", "--"), ("grey", "-."))  # of reference levels
COUNTERS = ("gold_mined", "treasures_taken", "apples_eaten", "yellow_opened", "red_opened", "coins_taken")

NO_COLOURS: Mapping[str, str] = {}

Run = dict[str, Any]
VariantOf = Callable[[tuple[str, ...]], str]  # from the parts of a run's path below the root to its variant
IntervalOf = Callable[[Sequence[float]], Interval]  # of the mean of one value per seed


def collected(root: Path, kept: Path, variant_of: VariantOf, *, by_agent: bool = False) -> list[Run]:
    """Add all finished runs below the folder `root` to the file `kept`, replacing earlier entries; return all runs.

    With `by_agent`, also keep what each agent earned in the training episodes before an evaluation.
    """
    before: list[Run] = json.loads(kept.read_text()) if kept.exists() else []
    found = []
    for path in root.rglob("result.json"):
        evaluated = _evaluations(path.parent)
        run = _read(path.parent, variant_of(path.relative_to(root).parts), evaluated)
        found.append(run | (_by_agent(evaluated) if by_agent else {}))
    runs = {_identity(run): run for run in (*before, *found)}
    in_order = [runs[key] for key in sorted(runs)]
    kept.write_text(json.dumps(in_order, separators=(",", ":")).replace("},{", "},\n{") + "\n")
    return in_order


def _evaluations(run: Path) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [row for row in rows if "evaluation_return" in row]


def _read(run: Path, variant: str, evaluated: list[dict[str, Any]]) -> Run:
    config = json.loads((run / "config.json").read_text())
    result = json.loads((run / "result.json").read_text())
    return {
        "world": config["env"],
        "variant": variant,
        "seed": config["seed"],
        "episodes": config["episodes"],
        "return": round(result["return"], 3),
        "return_error": round(result["return_error"], 3),
        **{name: round(result[name], 3) for name in COUNTERS if name in result},
        **_made_with(run),
        "evaluations": [(row["episode"], round(row["evaluation_return"], 2)) for row in evaluated],
        **_budget(evaluated),
    }


def _made_with(run: Path) -> dict[str, Any]:
    """Return the commit, the versions and the processor of a run's last session."""
    session = json.loads((run / "run.json").read_text())["sessions"][-1]
    commit = (session.get("git") or {}).get("commit")
    return {
        "commit": commit and commit[:12],
        "versions": {name: session["versions"][name] for name in VERSIONS},
        "processor": session["machine"]["processor"],  # another model may round differently
    }


def _budget(evaluated: list[dict[str, Any]]) -> dict[str, list[tuple[int, float]]]:
    """Return the requests that each agent has spent at every evaluation, on average; nothing without sharing."""
    spent = [(row["episode"], round(row["budget_used"], 1)) for row in evaluated if "budget_used" in row]
    return {"budget_used": spent} if spent else {}


def _by_agent(evaluated: list[dict[str, Any]]) -> dict[str, list[tuple[int, list[float]]]]:
    rows = [row for row in evaluated if "agent_returns" in row]
    return {"agent_returns": [(row["episode"], [round(each, 1) for each in row["agent_returns"]]) for row in rows]}


def _identity(run: Run) -> tuple[str, str, int, int]:
    return run["world"], run["variant"], run["episodes"], run["seed"]


def train_and_show(
    kept: Path,
    variants: Sequence[str],
    seeds: Sequence[int],
    make_runs: Callable[[Path, list[str], list[int]], None],
    show: Callable[[list[Run]], None],
) -> None:
    """Show the runs in the file `kept`; if the command line names a folder, first train runs there and collect them.

    Words after the folder select variants and seeds, to train only some of the runs.
    """
    if len(sys.argv) == 1:
        show(json.loads(kept.read_text()))
        return
    out, words = Path(sys.argv[1]), sys.argv[2:]
    chosen_seeds = [int(word) for word in words if word.isdigit()] or list(seeds)
    make_runs(out, [word for word in words if word in variants] or list(variants), chosen_seeds)
    show(collected(out, kept, lambda parts: parts[0]))


def fill_pages(folder: Path, by_name: Mapping[str, str]) -> None:
    """Write tables into the pages of a folder: each belongs between `<!-- table: NAME -->` and `<!-- end -->`."""
    for page in sorted(folder.glob("*.md")):
        page.write_text(filled(page.read_text(encoding="utf-8"), by_name), encoding="utf-8")


def filled(page: str, by_name: Mapping[str, str]) -> str:
    """Return a page with these tables."""
    return BLOCK.sub(lambda found: f"{found[1]}\n{by_name[found['name']]}\n{found[3]}", page)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [columns, ["---"] * len(columns), *rows]
    return MINUS.sub("−", "".join(f"| {' | '.join(line)} |\n" for line in lines))


def groups(runs: Iterable[Run]) -> dict[tuple[str, str, int], list[Run]]:
    """Return groups of runs that differ only in their seeds, by environment, variant and length."""
    found = defaultdict(list)
    for run in runs:
        found[run["world"], run["variant"], run["episodes"]].append(run)
    return found


def area(run: Run) -> float:
    """Return the area under a run's curve divided by its span of episodes, i.e. its mean height."""
    return area_under_curve(*np.array(run["evaluations"]).T)


def ablation_row(
    name: str, group: Sequence[Run], reference: Mapping[int, Run], interval_of: IntervalOf = interval
) -> str:
    """Return a row below ABLATION_HEAD: a variant's means, and its differences from the reference seed by seed."""
    cells = []
    for measure in (lambda run: run["return"], area):
        values = [measure(run) for run in group]
        gaps = [measure(run) - measure(reference[run["seed"]]) for run in group if run["seed"] in reference]
        cells += [f"{np.mean(values):.1f}", difference(gaps, interval_of=interval_of) if any(gaps) else ""]
    return f"| {name} | {len(group)} | {' | '.join(cells).replace('-', '−')} |"


def student_interval(values: Sequence[float]) -> Interval:
    """Return the mean and Student's 95 % interval, which is wide enough for three seeds if they are about normal.

    A bootstrap interval of three values is just their range: it excludes the true mean for one sample in four.
    """
    from scipy import stats  # takes a second

    mean, error = float(np.mean(values)), float(np.std(values, ddof=1)) / len(values) ** 0.5
    margin = error * float(stats.t.ppf(0.975, len(values) - 1))
    return Interval(mean, mean - margin, mean + margin)


def difference(gaps: Sequence[float], decimals: int = 1, interval_of: IntervalOf = interval) -> str:
    """Return the mean of differences as text, with its 95 % interval or, of fewer than three, with all of them."""
    if len(gaps) < FEWEST_WITH_INTERVAL:
        every_gap = f" ({numbers(gaps, decimals)})" if len(gaps) > 1 else ""
        return f"{np.mean(gaps):+,.{decimals}f}{every_gap}"
    estimate, low, high = interval_of(gaps)
    return f"{estimate:+,.{decimals}f} [{low:+,.{decimals}f}, {high:+,.{decimals}f}]"


def with_interval(values: Sequence[float], decimals: int = 1) -> str:
    """Return the mean as text, with its 95 % interval if there are at least three values."""
    estimate, low, high = interval(values)
    text = f"{estimate:,.{decimals}f}"
    return text if len(values) < FEWEST_WITH_INTERVAL else f"{text} [{low:,.{decimals}f}, {high:,.{decimals}f}]"


def numbers(values: Iterable[float], decimals: int = 1) -> str:
    """Return numbers, one per seed, as text."""
    return ", ".join(f"{value:,.{decimals}f}" for value in values).replace("-", "−")


def percent(share: float) -> str:
    """Return a share as text."""
    return f"{100 * share:.1f} %"


def lines_of(world: str) -> dict[str, float]:
    """Return the reference returns of an environment, by label."""
    return {"script with the same eyes": SCRIPTS[world], "released CONS weights": RELEASED[world]}


def draw(
    path: Path,
    title: str,
    curves: dict[str, Sequence[Run]],
    lines: dict[str, float],
    across: str = "episodes",
    *,
    what: str = "evaluations",
    up: str = "team return, greedy",
    scale: str = "linear",
    colours: Mapping[str, str] = NO_COLOURS,
) -> None:
    """Draw curves by label: thin lines for seeds, the mean and its interval on top; `lines` are reference levels."""
    figure, axis = plt.subplots(figsize=(9, 4.2), layout="constrained")
    for number, (label, group) in enumerate(curves.items()):
        colour = colours.get(label, f"C{number}")
        episodes = np.array([episode for episode, _ in group[0][what]])
        values = np.array([[value for _, value in run[what]] for run in group])
        axis.plot(episodes, values.T, color=colour, alpha=0.25, linewidth=0.7)
        estimate, low, high = band(values)
        axis.fill_between(episodes, low, high, color=colour, alpha=0.15, linewidth=0)
        axis.plot(episodes, estimate, color=colour, linewidth=2, label=f"{label} (n = {len(group)})")
    for (label, level), (colour, style) in zip(lines.items(), LINE_STYLES, strict=False):
        axis.axhline(level, color=colour, linestyle=style, linewidth=1.1, label=label)
    axis.set(xlabel=across, ylabel=up, title=title, yscale=scale)
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(alpha=0.3)
    figure.legend(frameon=False, loc="outside right upper")
    figure.savefig(path, dpi=120)
    plt.close(figure)
