"""Write the results of runs as one self-contained HTML file, which loads nothing from the network."""

import functools
import json
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
from markupsafe import Markup

from consmarl.errors import UsageError
from consmarl.files import replacing
from consmarl.reports import charts, faults, findings, provenance, sheets, words
from consmarl.reports.across import CHOICES, TITLES, Across
from consmarl.reports.charts import Figure
from consmarl.reports.contents import Contents, contents_of
from consmarl.reports.curves import MOST_POINTS
from consmarl.reports.finals import MARK
from consmarl.reports.parts import Part
from consmarl.reports.payloads import payload
from consmarl.reports.pictures import pictures
from consmarl.reports.reference import WHAT_IT_IS
from consmarl.reports.runs import Run
from consmarl.reports.statistics import FEW_SEEDS
from consmarl.reports.tables import MOST_GROUPS_IN_PAIRS, SUMMARIES
from consmarl.reports.themes import styles_of
from consmarl.reports.weights import START, shape_labels, weights_figure

TEMPLATES = "template"
FIRST_SECTION = {"budget": "sharing", "items": "achieved"}  # first section of a study's page, by kind of figure


class Section(NamedTuple):
    """A section of the page; its template is named after its id."""

    id: str
    heading: str


def write_report(
    runs: Sequence[Run],
    out: Path,
    *,
    title: str | None = None,
    study: Mapping[str, Any] | None = None,
    left_out: Sequence[str] = (),
    across: Across = Across.EPISODES,
) -> Path:
    """Write the results of runs as a self-contained page; return its path.

    With a study, i.e. a figure of the paper, the page starts with that figure and the paper's claim about it.
    `left_out` has a sentence for each unreadable run, as returned by `find_runs`; `across` is the initial x-axis of the
    curves.
    """
    if is_of_weights(study):
        return write_weights_page(study or {}, out, title=title)
    if not runs:
        raise UsageError("there are no runs to report: name directories that contain runs.")
    near = Path(out).absolute().parent
    return write_page(contents_of(runs, near, study=study, left_out=left_out, across=across), out, title=title)


def is_of_weights(study: Mapping[str, Any] | None) -> bool:
    """Return whether a study shows the weights of negative knowledge, which needs no runs."""
    return study is not None and study.get("plot") == "weights"


def write_page(contents: Contents, out: Path, *, title: str | None = None) -> Path:
    """Write a report's page; return its path."""
    return _write(_context(contents), out, title)


def write_weights_page(study: Mapping[str, Any], out: Path, *, title: str | None = None) -> Path:
    """Write the page of the study of weights, which needs no runs; return its path."""
    return _write(_weights_context(study), out, title)


def _write(context: dict[str, Any], out: Path, title: str | None) -> Path:
    if title is not None:
        context["title"] = title
    text = _environment().get_template("report.html.jinja").render(context)
    with replacing(Path(out)) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return Path(out)


def _context(contents: Contents) -> dict[str, Any]:
    runs, worlds, study, parts = contents.runs, contents.worlds, contents.study, contents.parts
    moving = pictures(contents.groups)
    notes = faults.fault_notes(runs, contents.left_out)
    return {
        **_page(parts_figures(parts)),
        "sections": sections_of(contents, has_pictures=bool(moving)),
        "title": (study or {}).get("title") or findings.title_of(worlds),
        "summary": findings.summary(runs, worlds),
        "cautions": [*faults.shortened(notes), *findings.cautions(runs, worlds)],
        "study": findings.study_note(study, worlds) if study else None,
        "styles": contents.styles,
        "style_of": contents.style_of,
        "parts": parts,
        "pictures": moving,
        "has_many_groups": any(len(there) > MOST_GROUPS_IN_PAIRS for there in worlds.values()),
        "sheets": sheets.table_sheets(contents),
        "summaries": SUMMARIES,
        "groups": contents.groups,
        "time_rows": contents.time_rows,
        "setting_rows": contents.setting_rows,
        "run_rows": contents.run_rows,
        "left_out": contents.left_out,
        **_made(runs, study),
    }


def _weights_context(study: Mapping[str, Any]) -> dict[str, Any]:
    figure = weights_figure("weights")
    styles = styles_of(shape_labels())
    return {
        **_page([figure]),
        "sections": [Section("weights", "The weight over episodes"), Section("made", "How it was made")],
        "title": study.get("title") or "How much negative knowledge weighs",
        "summary": [
            "When sharing starts, only negative knowledge counts; its weight h(x) then decreases, and positive "
            "knowledge has weight 1 − h(x)."
        ],
        "cautions": [],
        "study": findings.study_note(study, {}),
        "styles": styles,
        "style_of": {style.label: place for place, style in enumerate(styles)},
        "weights": figure,
        "weights_start": START,
        "parts": [],
        "pictures": [],
        "sheets": {},
        "run_rows": [],
        "commands": [],
        "study_command": study.get("command"),
    }


def sections_of(contents: Contents, *, has_pictures: bool) -> list[Section]:
    """Return the non-empty sections of a page: the one with a study's figure first, the others in their usual order."""
    parts, study = contents.parts, contents.study
    there = {
        Section("curves", "Learning curves"): True,
        Section("finals", "Final returns"): True,
        Section("comparisons", "Comparisons"): any(part.comparisons for part in parts),
        Section("sharing", "Sharing"): any(part.sharing_rows for part in parts),
        Section("achieved", "What was achieved"): any(part.panels for part in parts),
        Section("policies", "Policies"): has_pictures,
        Section("times", "Training time"): bool(contents.time_rows),
        Section("settings", "Hyper-parameters"): bool(contents.setting_rows),
        Section("runs", "Every run"): True,
        Section("made", "How it was made"): True,
    }
    first = FIRST_SECTION.get((study or {}).get("plot", ""))
    return sorted((section for section, is_there in there.items() if is_there), key=lambda each: each.id != first)


def _page(figures: Sequence[Figure]) -> dict[str, Any]:
    """Return the template variables that every page needs."""
    return {
        "css": template_text("consmarl.reports", "theme.css", "report.css"),
        "script": template_text("consmarl.reports", "theme.js", "figure.js", "report.js"),
        "data": safe_json({figure.id: payload(figure) for figure in figures}),
        "choices_of_axis": CHOICES,
        "titles_of_axis": TITLES,
        "mark": MARK,
        "most_points": MOST_POINTS,
        "few_seeds": FEW_SEEDS,
        "what_released_is": WHAT_IT_IS,
    }


def _made(runs: Sequence[Run], study: Mapping[str, Any] | None) -> dict[str, Any]:
    return {
        "versions": provenance.versions(runs),
        "commits": provenance.commits(runs),
        "machines": provenance.machines(runs),
        "started": provenance.started(runs),
        "num_resumed": provenance.num_resumed(runs),
        "total_seconds": sum(provenance.seconds_of(run) or 0.0 for run in runs),
        "commands": provenance.commands(runs),
        "study_command": (study or {}).get("command"),
    }


def parts_figures(parts: Sequence[Part]) -> list[Figure]:
    """Return all figures of a page."""
    return [figure for part in parts for figure in (part.curves, part.sharing) if figure is not None]


def template_text(package: str, *names: str) -> Markup:
    """Return the concatenated text of a package's template files."""
    files = resources.files(package) / TEMPLATES
    return Markup("\n").join(Markup((files / name).read_text(encoding="utf-8")) for name in names)


def safe_json(data: Any) -> Markup:
    """Return JSON with <, > and & escaped, so that it is safe inside a script element."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


@functools.cache  # Jinja compiles each template once per environment
def template_environment(package: str) -> jinja2.Environment:
    """Return the Jinja environment for a package's templates, with autoescaping and strict undefined variables."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader(package, TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )


@functools.cache
def _environment() -> jinja2.Environment:
    environment = template_environment("consmarl.reports")
    for filter in (words.number, words.bounds, words.with_bounds, words.plural, words.listed, words.duration):
        environment.filters[filter.__name__] = filter
    environment.filters |= {"svg": charts.svg, "percent": charts.percent, "decimals": words.decimals_for}
    environment.filters |= {"csv_link": sheets.csv_link, "short_duration": words.short_duration}
    return environment
