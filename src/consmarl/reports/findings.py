"""The sentences of the page: a summary, cautions, and a study's claim next to our results."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from consmarl.reports.curves import Line, lines_of
from consmarl.reports.finals import MARK, best_first, final_mean, final_values
from consmarl.reports.metrics import schema_of
from consmarl.reports.runs import Group, Run, flat_settings
from consmarl.reports.statistics import caution
from consmarl.reports.tables import compared
from consmarl.reports.words import decimals_for, listed, number, plural, sentence, with_bounds

MOST_NAMED = 3  # environments or groups named in a sentence; more than that are only counted
LONGEST_NAMES = 50  # characters of all methods in a title


class StudyNote(NamedTuple):
    """A study's figure, the paper's claim about it, and our results."""

    name: str
    figure: int | None
    claim: str | None
    scaled: str | None
    seen: list[str]
    remarks: list[str]


def title_of(worlds: Mapping[str, Sequence[Group]]) -> str:
    """Return a default title for a page."""
    labels = list(dict.fromkeys(group.label for groups in worlds.values() for group in groups))
    is_short = len(labels) <= MOST_NAMED and len("".join(labels)) <= LONGEST_NAMES
    who = listed(labels) if is_short else "Results"
    ids = [world.partition(" (")[0] for world in worlds]  # the summary mentions changed parameters
    return f"{who} {_where(list(worlds) if len(set(ids)) < len(ids) else ids)}"


def summary(runs: Sequence[Run], worlds: Mapping[str, Sequence[Group]]) -> list[str]:
    """Return a few sentences on the methods, environments and seeds, and on the best final returns."""
    groups = [group for each in worlds.values() for group in each]
    num_labels = len({group.label for group in groups})
    seeds = sorted({len(group.runs) for group in groups})
    each = f"{plural(seeds[0], 'seed')} each" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]} seeds each"
    opening = f"{_kinds(worlds, num_labels)} {_where(list(worlds))}, {plural(len(runs), 'run')}, {each}."
    return [opening, *(leader for world in worlds if (leader := _leader(world, worlds)))]


def _kinds(worlds: Mapping[str, Sequence[Group]], count: int) -> str:
    methods = {group.runs[0].method for groups in worlds.values() for group in groups}
    return plural(count, "method" if len(methods) == count else "variant")


def _where(worlds: list[str]) -> str:
    return f"on {listed(worlds)}" if len(worlds) <= MOST_NAMED else f"on {len(worlds)} environments"


def _leader(world: str, worlds: Mapping[str, Sequence[Group]]) -> str | None:
    ordered = [group for group in best_first(worlds[world]) if final_values(group)]
    if not ordered:
        return None
    place = f" on {world}" if len(worlds) > 1 else ""
    best = final_mean(ordered[0])
    reached = f"{ordered[0].label} {with_bounds(best, decimals_for(best))}"
    if len(ordered) == 1:
        return f"Final return{place}: {reached}."
    against = compared(ordered[0], ordered[1])
    if against.gap == 0:
        return f"Highest final return{place}: {reached}, tied with {against.right}."
    return f"Highest final return{place}: {reached}; its lead over {against.right} is {against.verdict}."


def cautions(runs: Sequence[Run], worlds: Mapping[str, Sequence[Group]]) -> list[str]:
    """Return warnings to consider before drawing conclusions, such as few seeds or unfinished runs."""
    groups = [group for each in worlds.values() for group in each]
    num_drawn = sum(len(group.runs) for group in groups)
    found = _few_seeds(groups, is_one_world=len(worlds) == 1)
    states = Counter(run.state for run in runs)
    if states["failed"]:
        found.append(f"{plural(states['failed'], 'run')} failed and {_is(states['failed'])} in no mean or curve.")
    if states["unfinished"]:
        found.append(
            f"{plural(states['unfinished'], 'run')} {_is(states['unfinished'])} unfinished: the last evaluation "
            f"is used as the final return, marked {MARK}, and curves show only finished runs if a group has any."
        )
    if len(runs) > num_drawn:
        found.append(
            f"{plural(len(runs) - num_drawn, 'run')} repeated the seed and settings of another: each seed counts once."
        )
    found += [each for world, there in worlds.items() if (each := _different_lengths(world, there))]
    found += [each for group in groups if (each := _never_shared(group, is_one_world=len(worlds) == 1))]
    return found


def _few_seeds(groups: Sequence[Group], *, is_one_world: bool) -> list[str]:
    """Return warnings about few seeds, one for each number of seeds."""
    holders: dict[str, list[str]] = {}
    for group in groups:
        words = caution(len(final_values(group)))
        if words is not None:
            holders.setdefault(words, []).append(group.label if is_one_world else group.name)
    if len(holders) == 1 and sum(map(len, holders.values())) == len(groups):
        return [sentence(words) for words in holders]
    return [
        f"{listed(names) if len(names) <= MOST_NAMED else plural(len(names), 'group')} with {words}"
        for words, names in holders.items()
    ]


def _different_lengths(world: str, groups: Sequence[Group]) -> str | None:
    lengths = sorted(
        {int(run.config["episodes"]) for group in groups for run in group.runs if "episodes" in run.config}
    )
    if len(lengths) < 2:
        return None
    return f"Runs on {world} differ in length: {listed([number(each, 0) for each in lengths])} episodes."


def _never_shared(group: Group, *, is_one_world: bool) -> str | None:
    """Return a warning if a group's runs end before sharing starts, so that they show the method without sharing."""
    settings = flat_settings(group.runs[0].config)
    start, episodes = settings.get("share.start_episode"), settings.get("episodes")
    if not isinstance(start, int) or not isinstance(episodes, int) or start < episodes - 1:
        return None
    return (
        f"{group.label if is_one_world else group.name} never shared anything: sharing starts after episode "
        f"{number(start, 0)}, and its runs have {number(episodes, 0)} episodes. Comparisons show it without sharing."
    )


def _is(count: int) -> str:
    return "is" if count == 1 else "are"


def _scaled(scale: float) -> str:
    return f"{'shortened' if scale < 1 else 'lengthened'} to {100 * scale:g} % of the paper's episodes"


def study_note(study: Mapping[str, Any], worlds: Mapping[str, Sequence[Group]]) -> StudyNote:
    """Return a study's claim, our results, and the groups that have not been run."""
    labels = {group.label for groups in worlds.values() for group in groups}
    missing = [label for label in study.get("groups") or () if label not in labels]
    has_runs = study["plot"] != "weights"
    scaled = _scaled(study["scale"]) if has_runs and study.get("scale", 1) != 1 else None
    remarks = []
    if missing and has_runs:
        remarks.append(f"Not run yet: {listed(missing)}.")
    seen = [each for world, groups in worlds.items() if (each := _seen(study, world, groups, len(worlds) > 1))]
    return StudyNote(study["name"], study.get("figure"), study.get("claim"), scaled, seen, remarks)


def _seen(study: Mapping[str, Any], world: str, groups: Sequence[Group], names_world: bool) -> str | None:
    """Return a sentence with each group's last value of the study's metric, highest first; None without values."""
    place = f" on {world}" if names_world else ""
    if study["plot"] == "items":
        return _taken(groups, place)
    shown = schema_of(run for group in groups for run in group.runs)[study.get("metric") or "evaluation_return"]
    ends = [(line, float(line.bands["mean"].estimate[-1])) for line in lines_of(groups, shown.name)]
    ends = sorted((each for each in ends if math.isfinite(each[1])), key=lambda each: -each[1])
    if not ends:
        return None
    decimals = decimals_for(value for _, value in ends)
    values = ", ".join(f"{groups[line.group].label} {number(value, decimals)}" for line, value in ends)
    return f"{shown.title}{place} ({shown.family.lower()}) {_at([line for line, _ in ends])}: {values}."


def _taken(groups: Sequence[Group], place: str) -> str | None:
    taken = [(group.label, final_mean(group, "treasures_taken").estimate) for group in groups]
    known = sorted((each for each in taken if math.isfinite(each[1])), key=lambda each: -each[1])
    values = ", ".join(f"{label} {100 * share:.0f} %" for label, share in known)
    return f"Treasure taken{place}: {values} of the evaluated episodes." if known else None


def _at(lines: Sequence[Line]) -> str:
    last = {int(line.episodes[-1]) for line in lines}
    return f"at episode {number(last.pop(), 0)}" if len(last) == 1 else "at the end"
