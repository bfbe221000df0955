"""One HTML file that shows what runs came to: nothing in it asks a network for anything."""

import json
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
from markupsafe import Markup

from consmarl.errors import UsageError
from consmarl.files import replacing
from consmarl.report import charts, findings, provenance, words
from consmarl.report.charts import Figure
from consmarl.report.curves import MOST_POINTS
from consmarl.report.finals import MARK, by_world
from consmarl.report.parts import Part, parts_of
from consmarl.report.pictures import pictures
from consmarl.report.plots import WEIGHT_START
from consmarl.report.reference import WHAT_IT_IS
from consmarl.report.runs import Group, Run, grouped
from consmarl.report.statistics import FEW_SEEDS
from consmarl.report.tables import MOST_GROUPS_IN_PAIRS
from consmarl.report.themes import styles_of
from consmarl.report.weights import shape_labels, weights_figure

TEMPLATES = "template"
FIRST_SECTION = {"budget": "sharing", "items": "achieved"}  # of a study's page: what its figure shows


class Section(NamedTuple):
    """A section of the page; its template bears its id."""

    id: str
    heading: str


def write_report(
    runs: Sequence[Run], out: Path, *, title: str | None = None, study: Mapping[str, Any] | None = None
) -> Path:
    """Write what runs came to as a page that stands alone; return its path.

    With a study, a figure of the paper, the page opens with what the figure shows and what the paper says of it.
    """
    out = Path(out)
    is_weights = study is not None and study.get("plot") == "weights"
    if not runs and not is_weights:
        raise UsageError("there are no runs to report: name directories that hold some.")
    context = _weights_context(study or {}) if is_weights else _context(runs, out.absolute().parent, study)
    if title is not None:
        context["title"] = title
    text = _environment().get_template("report.html.jinja").render(context)
    with replacing(out) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return out


def _context(runs: Sequence[Run], near: Path, study: Mapping[str, Any] | None) -> dict[str, Any]:
    worlds = by_world(grouped(runs), (study or {}).get("groups") or ())
    groups = [group for there in worlds.values() for group in there]
    styles = styles_of(group.label for group in groups)
    style_of = {style.label: place for place, style in enumerate(styles)}
    parts = parts_of(worlds, style_of, study)
    moving = pictures(groups)
    return {
        **_page(parts_figures(parts)),
        "sections": sections_of(parts, has_pictures=bool(moving), study=study),
        "title": (study or {}).get("title") or findings.title_of(worlds),
        "summary": findings.summary(runs, worlds),
        "cautions": findings.cautions(runs, worlds),
        "study": findings.study_note(study, worlds) if study else None,
        "styles": styles,
        "style_of": style_of,
        "parts": parts,
        "pictures": moving,
        "has_many_groups": any(len(there) > MOST_GROUPS_IN_PAIRS for there in worlds.values()),
        **_made(runs, groups, near, study),
    }


def _weights_context(study: Mapping[str, Any]) -> dict[str, Any]:
    figure = weights_figure("weights")
    styles = styles_of(shape_labels())
    return {
        **_page([figure]),
        "sections": [Section("weights", "The weight over episodes"), Section("made", "How it was made")],
        "title": study.get("title") or "How much negative knowledge weighs",
        "summary": [
            "When sharing starts, only negative knowledge counts; from then on its weight h(x) falls, and positive "
            "knowledge has the rest of 1."
        ],
        "cautions": [],
        "study": findings.study_note(study, {}),
        "styles": styles,
        "style_of": {style.label: place for place, style in enumerate(styles)},
        "weights": figure,
        "weights_start": WEIGHT_START,
        "parts": [],
        "pictures": [],
        "run_rows": [],
        "commands": [],
        "study_command": study.get("command"),
    }


def sections_of(parts: Sequence[Part], *, has_pictures: bool, study: Mapping[str, Any] | None) -> list[Section]:
    """Return the sections that have something to show: a study's figure first, the others in their order."""
    there = {
        Section("curves", "Learning curves"): True,
        Section("finals", "Final returns"): True,
        Section("comparisons", "Comparisons"): any(part.comparisons for part in parts),
        Section("sharing", "Sharing"): any(part.sharing_rows for part in parts),
        Section("achieved", "What was achieved"): any(part.panels for part in parts),
        Section("policies", "Policies"): has_pictures,
        Section("runs", "Every run"): True,
        Section("made", "How it was made"): True,
    }
    first = FIRST_SECTION.get((study or {}).get("plot", ""))
    return sorted((section for section, is_there in there.items() if is_there), key=lambda each: each.id != first)


def _page(figures: Sequence[Figure]) -> dict[str, Any]:
    """Return what every page needs."""
    return {
        "css": template_text("consmarl.report", "theme.css", "report.css"),
        "script": template_text("consmarl.report", "theme.js", "report.js"),
        "data": safe_json({figure.id: charts.payload(figure) for figure in figures}),
        "mark": MARK,
        "most_points": MOST_POINTS,
        "few_seeds": FEW_SEEDS,
        "what_released_is": WHAT_IT_IS,
    }


def _made(runs: Sequence[Run], groups: Sequence[Group], near: Path, study: Mapping[str, Any] | None) -> dict[str, Any]:
    common, differing = provenance.settings(groups)
    return {
        "run_rows": provenance.run_rows(runs, groups, near),
        "common_settings": common,
        "differing_settings": differing,
        "versions": provenance.versions(runs),
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
    """Return files of a package's templates, one after the other."""
    files = resources.files(package) / TEMPLATES
    return Markup("\n").join(Markup((files / name).read_text(encoding="utf-8")) for name in names)


def safe_json(data: Any) -> Markup:
    """Return JSON that may stand inside a script element, whatever names it holds."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def template_environment(package: str) -> jinja2.Environment:
    """Return where a package's templates come from: everything is escaped, and nothing may be missing."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader(package, TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )


def _environment() -> jinja2.Environment:
    environment = template_environment("consmarl.report")
    for filter in (words.number, words.bounds, words.with_bounds, words.plural, words.listed, words.duration):
        environment.filters[filter.__name__] = filter
    environment.filters |= {"svg": charts.svg, "percent": charts.percent, "decimals": words.decimals_for}
    return environment
