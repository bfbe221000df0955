"""CSV files with every number of a report, for use in other programs."""

import base64
import csv
import io
import re

import pytest

from consmarl.cli import main
from consmarl.reports import figures
from consmarl.reports.across import Across
from consmarl.reports.contents import contents_of
from consmarl.reports.curves import lines_of
from consmarl.reports.page import write_page
from consmarl.reports.runs import read_runs
from consmarl.reports.sheets import Sheet, all_sheets, csv_text, table_sheets, weights_sheets, write_sheets
from consmarl.reports.statistics import interval
from tests.reports.handmade import evaluated, write_run


@pytest.fixture
def contents(tmp_path):
    """Two methods with three seeds each; one of them shares."""
    shared = dict(requests=4.0, answers=2.0, advised_share=0.25, requests_left=[10.0, 20.0], budget_used=85.0)
    for method, base in (("iql", 1.0), ("cons", 4.0)):
        for seed in range(3):
            rows = evaluated([0.0, base, base + seed], **(shared if method == "cons" else {}))
            write_run(tmp_path / "runs" / f"{method}-{seed}", method=method, seed=seed, rows=rows)
    return contents_of(read_runs([tmp_path / "runs"]), tmp_path)


def records(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_every_section_with_a_table_has_a_link_to_its_csv(contents, tmp_path):
    page = write_page(contents, tmp_path / "report.html").read_text(encoding="utf-8")
    links = dict(re.findall(r'href="data:text/csv;charset=utf-8;base64,([^"]*)" download="([^"]*)"', page))
    names = {name: base64.b64decode(content).decode() for content, name in links.items()}
    assert sorted(names) == [
        "achieved.csv", "comparisons.csv", "final-returns.csv", "runs.csv", "settings.csv", "sharing.csv", "times.csv",
    ]  # fmt: skip
    best = records(names["final-returns.csv"])[0]
    assert best["group"] == "CONS"
    found = [float(best[name]) for name in ("final_return", "final_return_low", "final_return_high")]
    assert found == list(interval([4.0, 5.0, 6.0]))
    assert names["final-returns.csv"] == csv_text(table_sheets(contents)["finals"])


def test_curves_are_written_with_full_precision(contents):
    sheets = {sheet.name: records(csv_text(sheet)) for sheet in all_sheets(contents)}
    line = lines_of(contents.groups, "evaluation_return")[0]
    found = [row for row in sheets["curves"] if row["metric"] == "evaluation_return" and row["group"] == "CONS"]
    assert [int(row["episode"]) for row in found] == line.episodes.tolist()
    assert [float(row["iqm"]) for row in found] == line.bands["iqm"].estimate.tolist()
    assert [float(row["mean_low"]) for row in found] == line.bands["mean"].low.tolist()
    assert [float(row["environment_steps"]) for row in found] == [0, 25_000, 50_000]
    assert "budget_used" in {row["metric"] for row in sheets["curves"]}


def test_the_rows_sheet_contains_all_rows_of_all_runs(contents):
    rows = next(records(csv_text(sheet)) for sheet in all_sheets(contents) if sheet.name == "rows")
    assert len(rows) == 6 * 3
    last = rows[-1]
    assert (last["group"], last["seed"], last["episode"], last["seconds"]) == ("IQL", "2", "2000", "2.0")
    assert float(last["evaluation_return"]) == 3.0
    assert last["requests"] == ""  # IQL does not share


def test_the_settings_sheet_marks_differing_settings(contents):
    rows = records(csv_text(table_sheets(contents)["settings"]))
    assert [row["value"] for row in rows if row["setting"] == "method"] == ["cons", "iql"]
    assert {row["setting"] for row in rows if row["differs"] == "yes"} == {"method"}


def test_unknown_values_are_empty_and_names_do_not_become_formulas():
    sheet = Sheet("s", ("a", "b", "c"), [[float("nan"), None, True], ["=HYPERLINK(1)", "a,b", -1.5]])
    assert csv_text(sheet).splitlines() == ["a,b,c", ",,yes", '\'=HYPERLINK(1),"a,b",-1.5']


def test_sheets_without_rows_are_not_written(tmp_path):
    sheets = [Sheet("empty", ("a",), []), Sheet("full", ("a",), [[1]])]
    assert [path.name for path in write_sheets(sheets, tmp_path / "csv")] == ["full.csv"]
    assert (tmp_path / "csv" / "full.csv").read_bytes() == b"a\n1\n"


def test_the_weights_study_has_a_sheet_of_its_curves():
    (sheet,) = weights_sheets()
    rows = records(csv_text(sheet))
    assert (rows[0]["episode"], float(rows[0]["value"])) == ("5000", pytest.approx(1.0))


@pytest.mark.usefixtures("contents")
def test_the_command_line_writes_sheets_and_draws_over_time(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    drawn_over = []
    monkeypatch.setattr(figures, "write_figures", lambda *_, across, **__: drawn_over.append(across) or [])
    options = ["--no-gifs", "--no-views", "--csv", "numbers", "--x", "time", "--figures", "figures"]
    assert main(["report", "runs", *options]) == 0
    said = capsys.readouterr().out
    for name in ("final-returns", "curves", "rows"):
        assert f"wrote numbers/{name}.csv" in said
        assert (tmp_path / "numbers" / f"{name}.csv").is_file()
    assert 'data-across="time" aria-pressed="true"' in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert drawn_over == [Across.TIME]
