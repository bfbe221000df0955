"""Damaged or untrusted files: a report says what it cannot use, and continues with the rest."""

import html
import json
import math
import re

import pytest

from consmarl.cli import main
from consmarl.errors import UsageError
from consmarl.reports.faults import MOST_NOTES, fault_notes, shortened
from consmarl.reports.finals import by_world
from consmarl.reports.marl_eval import write_marl_eval
from consmarl.reports.page import write_report
from consmarl.reports.runs import find_runs, grouped, read_run, read_runs
from consmarl.reports.tables import final_table
from tests.reports.handmade import evaluated, write_run

DEEP = b'{"a":' * 100_000
NOT_UTF8 = b"\xff\xfe"


@pytest.fixture
def root(tmp_path):
    """Two seeds with ten evaluations each."""
    for seed in range(2):
        write_run(
            tmp_path / "runs" / f"seed-{seed}", seed=seed, rows=evaluated([float(n) for n in range(10)], loss=1.0)
        )
    return tmp_path / "runs"


def damage(run, line, content):
    """Replace a line, counted from 1, of a run's metrics; a dict replaces only those values of the row."""
    path = run / "metrics.jsonl"
    lines = path.read_bytes().split(b"\n")
    if isinstance(content, dict):
        content = json.dumps(json.loads(lines[line - 1]) | content).encode()
    lines[line - 1] = content
    path.write_bytes(b"\n".join(lines))


def text_of(page):
    return " ".join(html.unescape(re.sub(r"<(script|style).*?</\1>|<[^>]*>", " ", page, flags=re.DOTALL)).split())


def reported(root, capsys):
    """Make a report on the command line; return the text of its page and what was written to stderr."""
    out = root.parent / "report.html"
    assert main(["report", str(root), "--out", str(out), "--no-gifs", "--no-views"]) == 0
    return text_of(out.read_text(encoding="utf-8")), capsys.readouterr().err


def test_a_damaged_row_is_reported_and_later_rows_are_read(root, capsys):
    damage(root / "seed-0", 4, b'{"episode": 3000, "evaluation_ret')
    text, said = reported(root, capsys)
    note = "seed-0/metrics.jsonl: skipped line 4, which is not JSON; the other 9 rows were read."
    assert note in said
    assert note in text
    assert [row["episode"] for row in read_run(root / "seed-0").rows] == [1_000 * n for n in range(10) if n != 3]
    (group,) = by_world(grouped(read_runs([root])))["pgm-3ag"]
    (row,) = final_table([group]).rows
    assert row.mean.estimate == 9.0
    assert row.area.estimate == 4.5  # a straight line from 0 to 9, with or without one of its points


def test_a_partial_last_line_is_skipped_silently(root, capsys):
    with (root / "seed-0" / "metrics.jsonl").open("ab") as file:
        file.write(b'{"episode": 10000, "evaluation_return": "\xc3')
    text, said = reported(root, capsys)
    assert said == ""
    assert "skipped" not in text
    assert read_run(root / "seed-0").episode == 9_000


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"[1, 2]", "is not an object"),
        (b"7", "is not an object"),
        (NOT_UTF8, "is not UTF-8"),
        (DEEP, "is nested too deeply"),
        (b'{"episode": ' + b"9" * 5_000 + b"}", "is not JSON"),
        (b'{"return": 1.0}', "has no episode"),
        ({"episode": "3000"}, "has no episode"),
        ({"episode": 10**30}, "has no episode"),
        ({"episode": -1}, "has no episode"),
        ({"episode": True}, "has no episode"),
        ({"episode": 1_000}, "has episode 1000 after 2000"),
        ({"evaluation_return": "high"}, 'has "high" as evaluation_return, not a number'),
        ({"evaluation_return": [1.0]}, "has a list as evaluation_return, not a number"),
        ({"evaluation_gold_mined": {"a": 1}}, "has an object as evaluation_gold_mined, not a number"),
        ({"loss": "x" * 100}, f'has "{38 * "x"}… as loss, not a number'),
        ({"env_steps": False}, "has false as env_steps, not a number"),
        ({"seconds": "1"}, "has seconds that are not a number"),
    ],
)  # fmt: skip
def test_every_unusable_row_is_reported(root, content, what):
    damage(root / "seed-0", 4, content)
    run = read_run(root / "seed-0")
    assert run.faults == [(4, what)]
    assert len(run.rows) == 9


def test_text_and_nulls_in_non_numeric_columns_are_not_damage(root):
    for line in range(1, 11):
        damage(root / "seed-0", line, {"note": "a word", "of_each": [], "flag": None})
    assert read_run(root / "seed-0").faults == []


def test_non_finite_numbers_leave_gaps_and_are_reported(root, capsys):
    for line, value in ((4, math.nan), (5, math.inf), (6, 1e300), (7, 10**400)):
        damage(root / "seed-0", line, {"evaluation_return": value})
    damage(root / "seed-0", 4, {"loss": -math.inf})
    text, said = reported(root, capsys)
    assert "NaN or infinite: evaluation_return 4 times and loss 1 time; curves have gaps there" in said
    assert "NaN or infinite: evaluation_return 4 times" in text
    page = (root.parent / "report.html").read_text()
    data = json.loads(re.search(r'id="data">(.*?)</script>', page).group(1), parse_constant=pytest.fail)
    chart = data["curves-0"]["charts"][0]
    assert [value is None for value in chart["series"][0]["bands"]["mean"][0]] == [n in (3, 4, 5, 6) for n in range(10)]
    (row,) = final_table(by_world(grouped(read_runs([root])))["pgm-3ag"]).rows
    assert row.area.estimate == pytest.approx(4.5)


def test_a_non_finite_final_return_is_left_out_of_means_and_reported(root, capsys):
    (root / "seed-1" / "result.json").write_text('{"return": NaN, "gold_mined": Infinity}')
    text, said = reported(root, capsys)
    assert "seed-1/result.json: the final return is NaN or infinite; the run is left out of mean final returns." in said
    assert "IQL 1 of 2 9.00" in text


@pytest.mark.parametrize("name", ["config.json", "run.json", "result.json", "failure.json"])
@pytest.mark.parametrize(
    ("content", "what"),
    [
        (NOT_UTF8, "is not UTF-8"),
        (DEEP, "is nested too deeply"),
        (b'{"a": ' + 50 * b"[" + 50 * b"]" + b"}", "is nested too deeply"),
        (b"[]", "must contain an object"),
        (b'{"a"', "is not JSON: Expecting ':' delimiter"),
    ],
    ids=["not UTF-8", "far too deep", "too deep", "a list", "not JSON"],
)
def test_a_run_with_an_unreadable_file_is_left_out_and_reported(root, name, content, what):
    (root / "seed-1" / name).write_bytes(content)
    found = find_runs([root])
    assert [run.seed for run in found.runs] == [0]
    assert found.left_out[0].startswith(f"{root / 'seed-1' / name} {what}")
    with pytest.raises(UsageError, match=re.escape(what)):
        read_runs([root])


def test_runs_left_out_are_reported_on_the_page_and_in_the_terminal(root, capsys):
    (root / "seed-1" / "config.json").write_bytes(DEEP)
    text, said = reported(root, capsys)
    note = f"A run was left out: {root / 'seed-1' / 'config.json'} is nested too deeply: at most 50 levels of lists"
    (said,) = said.splitlines()
    assert said.startswith(note)
    assert note in text
    assert "1 run, 1 seed each" in text


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("config.json", {"method": "iql"}, "it has no env"),
        ("config.json", {"env": "ft", "method": 3}, "method should be a string, not 3"),
        ("config.json", {"env": "ft", "method": "iql", "seed": "x"}, "seed should be a whole number"),
        ("config.json", {"env": "ft", "method": "iql", "episodes": 1e400}, "episodes should be a whole number"),
        ("config.json", {"env": "ft", "method": "iql", "share": []}, "share should be an object, not a list"),
        ("config.json", {"env": "ft", "method": "iql", "explore": 1}, "explore should be an object, not 1"),
        ("config.json", {"env": "ft", "method": "iql", "set": [1]}, "set should be a list of strings"),
        ("run.json", {"sessions": {}}, "sessions should be a list of objects"),
        ("run.json", {"label": ["x"]}, "label should be a string, not a list"),
        ("run.json", {"metrics": {"name": "gold"}}, "metrics should be a list of objects, not an object"),
        ("run.json", {"metrics": [{"title": "Gold"}]}, "in its metrics, each must have a name"),
        ("run.json", {"metrics": [{"name": "gold", "title": 3}]}, "in its metrics, title must be a string, not 3"),
        ("run.json", {"sessions": [{"versions": 3}]}, "versions should be an object, not 3"),
        ("run.json", {"sessions": [{"started": 3}]}, "started should be a string, not 3"),
        ("result.json", {"return": "high"}, 'return is "high", not a number'),
        ("result.json", {"return": 1.0, "gold_mined": [1]}, "gold_mined is a list, not a number"),
        ("failure.json", {"error": 7}, "error should be a string, not 7"),
    ],
)
def test_a_run_with_invalid_contents_is_left_out_and_reported(root, name, content, what):
    (root / "seed-1" / name).write_text(json.dumps(content))
    found = find_runs([root])
    assert [run.seed for run in found.runs] == [0]
    assert found.left_out[0].startswith(f"{root / 'seed-1' / name} cannot be used: {what}")


def test_odd_but_harmless_values_do_not_prevent_a_page(root):
    machine = {"cores": "two", "memory_gigabytes": "many", "processor": None}
    session = {"started": None, "versions": None, "machine": machine, "git": None, "command": None}
    (root / "seed-0" / "run.json").write_text(json.dumps({"label": None, "sessions": [session]}))
    (root / "seed-1" / "run.json").write_text('{"label": "a\\u001b[31m name", "sessions": null}')
    (root / "seed-1" / "failure.json").write_text("{}")
    runs = read_runs([root])
    assert runs[1].facts["label"] == "a\ufffd[31m name"
    assert runs[1].failure == "it failed for an unrecorded reason."
    assert write_report(runs, root / "report.html").is_file()


def test_it_is_an_error_if_no_run_can_be_read(root):
    for seed in range(2):
        (root / f"seed-{seed}" / "config.json").write_bytes(NOT_UTF8)
    with pytest.raises(
        UsageError,
        match=r"none of the runs can be read: .*seed-0/config\.json is not UTF-8: only .*\.$",
    ):
        find_runs([root])


def test_many_faults_are_shortened_at_the_top_and_listed_in_full_at_the_runs(tmp_path):
    for seed in range(9):
        run = write_run(tmp_path / "runs" / str(seed), seed=seed, rows=[0.0, 1.0, 2.0, 3.0, 4.0])
        for line in range(1, 6):
            damage(run, line, b"no JSON")
    runs = read_runs([tmp_path / "runs"])
    notes = fault_notes(runs, [])
    assert notes[0].endswith(
        "skipped line 1, which is not JSON, line 2, which is not JSON, line 3, which is not JSON, and 2 more lines; "
        "the other 0 rows were read."
    )
    assert len(notes) == 9
    assert len(shortened(notes)) == MOST_NOTES
    text = text_of(write_report(runs, tmp_path / "report.html").read_text())
    assert "4 more notes like these are under Every run." in text
    assert text.count("metrics.jsonl: skipped line 1") == 9 + MOST_NOTES - 1


def test_non_finite_numbers_are_refused_in_a_file_for_marl_eval(root):
    damage(root / "seed-0", 4, {"evaluation_return": math.nan})
    with pytest.raises(UsageError, match=r"return of .*seed-0 is NaN or infinite somewhere"):
        write_marl_eval(grouped(read_runs([root])), root.parent / "runs.json")
