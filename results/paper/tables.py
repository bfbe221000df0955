"""The tables about the paper's claims, from the runs of full length."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from results.collecting import (
    ABLATION_HEAD,
    COUNTERS,
    FEWEST_WITH_INTERVAL,
    Run,
    ablation_row,
    area,
    difference,
    groups,
    numbers,
    percent,
    student_interval,
    table,
    with_interval,
)
from results.paper.boxes import found_boxes, paying
from results.paper.compute import compute
from results.paper.declines import declines
from results.paper.miners import RELEASED_MINERS, miners
from results.paper.run import ABLATION, EPISODES, LABELS, PARTS, VARIANTS, seeds_of

from consmarl.reports.reference import RELEASED
from consmarl.reports.statistics import episodes_to_reach

# For each preset: CONS, and the AdHocTD that it is compared with.
TEACHERS = {"paper": ("cons", "adhoc-td"), "release": ("cons-release", "adhoc-td-release")}
# AdHocTD's requests that the paper's CONS uses.
PAPER_SHARES = {"pgm-6ag": 0.301, "pgm-3ag": 0.335, "cleanup": 0.08}
NOT_RUN = "*Not run yet.*\n"
LAST = 10  # evaluations whose mean is the level at the end

ByVariant = Mapping[str, list[Run]]
Measure = Callable[[Run], float]


def by_world(runs: Sequence[Run]) -> dict[str, ByVariant]:
    """Return the runs of full length by environment and variant, in the order in which tables list them."""
    found = groups(run for run in runs if run["episodes"] == EPISODES[run["world"]])
    return {
        world: {name: found[world, name, length] for name in VARIANTS if (world, name, length) in found}
        for world, length in EPISODES.items()
        if any(there == world for there, _, _ in found)
    }


def final(run: Run) -> float:
    """Return the team return after training."""
    return float(run["return"])


def successes(group: Sequence[Run]) -> tuple[str, str]:
    """Return what an environment rewards most, and how often it happens in an episode after training."""
    name = next(each for each in COUNTERS if each in group[0])
    return name.replace("_", " "), f"{np.mean([run[name] for run in group]):.2f}"


def requests(run: Run) -> float:
    """Return the requests that each agent had spent at the end, on average."""
    return float(run["budget_used"][-1][1])


def returns(world: str, by_variant: ByVariant) -> str:
    """Return the final returns of every seed, and the means of final return, area and requests spent."""
    rows = []
    for variant, group in by_variant.items():
        spent = f"{np.mean([requests(run) for run in group]):,.0f}" if "budget_used" in group[0] else "–"
        finals = [final(run) for run in group]
        seeds = numbers((run["seed"] for run in group), 0)
        areas = [area(run) for run in group]
        rows.append(
            [
                LABELS[variant],
                str(len(group)),
                seeds,
                numbers(finals),
                with_interval(finals),
                successes(group)[1],
                with_interval(areas),
                spent,
            ]
        )
    for method, records in RELEASED[world].items():
        seen = ", ".join(f"{each.estimate:.1f}" for each in records)
        rows.append([f"*the authors' released weights of {method}*", "–", "–", "–", seen, "–", "–", "–"])
    [counted] = {successes(group)[0] for group in by_variant.values()}
    head = ("variant", "n", "seeds", "final return, by seed", "mean [95 %]", counted, "area, mean [95 %]",
            "requests per agent")  # fmt: skip
    return table(head, rows)


def comparisons(by_variant: ByVariant) -> str:
    """Return how CONS differs from its rivals seed by seed, with each preset; AdHocTD has the same preset."""
    advised = {name for pair in TEACHERS.values() for name in pair}
    pairs = [
        (ours, rival)
        for ours, adhoc_td in TEACHERS.values()
        for rival in by_variant
        if rival == adhoc_td or rival not in advised
    ]
    return compared(by_variant, pairs)


def compared(by_variant: ByVariant, pairs: Sequence[tuple[str, str]]) -> str:
    """Return how the first variant of each pair differs from the second, seed by seed."""
    rows = []
    for ours, rival in pairs:
        left, right = ({run["seed"]: run for run in by_variant.get(each, ())} for each in (ours, rival))
        common = [seed for seed in left if seed in right]
        if not common:
            continue
        row = [LABELS[ours], LABELS[rival], str(len(common))]
        for measure in (final, area):
            gaps = [measure(left[seed]) - measure(right[seed]) for seed in common]
            row += [difference(gaps, interval_of=student_interval), decided(gaps)]
        rows.append(row)
    head = ("variant", "against", "n", "final return, difference [95 %]", "decided",
            "area, difference [95 %]", "decided")  # fmt: skip
    return table(head, rows) if rows else NOT_RUN


def decided(gaps: Sequence[float]) -> str:
    """Return whether differences, one per seed, establish that the first variant is ahead or behind."""
    if len(gaps) < FEWEST_WITH_INTERVAL:
        return "no"
    _, low, high = student_interval(gaps)
    return "ahead" if low > 0 else "behind" if high < 0 else "no"


def halves(worlds: Mapping[str, ByVariant]) -> str:
    """Return how many episodes CONS takes to reach for good what its rivals have in the end, as a share of theirs."""
    rows = []
    for world, by_variant in worlds.items():
        for preset, (ours, adhoc_td) in TEACHERS.items():
            for rival in ("iql", "iql-squared", adhoc_td):
                if ours in by_variant and rival in by_variant:
                    level = _level_at_the_end(by_variant[rival])
                    taken = [_to_level(run, level) for run in by_variant[ours]]
                    told = ", ".join("never" if each is None else f"{each / EPISODES[world]:.2f}" for each in taken)
                    rows.append([f"`{world}`", preset, LABELS[rival], f"{level:.1f}", told])
    head = ("environment", "preset of CONS", "rival", "the rival's level at the end", "share of the run, by seed")
    return table(head, rows) if rows else NOT_RUN


def _level_at_the_end(group: Sequence[Run]) -> float:
    return float(np.mean([value for run in group for _, value in run["evaluations"][-LAST:]]))


def _to_level(run: Run, level: float) -> float | None:
    episodes, values = np.array(run["evaluations"]).T
    return episodes_to_reach(episodes, values, level)


def shares(worlds: Mapping[str, ByVariant]) -> str:
    """Return the requests of CONS as a share of AdHocTD's, in all environments and with both presets."""
    rows = []
    for world, by_variant in worlds.items():
        for preset, (ours, theirs) in TEACHERS.items():
            if ours in by_variant and theirs in by_variant:
                spent = [float(np.mean([requests(run) for run in by_variant[each]])) for each in (ours, theirs)]
                said = percent(PAPER_SHARES[world]) if world in PAPER_SHARES else "–"
                cells = [f"{spent[0]:,.0f}", f"{spent[1]:,.0f}", percent(spent[0] / spent[1]) if spent[1] else "–"]
                rows.append([f"`{world}`", preset, *cells, said])
    head = ("environment", "preset", "CONS", "AdHocTD", "share", "in the paper")
    return table(head, rows) if rows else NOT_RUN


def ablation(runs: Sequence[Run]) -> str:
    """Return what CONS without one of its parts reaches, and AdHocTD, each compared with CONS seed by seed."""
    by_variant = {name: [run for run in runs if run["variant"] == name] for name in ABLATION}
    reference = {run["seed"]: run for run in by_variant["ablation/cons"]}
    rows = [
        ablation_row(LABELS[name], group, reference, student_interval) for name, group in by_variant.items() if group
    ]
    return "\n".join([ABLATION_HEAD, *rows, ""]) if rows else NOT_RUN


def missing(runs: Sequence[Run]) -> str:
    """Return what has not been run yet, by environment and variant."""
    there = {(run["world"], run["variant"], run["seed"]) for run in runs}
    lines = []
    for part in (each for parts in PARTS.values() for each in parts):
        for variant in part.variants:
            seeds = [seed for seed in seeds_of(part) if (part.env, variant, seed) not in there]
            shorter = "" if part.episodes == EPISODES[part.env] else f", {part.episodes:,} episodes"
            if seeds:
                lines.append(f"- `{part.env}`{shorter}, {LABELS[variant]}: seeds {', '.join(map(str, seeds))}\n")
    return "".join(lines) or "Nothing.\n"


def curves_of(world: str) -> str:
    """Return the file name of the figure with an environment's learning curves."""
    return f"{world}.png"


def spending_of(world: str) -> str:
    """Return the file name of the figure with the requests spent in an environment."""
    return f"{world}-requests.png"


def miners_of(world: str) -> str:
    """Return the file name of the figure with returns against how many agents mine."""
    return f"{world}-miners.png"


def picture(text: str, name: str) -> str:
    """Return a picture in Markdown."""
    return f"![{text}]({name})\n"


def tables(runs: Sequence[Run]) -> dict[str, str]:
    """Return all tables and figures by the names that pages use."""
    worlds = by_world(runs)
    found = {"missing": missing(runs), "halves": halves(worlds), "requests": shares(worlds), "compute": compute(worlds)}
    found["ablation"] = ablation(runs)
    found["squared"] = compared(worlds["pgm-3ag"], [("iql-squared", "iql")]) if "pgm-3ag" in worlds else NOT_RUN
    found["boxes"] = found_boxes(worlds["ft"]) if "ft" in worlds else NOT_RUN
    found["paying"] = paying(worlds["ft"]) if "ft" in worlds else NOT_RUN
    found["declines"] = declines(worlds["cleanup"]) if "cleanup" in worlds else NOT_RUN
    for world in RELEASED_MINERS:
        there = worlds.get(world)
        found[f"miners {world}"] = miners(world, there) if there else NOT_RUN
        found[f"returns by miners {world}"] = picture(f"{world}: who mines", miners_of(world)) if there else ""
    for world in EPISODES:
        by_variant = worlds.get(world)
        found[f"returns {world}"] = returns(world, by_variant) if by_variant else NOT_RUN
        found[f"comparisons {world}"] = comparisons(by_variant) if by_variant else NOT_RUN
        found[f"curves {world}"] = picture(f"{world}: team return", curves_of(world)) if by_variant else ""
        found[f"spending {world}"] = picture(f"{world}: requests", spending_of(world)) if by_variant else ""
    return found
