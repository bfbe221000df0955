"""Pages of results show the tables of the runs that are recorded."""

import importlib
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TABLES = {"paper": "results.paper.tables", "sharing": "results.sharing.collect"}  # folder: where its tables come from


@pytest.fixture(autouse=True)
def _importable(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)


@pytest.mark.parametrize("folder", TABLES)
def test_pages_show_the_tables_of_the_recorded_runs(folder):
    from results.collecting import filled

    kept = ROOT / "results" / folder / "runs.json"
    by_name = importlib.import_module(TABLES[folder]).tables(json.loads(kept.read_text()) if kept.exists() else [])
    pages = sorted((ROOT / "results" / folder).glob("*.md"))
    assert any("<!-- table: " in page.read_text(encoding="utf-8") for page in pages)
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert filled(text, by_name) == text, f"{page.name}: run `python -m results.{folder}.collect`"


def a_run(variant, seed, heights, budget=None):
    """A recorded run of pgm-3ag whose evaluations have these returns, ten of each in a row."""
    evaluations = [(1_000 * number, height) for number, height in enumerate(h for h in heights for _ in range(10))]
    run = {"world": "pgm-3ag", "variant": variant, "seed": seed, "episodes": 100_000, "return": heights[-1]}
    run |= {"gold_mined": 0.5, "agent_returns": [(episode, [height, -2.0, -2.0]) for episode, height in evaluations]}
    return (
        run
        | {"evaluations": evaluations}
        | ({"budget_used": [(episode, budget) for episode, _ in evaluations]} if budget else {})
    )


def test_tables_compare_runs_by_seed_and_name_what_is_missing():
    from results.paper.tables import tables

    runs = [a_run("iql", seed, [0] * 5 + [4] * 5) for seed in (10, 11, 12)]
    runs += [a_run("adhoc-td", seed, [0] * 10, budget=1_000) for seed in (10, 11, 12)]
    runs += [a_run("cons", seed, [0, 0, *[seed] * 8], budget=250) for seed in (10, 11, 12)]
    found = tables(runs)
    # gaps of 6, 7 and 8: Student's t for two degrees of freedom is 4.303, and 4.303 / √3 is 2.5
    assert "| CONS, paper | IQL | 3 | +7.0 [+4.5, +9.5] | ahead |" in found["comparisons pgm-3ag"]
    # the level 4 is reached by the first evaluation of 10 or more: with the two zeros before it, 10 / 3 is too low
    assert "| `pgm-3ag` | paper | IQL | 4.0 | 0.21, 0.21, 0.20 |" in found["halves"]
    assert "| `pgm-3ag` | paper | 250 | 1,000 | 25.0 % | 33.5 % |" in found["requests"]
    assert "- `pgm-3ag`, CONS, paper: seeds 13, 14\n" in found["missing"]
    assert re.search(
        r"\| `pgm-3ag` \| paper \| CONS \| 3 \| 100,000 \| \d\.\d \| 11\.0 \[10\.0, 12\.0\] \|", found["compute"]
    )
    assert "| `pgm-3ag` | recommended | CONS | 10 | 8,000 |" in found["compute"]


def test_planned_runs_are_collected_as_what_is_missing():
    from results.paper.run import PARTS, planned, variant_of
    from results.paper.tables import missing

    runs = [run for parts in PARTS.values() for part in parts for run in planned(part)]
    assert len({run.name for run in runs}) == len(runs)
    found = [
        {
            "world": run.config.env,
            "variant": variant_of(Path(run.name, "result.json").parts),
            "seed": run.config.seed,
        }
        for run in runs
    ]
    assert missing(found) == "Nothing.\n"
    assert missing(found[1:]) == "- `pgm-3ag`, IQL: seeds 10\n"


def test_runs_of_full_length_can_be_chosen_by_variant_and_seed():
    from results.paper.run import PARTS, planned

    [part] = PARTS["a"]
    assert [run.name for run in planned(part, ["cons", "iql"], [12])] == ["pgm-3ag/iql/seed-12", "pgm-3ag/cons/seed-12"]
    assert planned(part, ["maven"]) == []


def test_three_seeds_decide_only_what_is_far_beyond_their_spread():
    from results.paper.tables import decided

    # all on one side of zero: without any difference, a quarter of all samples of three are
    assert decided([0.1, 1.0, 3.0]) == "no"
    assert decided([5.1, 5.0, 6.0]) == "ahead"
    assert decided([-5.1, -5.0, -6.0]) == "behind"
    assert decided([5.0, 5.0]) == "no"


def test_miners_are_agents_that_earn_more_than_stones_give():
    from results.paper.miners import miners

    group = [a_run("iql", 10, [-2, -2, 3, 3]), a_run("iql", 11, [-2, 3, -2, -2])]
    early = a_run("iql", 12, [-2, -2, -2])
    early["agent_returns"][5][1][1] = 9.0  # lucky once, which does not count
    told = miners("pgm-3ag", {"iql": [*group, early]})
    assert "| IQL | 10, 11, 12 | 1, 0, 0 of 3 | 0.11 | 20,000, 10,000, never | – |" in told


def test_requests_are_counted_until_somebody_mines():
    from results.paper.miners import miners

    run = a_run("cons", 10, [-2, 3])
    run["budget_used"] = [(episode, episode / 100) for episode, _ in run["evaluations"]]
    assert "| 10,000 | 100 |" in miners("pgm-3ag", {"cons": [run]})


def test_boxes_are_shares_of_what_there_is():
    from results.paper.boxes import found_boxes

    counters = {"yellow_opened": 1.5, "red_opened": 1.5, "coins_taken": 0.3, "treasures_taken": 0.5}
    assert "| IQL | 2 | 50.0 % | 25.0 % | 10.0 % | 50.0 % |" in found_boxes({"iql": [counters, counters]})


def test_boxes_pay_since_the_first_of_three_evaluations_above_what_opening_none_gives():
    from results.paper.boxes import paying

    early, late = a_run("cons", 10, [-2, 1], budget=300), a_run("cons", 11, [-2, -2])
    early["evaluations"][4] = (4_000, 3)  # lucky once, which does not count
    early["budget_used"] = [(episode, episode / 100) for episode, _ in early["evaluations"]]
    late["budget_used"] = [(episode, 7) for episode, _ in late["evaluations"]]
    assert "| CONS, paper | 10, 11 | 10,000, never | 100, 7 |" in paying({"cons": [early, late]})


def test_variants_without_a_common_seed_are_not_compared():
    from results.paper.tables import NOT_RUN, compared

    by_variant = {"iql": [a_run("iql", 10, [1])], "cons": [a_run("cons", 11, [1])]}
    assert compared(by_variant, [("cons", "iql"), ("cons", "adhoc-td")]) == NOT_RUN


def test_declines_are_falls_below_an_earlier_height_in_the_middle_of_a_run():
    from results.paper.declines import decline

    found = decline(a_run("iql", 10, [0, 6, 6, 1, 4, 8, 8, 8, 2]))
    assert (found.height, found.depth, found.end) == pytest.approx(
        (6, 5, 2)
    )  # the fall at the end, by 6, is not in the middle
    assert 30_000 < found.episode < 40_000
    assert decline(a_run("iql", 10, [1, 2, 3, 4, 5])).depth == 0


def test_a_single_unlucky_evaluation_is_hardly_a_decline():
    from results.paper.declines import decline

    run = a_run("iql", 10, [5, 5, 5, 5])
    run["evaluations"][20] = (20_000, 0)
    assert decline(run).depth == pytest.approx(1)
