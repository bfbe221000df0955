"""The pages about the paper's claims show the tables of the runs that are recorded."""

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "results" / "paper"


@pytest.fixture(scope="module")
def by_name():
    """The tables of today, by name."""
    sys.path.insert(0, str(ROOT))
    try:
        from results.paper.tables import tables
    finally:
        sys.path.remove(str(ROOT))
    kept = FOLDER / "runs.json"
    return tables(json.loads(kept.read_text()) if kept.exists() else [])


@pytest.mark.parametrize("page", sorted(FOLDER.glob("*.md")), ids=lambda page: page.name)
def test_a_page_shows_the_tables_of_the_recorded_runs(by_name, page):
    from results.paper.collect import filled

    text = page.read_text(encoding="utf-8")
    assert filled(text, by_name) == text, "run `python -m results.paper.collect`"


def a_run(variant, seed, heights, budget=None):
    """A recorded run of pgm-3ag whose evaluations have these returns, ten of each in a row."""
    evaluations = [(1_000 * number, height) for number, height in enumerate(h for h in heights for _ in range(10))]
    run = {"world": "pgm-3ag", "variant": variant, "seed": seed, "episodes": 100_000, "return": heights[-1]}
    return run | {"evaluations": evaluations} | ({"budget_used": [(100_000, budget)]} if budget else {})


@pytest.mark.usefixtures("by_name")  # makes the folder importable
def test_tables_compare_runs_by_seed_and_name_what_is_missing():
    from results.paper.tables import tables

    runs = [a_run("iql", seed, [0] * 5 + [4] * 5) for seed in (10, 11, 12)]
    runs += [a_run("adhoc-td", seed, [0] * 10, budget=1_000) for seed in (10, 11, 12)]
    runs += [a_run("cons", seed, [0, 0, *[seed] * 8], budget=250) for seed in (10, 11, 12)]
    found = tables(runs)
    assert "| CONS, paper | IQL | 3 | +7.0 [+6.0, +8.0] | 1.00 [1.00, 1.00] |" in found["comparisons pgm-3ag"]
    # the level 4 is reached by the first evaluation of 10 or more: with the two zeros before it, 10 / 3 is too low
    assert "| `pgm-3ag` | paper | IQL | 4.0 | 0.21, 0.21, 0.20 |" in found["halves"]
    assert "| `pgm-3ag` | paper | 250 | 1,000 | 25.0 % | 33.5 % |" in found["requests"]
    assert "- `pgm-3ag`, CONS, paper: seeds 13, 14\n" in found["missing"]
