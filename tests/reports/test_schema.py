"""Metrics, whether runs declare them or not, reach the page, the sheets, marl-eval and the figures."""

import csv
import io
import json

import pytest

from consmarl.metrics import EPSILON, RETURN, SHARING, Metric, Schema, to_json
from consmarl.reports.contents import contents_of
from consmarl.reports.figures import counters_figure, curves_figure, study_figure
from consmarl.reports.marl_eval import to_marl_eval
from consmarl.reports.page import write_report
from consmarl.reports.plots import strokes_of
from consmarl.reports.runs import grouped, read_runs
from consmarl.reports.sheets import all_sheets, csv_text
from tests.reports.handmade import evaluated, write_run

DECLARED = Schema((
    RETURN, EPSILON, Metric("cod_caught", "Cod landed", part_of="caught", most=10), Metric("caught"),
    Metric("whispers", "Whispers heard", SHARING), Metric("whispers_left", family=SHARING, by_agent=True),
))  # fmt: skip


def fishing(directory, *, schema=None, **settings):
    """Write a run with an environment, a learner and a sharing mechanism that this package does not know."""
    rows = evaluated([0.0, 1.0, 2.0], counter="cod_caught", caught=7.0, crab_loss=0.5, whispers=3.0,
                     whispers_left=[1, 2], dizziness=2.0)  # fmt: skip
    rows = [row | {"evaluation_caught": 9.0} for row in rows]
    run = write_run(directory, env="fishing", method="angling", rows=rows, **settings)
    if schema is not None:
        facts = json.loads((run / "run.json").read_text())
        (run / "run.json").write_text(json.dumps(facts | {"metrics": to_json(schema)}))
    return run


def groups_in(directory):
    return grouped(read_runs([directory]))


def page_of(directory):
    return write_report(read_runs([directory / "run"]), directory / "report.html").read_text(encoding="utf-8")


def sheets_of(directory):
    contents = contents_of(read_runs([directory / "run"]), directory)
    return {sheet.name: list(csv.DictReader(io.StringIO(csv_text(sheet)))) for sheet in all_sheets(contents)}


def test_undeclared_counters_are_on_the_page(tmp_path):
    fishing(tmp_path / "run")
    page = page_of(tmp_path)
    assert page.count("Cod caught") >= 3  # as curves of training and evaluation, and as a bar
    for title in ("Caught", "Crab loss", "Whispers", "Dizziness"):
        assert f">{title}</option>" in page


def test_undeclared_counters_are_in_the_sheets(tmp_path):
    fishing(tmp_path / "run")
    sheets = sheets_of(tmp_path)
    assert {row["counter"] for row in sheets["achieved"]} == {"cod_caught", "caught"}
    numbers = {"evaluation_cod_caught", "evaluation_caught", "caught", "crab_loss", "whispers", "dizziness"}
    assert numbers <= sheets["rows"][0].keys()
    assert numbers <= {row["metric"] for row in sheets["curves"]}


def test_undeclared_counters_are_exported_to_marl_eval(tmp_path):
    fishing(tmp_path / "run")
    run = to_marl_eval(groups_in(tmp_path))["fishing"]["fishing"]["angling"]["run_1"]
    assert run["absolute_metrics"] == {"return": [2.0], "caught": [9.0], "cod_caught": [0.2]}


def test_undeclared_counters_are_drawn_in_figures(tmp_path):
    fishing(tmp_path / "run")
    figure = counters_figure({"fishing": groups_in(tmp_path)}, "A title", strokes_of(["angling"]))
    assert [tick.get_text() for tick in figure.axes[0].get_xticklabels()] == ["caught", "cod caught"]


def test_the_page_uses_declared_titles_totals_and_families(tmp_path):
    fishing(tmp_path / "run", schema=DECLARED)
    contents = contents_of(read_runs([tmp_path / "run"]), tmp_path)
    (part,) = contents.parts
    assert [panel.title for panel in part.panels] == ["Cod landed"]  # its total is left out
    assert [chart.metric.title for chart in part.sharing.charts] == ["Whispers heard"]
    families = {family: [each.metric.name for _, each in charts] for family, charts in part.curves.families}
    assert families == {
        "Greedy evaluation": ["evaluation_return", "evaluation_cod_caught"],
        "Training": ["return", "caught", "dizziness"],
        "Learning": ["epsilon", "crab_loss"],
    }
    page = page_of(tmp_path)
    assert "Whispers heard" in page
    assert "Cod landed" in page


def test_the_declarations_are_in_a_separate_sheet(tmp_path):
    fishing(tmp_path / "run", schema=DECLARED)
    found = {row["metric"]: row for row in sheets_of(tmp_path)["metrics"]}
    assert found["return"] == {"world": "fishing", "metric": "return", "title": "Return", "family": "Training",
                               "unit": "reward", "more_is_better": "yes", "most": ""}  # fmt: skip
    assert found["evaluation_cod_caught"]["most"] == "10.0"
    assert (found["dizziness"]["title"], found["dizziness"]["more_is_better"]) == ("Dizziness", "")


def test_an_unknown_family_is_in_the_menu(tmp_path):
    fishing(tmp_path / "run", schema=Schema((Metric("dizziness", family="Feelings"),)))
    assert '<optgroup label="Feelings"><option' in page_of(tmp_path)


def test_figures_use_declared_titles(tmp_path):
    fishing(tmp_path / "run", schema=DECLARED)
    panels, strokes = {"fishing": groups_in(tmp_path)}, strokes_of(["angling"])
    for metric, title in (("evaluation_cod_caught", "Cod landed (greedy evaluation)"), ("whispers", "whispers heard")):
        figure = curves_figure(panels, metric, "A title", strokes)
        assert figure.axes[0].get_ylabel() == title[:1].lower() + title[1:]
    (tick,) = counters_figure(panels, "A title", strokes).axes[0].get_xticklabels()
    assert tick.get_text() == "cod landed"


def test_items_are_shares_of_the_declared_maximum(tmp_path):
    fishing(tmp_path / "run", schema=DECLARED)
    study = {"name": "fish", "title": "Fish", "plot": "items", "worlds": ["fishing"], "groups": ["angling"]}
    (bars,) = study_figure(groups_in(tmp_path), study).axes[0].containers
    assert [bar.get_height() for bar in bars] == [pytest.approx(0.02)]  # 0.2 of 10


def test_an_older_run_without_declarations_can_be_read(tmp_path):
    counted = {"return": 1.0, "opened": 6.0, "yellow_opened": 1.5, "items_taken": 1.0, "coins_taken": 1.0}
    rows = evaluated([0.0, 1.0], counter="yellow_opened", td_error=1.0, entropy=1.0, requests=2.0, epsilon=0.1)
    write_run(tmp_path / "run", env="ft", rows=rows, result=counted)
    assert "metrics" not in json.loads((tmp_path / "run" / "run.json").read_text())
    (part,) = contents_of(read_runs([tmp_path / "run"]), tmp_path).parts
    assert [panel.title for panel in part.panels] == ["Yellow boxes opened", "Coins taken"]
    titles = [(chart.metric.title, chart.metric.family) for chart in part.curves.charts]
    assert titles == [
        ("Return", "Greedy evaluation"), ("Yellow boxes opened", "Greedy evaluation"), ("Return", "Training"),
        ("Entropy", "Training"), ("TD error", "Learning"), ("ε", "Learning"),
    ]  # fmt: skip
    assert [chart.metric.title for chart in part.sharing.charts] == ["Requests per episode"]


def test_older_and_newer_runs_can_be_reported_together(tmp_path):
    fishing(tmp_path / "run" / "old")
    fishing(tmp_path / "run" / "new", schema=DECLARED, seed=1)
    (part,) = contents_of(read_runs([tmp_path / "run"]), tmp_path).parts
    assert [(panel.title, len(panel.bars[0].seeds)) for panel in part.panels] == [("Cod landed", 2)]
