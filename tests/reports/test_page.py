"""The report's page: one file that shows its runs correctly and lets no markup in."""

import base64
import dataclasses
import html
import json
import math
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from PIL import Image

from consmarl.errors import UsageError
from consmarl.reports.finals import by_world
from consmarl.reports.findings import cautions, study_note, summary, title_of
from consmarl.reports.page import safe_json, write_report
from consmarl.reports.runs import grouped, read_runs
from consmarl.reports.statistics import Interval
from consmarl.reports.words import bounds, decimals_for, duration, listed, number, plural, sentence, with_bounds
from tests.reports.handmade import evaluated, write_run

STUDY = {
    "name": "ablation", "title": "Ablation on PGM-3ag", "figure": 9, "plot": "curve", "metric": "return",
    "worlds": ["pgm-3ag"], "groups": ["CONS", "IQL", "CONS wo-N"], "episodes": 2000, "seeds": 5, "scale": 0.1,
    "claim": "CONS is best.", "command": "consmarl sweep --study ablation --scale 0.1",
}  # fmt: skip


@pytest.fixture
def root(tmp_path):
    """Two methods with three seeds each."""
    shared = dict(requests=4.0, answers=2.0, advised_share=0.25, requests_left=[10.0, 20.0], budget_used=85.0)
    for method, base in (("iql", 1.0), ("cons", 4.0)):
        for seed in range(3):
            rows = evaluated([0.0, base, base + seed], **(shared if method == "cons" else {}))
            write_run(tmp_path / "runs" / f"{method}-{seed}", method=method, seed=seed, rows=rows)
    return tmp_path / "runs"


def page_of(root, **options):
    return write_report(read_runs([root]), root.parent / "report.html", **options).read_text(encoding="utf-8")


def text_of(page):
    without = re.sub(r"<(script|style).*?</\1>", "", page, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", without)).split())


def sections_of(page):
    return re.findall(r'<section id="(\w+)"', page)


class Elements(HTMLParser):
    """Collects every start tag with its attributes, and checks that tags are closed in order."""

    VOID = frozenset({"meta", "link", "img", "source", "br", "input"})

    def __init__(self, page):
        super().__init__()
        self.found, self.open = [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_well_formed_and_loads_nothing_from_outside(root):
    elements = Elements(page_of(root))
    assert elements.open == []
    for _, attributes in elements.found:
        for name in ("src", "href", "srcset", "action", "data"):
            assert attributes.get(name, "#").startswith(("#", "data:"))
    policy = [a["content"] for _, a in elements.found if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy[0].startswith("default-src 'none'")


def test_ids_are_unique_and_links_and_labels_point_to_existing_ones(root):
    elements = Elements(page_of(root)).found
    ids = [attributes["id"] for _, attributes in elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    targets = [a["href"].removeprefix("#") for tag, a in elements if tag == "a" and "download" not in a]
    targets += [a["aria-labelledby"] for _, a in elements if "aria-labelledby" in a]
    assert targets
    assert set(targets) <= set(ids)


def test_sections_are_in_order_and_empty_ones_are_left_out(root):
    found = sections_of(page_of(root))
    assert found == ["curves", "finals", "comparisons", "sharing", "achieved", "times", "settings", "runs", "made"]
    only_iql = [run for run in read_runs([root]) if run.method == "IQL"]
    page = write_report(only_iql, root.parent / "one.html").read_text(encoding="utf-8")
    assert sections_of(page) == ["curves", "finals", "achieved", "times", "settings", "runs", "made"]


def test_the_same_runs_give_the_same_page(root):
    assert page_of(root) == page_of(root)


def test_the_summary_names_the_leader_and_says_what_is_not_established(root):
    groups = by_world(grouped(read_runs([root])))
    assert summary(read_runs([root]), groups) == [
        "2 methods on pgm-3ag, 6 runs, 3 seeds each.",
        "Highest final return: CONS 5.00 [4.00, 6.00]; its lead over IQL is not established with 3 seeds.",
    ]
    assert title_of(groups) == "CONS and IQL on pgm-3ag"
    lengthy = [dataclasses.replace(group, label=30 * group.label) for group in groups["pgm-3ag"]]
    assert title_of({"pgm-3ag": lengthy}) == "Results on pgm-3ag"
    assert "3 seeds: intervals are rough" in text_of(page_of(root))


def test_tables_show_the_statistics(root):
    text = text_of(page_of(root))
    # CONS ends at 4, 5, 6 and IQL at 1, 2, 3; the average height of CONS's mean curve 0, 4, 5 is (2 + 4.5) / 2
    assert "CONS 3 5.00 [4.00, 6.00] 5.00 [4.00, 6.00] 3.25 [3.00, 3.50]" in text
    assert "CONS IQL +3.00 [+3.00, +3.00] 1.00 [1.00, 1.00] not established with 3 seeds" in text
    assert "14.1 ± 0.6 12.6 ± 0.5" in text
    assert "CONS 85 [85, 85] 85 % 25.0 % 4.00 [4.00, 4.00] 2.00 [2.00, 2.00]" in text
    assert "Gold mined CONS 0.500 [0.400, 0.600]" in text


def test_cautions_name_failed_unfinished_and_repeated_runs_and_different_lengths(root):
    write_run(root / "failed", method="iql", seed=3, rows=[0.0, 1.0, 2.0], failure="it broke.")
    write_run(root / "unfinished", method="iql", seed=4, rows=[0.0, 1.0], result=None, episodes=2000)
    write_run(root / "again", method="iql", seed=0, rows=[0.0, 1.0], result=None, episodes=2000)
    write_run(root / "longer", method="cons", seed=0, rows=[0.0, 1.0, 2.0, 3.0])
    runs = read_runs([root])
    found = " ".join(cautions(runs, by_world(grouped(runs))))
    assert "1 run failed and is in no mean or curve." in found
    assert "2 runs are unfinished" in found
    assert "1 run repeated the seed and settings of another" in found
    assert "Runs on pgm-3ag differ in length: 2,000 and 3,000 episodes." in found
    assert "CONS, episodes 3000 with one seed: nothing can be said about differences." in found


def test_failed_and_unfinished_runs_are_on_the_page(root):
    write_run(root / "failed", method="iql", seed=3, rows=[], failure="the loss is not finite.")
    write_run(root / "unfinished", method="iql", seed=4, rows=[0.0, 7.5], result=None, episodes=2000)
    text = text_of(page_of(root))
    assert "failed the loss is not finite." in text
    assert "7.50 †" in text


@pytest.mark.parametrize("rows", [[], [{"episode": 0}], [0.0]], ids=["no rows", "an empty row", "one evaluation"])
def test_a_run_that_has_just_started_can_be_reported(tmp_path, rows):
    write_run(tmp_path / "runs" / "a", rows=rows, result=None)
    assert "1 run is unfinished" in text_of(page_of(tmp_path / "runs"))


def test_a_report_of_failed_runs_only_is_written(tmp_path):
    write_run(tmp_path / "runs" / "a", rows=[0.0, 1.0], failure="it broke.")
    text = text_of(page_of(tmp_path / "runs"))
    assert "it broke." in text
    assert "No run has rows of metrics yet." in text


def test_unknown_environments_and_non_numeric_metrics_can_be_reported(tmp_path):
    rows = evaluated([0.0, 1.0, math.nan], counter="counted", loss=math.nan, of_each=[1, 2], name="x", flag=None)
    write_run(tmp_path / "runs" / "a", env="pettingzoo:mpe2.simple_spread_v3", rows=rows)
    page = page_of(tmp_path / "runs")
    json.loads(data_of(page), parse_constant=pytest.fail)
    assert "pettingzoo:mpe2.simple_spread_v3" in text_of(page)


def data_of(page):
    return re.search(r'<script type="application/json" id="data">(.*?)</script>', page, flags=re.DOTALL).group(1)


NASTY = "</script><img src=x onerror=alert(1)>\"'&<!--"


def test_names_paths_errors_and_commands_are_escaped(tmp_path):
    directory = tmp_path / "runs" / "<b>&\"'"
    write_run(directory / "a", label=NASTY, rows=[0.0, 1.0], env=f"{NASTY}world", hidden=NASTY)
    write_run(directory / "b", label=NASTY, seed=1, rows=[0.0, 1.0], env=f"{NASTY}world", hidden=NASTY, failure=NASTY)
    study = STUDY | {"claim": NASTY, "command": NASTY, "name": NASTY, "figure": None}
    page = page_of(tmp_path / "runs", title=NASTY, study=study)
    elements = Elements(page)
    assert elements.open == []
    assert not any(tag == "img" or tag == "b" or "onerror" in attributes for tag, attributes in elements.found)
    assert [tag for tag, _ in elements.found].count("script") == 2
    assert json.loads(data_of(page))["curves-0"]["labels"] == [NASTY]
    assert NASTY in html.unescape(page)


def test_json_in_the_page_cannot_end_its_element():
    nasty = {"a": NASTY, "b": "\u2028"}
    assert not set("<>&\u2028") & set(safe_json(nasty))
    assert json.loads(safe_json(nasty)) == nasty


def test_a_study_shows_the_papers_claim_next_to_the_observations(root):
    text = text_of(page_of(root, study=STUDY))
    assert text.startswith("Ablation on PGM-3ag consmarl · figure 9 of the paper")
    assert "The paper says CONS is best." in text
    assert "Observed here, shortened to 10 % of the paper's episodes" in text
    assert "Return (training) at episode 2,000: CONS 4.00, IQL 1.00." in text  # the means of 3, 4, 5 and 0, 1, 2
    assert "Not run yet: CONS wo-N." in text
    assert STUDY["command"] in text


def test_a_studys_metric_is_the_first_curve_on_the_page(root):
    data = json.loads(data_of(page_of(root, study=STUDY)))
    assert (data["curves-0"]["charts"][0]["title"], data["curves-0"]["charts"][0]["family"]) == ("Return", "Training")
    data = json.loads(data_of(page_of(root)))
    assert data["curves-0"]["charts"][0]["family"] == "Greedy evaluation"


@pytest.mark.parametrize(("plot", "section"), [("budget", "sharing"), ("items", "achieved"), ("curve", "curves")])
def test_the_section_for_a_studys_figure_comes_first(root, plot, section):
    page = page_of(root, study=STUDY | {"plot": plot, "metric": "budget_used" if plot == "budget" else "return"})
    assert sections_of(page)[0] == section
    assert len(sections_of(page)) == 9


def test_items_are_reported_as_shares(tmp_path):
    counted = {"return": 1.0, "red_opened": 3.0, "treasures_taken": 0.25}
    write_run(tmp_path / "runs" / "a", env="ft", method="cons", rows=[0.0, 1.0], result=counted)
    study = STUDY | {"plot": "items", "worlds": ["ft"]}
    text = text_of(page_of(tmp_path / "runs", study=study))
    assert "Red boxes opened share of the maximum CONS 50 %" in text
    assert study_note(study, by_world(grouped(read_runs([tmp_path / "runs"])))).seen == [
        "Treasure taken: CONS 25 % of the evaluated episodes."
    ]


def test_the_weights_study_needs_no_runs(tmp_path):
    study = STUDY | {"plot": "weights", "figure": 10, "title": "h(x)"}
    page = write_report([], tmp_path / "report.html", study=study).read_text(encoding="utf-8")
    assert sections_of(page) == ["weights", "made"]
    assert "a = −0.5" in text_of(page)
    assert "Not run yet" not in page
    assert Elements(page).open == []


def gif(path, colour, num_frames=3):
    frames = [Image.new("RGB", (8, 6), (colour, 60 * number, 0)) for number in range(num_frames)]
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=100, loop=0)
    return base64.b64encode(Path(path).read_bytes()).decode()


def test_each_group_shows_the_policy_of_its_median_run_or_the_nearest_with_a_gif(root):
    assert "policies" not in sections_of(page_of(root))
    middle, best = gif(root / "cons-1" / "policy.gif", 10), gif(root / "cons-2" / "policy.gif", 20)
    page = page_of(root)
    assert middle in page
    assert best not in page
    assert "seed 1, return 5.00, the median of 3" in text_of(page)
    (root / "cons-1" / "policy.gif").unlink()
    page = page_of(root)
    assert best in page
    assert "seed 2, return 6.00" in text_of(page)
    assert "the median of 3" not in page


def test_readers_who_prefer_no_motion_get_the_first_frame(root):
    gif(root / "cons-1" / "policy.gif", 10)
    found = Elements(page_of(root)).found
    (source,) = [attributes for tag, attributes in found if tag == "source"]
    assert source["media"] == "(prefers-reduced-motion: reduce)"
    assert source["srcset"].startswith("data:image/png;base64,")


def test_an_invalid_picture_is_refused(root):
    (root / "cons-1" / "policy.gif").write_text("no picture")
    with pytest.raises(UsageError, match=r"policy\.gif is not a picture"):
        page_of(root)


def test_missing_runs_and_an_unwritable_path_are_refused(root, tmp_path):
    with pytest.raises(UsageError, match="no runs to report"):
        write_report([], tmp_path / "report.html")
    with pytest.raises(UsageError, match="is a directory"):
        write_report(read_runs([root]), tmp_path)


def test_folders_are_created_and_an_old_page_is_replaced(root, tmp_path):
    out = tmp_path / "new" / "report.html"
    assert write_report(read_runs([root]), out, title="First") == out
    write_report(read_runs([root]), out, title="Second")
    assert "<title>Second</title>" in out.read_text(encoding="utf-8")
    assert [path.name for path in out.parent.iterdir()] == ["report.html"]


def test_numbers_and_durations_are_formatted_for_readers():
    assert [number(value) for value in (-14.364, 1234.6, 0.1234, -0.0001)] == ["−14.4", "1,235", "0.123", "0.000"]
    assert number(None) == number(math.nan) == "–"
    assert number(2.0, 1, signed=True) == "+2.0"
    assert with_bounds(Interval(9.14, 6.2, 11.0)) == "9.1 [6.2, 11.0]"
    assert bounds(Interval(9.14, math.nan, math.nan)) == ""
    assert decimals_for([0.5, math.nan]) == 3
    assert [duration(seconds) for seconds in (5, 125, 7_500, 200_000, None)] == [
        "5 s", "2 min 5 s", "2 h 5 min", "2 d 7 h", "–",
    ]  # fmt: skip
    assert (plural(1, "run"), plural(2_000, "run")) == ("1 run", "2,000 runs")
    assert (listed([]), listed(["a"]), listed(["a", "b", "c"])) == ("", "a", "a, b and c")
    assert sentence("three seeds") == "Three seeds."


def test_pages_of_exchanges_are_linked_relative_to_the_report(tmp_path):
    shared = dict(requests=4.0, answers=2.0, advised_share=0.25, requests_left=[10.0, 20.0], budget_used=85.0)
    for seed in range(2):
        write_run(tmp_path / "some runs" / str(seed), method="cons", seed=seed, rows=evaluated([0.0, 1.0], **shared))
    (tmp_path / "some runs" / "1" / "exchange.html").write_text("a page")
    page = write_report(read_runs([tmp_path / "some runs"]), tmp_path / "here" / "report.html")
    links = re.findall(r'<a href="([^"#]*exchange[^"]*)">([^<]*)</a>', page.read_text())
    # in the section on sharing, and in the table of runs
    assert links == [
        ("../some%20runs/1/exchange.html", "CONS, seed 1"),
        ("../some%20runs/1/exchange.html", "who taught whom"),
    ]
