"""Tables of a report: every number can be recomputed by hand from the runs' files."""

import json
import math

import pytest

from consmarl.reports import provenance
from consmarl.reports.achievements import bar_panels, sharing_rows
from consmarl.reports.finals import by_world, drawn_runs, final, final_values
from consmarl.reports.reference import landmarks_for, released_for
from consmarl.reports.runs import grouped, read_run, read_runs
from consmarl.reports.settings import setting_rows
from consmarl.reports.statistics import interval, paired_difference, probability_of_improvement
from consmarl.reports.tables import comparisons, final_table
from consmarl.reports.times import time_rows
from tests.reports.handmade import evaluated, write_run


@pytest.fixture
def write(tmp_path):
    """Return a function that writes the runs of a group, whose evaluations end at the given values, `{seed: last}`."""

    def write(method, last_of_seed, *, every_after=(0.0, 1.0), **rest):
        for seed, last in last_of_seed.items():
            name = f"{rest.get('env', 'pgm-3ag')}-{rest.get('label') or method}-{seed}"
            write_run(tmp_path / name, method=method, seed=seed, rows=[*every_after, last], **rest)

    return write


@pytest.fixture
def groups_of(tmp_path):
    def groups_of(world="pgm-3ag"):
        return by_world(grouped(read_runs([tmp_path])))[world]

    return groups_of


def test_a_finished_run_shows_its_result_and_an_unfinished_one_its_last_evaluation(tmp_path):
    finished = read_run(write_run(tmp_path / "a", rows=[0.0, 5.0], result={"return": 7.5}))
    unfinished = read_run(write_run(tmp_path / "b", rows=[0.0, 5.0], result=None))
    failed = read_run(write_run(tmp_path / "c", rows=[0.0, 5.0], failure="it broke."))
    just_begun = read_run(write_run(tmp_path / "d", rows=[], result=None))
    assert final(finished) == (7.5, True)
    assert final(unfinished) == (5.0, False)
    assert final(failed) is None
    assert final(just_begun) is None


def test_final_rows_have_the_statistics_of_their_seeds_and_the_best_comes_first(write, groups_of):
    write("iql", {0: 3.0, 1: 4.0, 2: 8.0})
    write("cons", {0: 9.0, 1: 11.0})
    table = final_table(groups_of())
    assert [row.label for row in table.rows] == ["CONS", "IQL"]
    assert table.rows[1].mean == interval([3.0, 4.0, 8.0])
    assert (table.rows[1].num_seeds, table.rows[1].num_runs) == (3, 3)
    # trapezoids over 0, 1, last at episodes 0, 1000, 2000
    assert table.rows[1].area.estimate == pytest.approx(sum((1 + (1 + last)) / 4 for last in (3, 4, 8)) / 3)
    assert not table.is_provisional


def test_the_level_to_reach_is_the_lowest_mean_and_seeds_that_miss_it_count_as_late(write, groups_of):
    write("iql", {0: 2.0, 1: 4.0})  # 3 on average
    write("cons", {0: 100.0, 1: 100.0, 2: 5.0})  # averages of three evaluations: 33.7, 33.7 and 2
    table = final_table(groups_of())
    assert table.level == 3.0
    assert table.rows[0].reach == (2000.0, 2, 3)
    assert table.rows[1].reach == (None, 0, 2)


def test_failed_runs_are_left_out_of_means_and_unfinished_ones_are_marked(write, groups_of):
    write("iql", {0: 2.0, 1: 4.0})
    write("iql", {2: 99.0}, failure="it broke.")
    write("iql", {3: 6.0}, result=None)
    (row,) = final_table(groups_of()).rows
    assert row.mean.estimate == 4.0
    assert (row.num_seeds, row.num_runs, row.is_provisional) == (3, 4, True)


def test_a_group_without_results_still_has_a_row(write, groups_of):
    write("iql", {0: 2.0}, failure="it broke.")
    table = final_table(groups_of())
    assert math.isnan(table.rows[0].mean.estimate)
    assert math.isnan(table.level)
    assert comparisons(groups_of()) == []


def test_curves_use_finished_runs_unless_there_are_none(write, groups_of):
    write("iql", {0: 2.0})
    write("iql", {1: 2.0}, result=None)
    write("cons", {0: 2.0, 1: 3.0}, result=None)
    write("cons", {2: 2.0}, failure="it broke.")
    drawn = {group.label: [run.seed for run in drawn_runs(group)] for group in groups_of()}
    assert drawn == {"IQL": [0], "CONS": [0, 1]}


def test_comparisons_are_paired_by_seed_and_name_the_higher_group_first(write, groups_of):
    write("iql", {0: 3.0, 1: 4.0, 2: 8.0})
    write("cons", {0: 9.0, 1: 11.0, 2: 7.0})
    (compared,) = comparisons(groups_of())
    assert (compared.left, compared.right) == ("CONS", "IQL")
    assert compared.gap == pytest.approx(4.0)
    assert compared.difference == paired_difference({0: 9.0, 1: 11.0, 2: 7.0}, {0: 3.0, 1: 4.0, 2: 8.0})
    assert compared.improvement == probability_of_improvement([9.0, 11.0, 7.0], [3.0, 4.0, 8.0])


def test_differences_are_not_paired_if_the_seeds_differ(write, groups_of):
    write("iql", {0: 3.0, 1: 4.0})
    write("cons", {0: 9.0, 2: 11.0})
    (compared,) = comparisons(groups_of())
    assert compared.difference is None
    assert compared.gap == pytest.approx(6.5)


@pytest.mark.parametrize(
    ("num_seeds", "lead", "is_established"),
    [(3, 10.0, False), (5, 10.0, True), (5, 0.0, False)],
    ids=["too few seeds", "a clear lead of five seeds", "no lead"],
)
def test_a_lead_is_established_only_if_it_is_clear_and_has_enough_seeds(
    write, groups_of, num_seeds, lead, is_established
):
    below = dict(enumerate([1.0, 2.0, 3.0, 4.0, 5.0][:num_seeds]))
    above = dict(enumerate([lead + each for each in (2.0, 1.0, 3.5, 5.0, 4.0)[:num_seeds]]))
    write("iql", below)
    write("cons", above)
    (compared,) = comparisons(groups_of())
    assert compared.is_established is is_established
    assert compared.verdict == f"{'' if is_established else 'not '}established with {num_seeds} seeds"


def test_nothing_is_established_by_unfinished_runs(write, groups_of):
    write("iql", dict.fromkeys(range(6), 1.0))
    write("cons", dict.fromkeys(range(6), 9.0), result=None)
    (compared,) = comparisons(groups_of())
    assert not compared.is_established
    assert "unfinished" in compared.verdict


def test_up_to_four_groups_are_compared_in_pairs_and_more_with_the_best(write, groups_of):
    for number, method in enumerate(("iql", "cons", "adhoc-td", "maven")):
        write(method, {0: float(number), 1: number + 1.0})
    assert len(comparisons(groups_of())) == 6
    write("seql", {0: 10.0, 1: 11.0})
    found = comparisons(groups_of())
    assert [each.left for each in found] == ["SEQL"] * 4


def test_released_results_are_shown_only_with_the_same_method_and_environment(write, groups_of):
    write("cons", {0: 1.0})
    write("cons", {0: 1.0}, label="CONS wo-N", share={"knowledge": "positive-only"})
    write("cons", {1: 1.0}, share={"temperature": 0.3})
    write("cons", {0: 1.0}, set=["num_agents=4"], label="larger team")
    found = {group.label: [recorded.estimate for recorded in released_for(group)] for group in groups_of()}
    assert sorted(found.values()) == [[], [], [14.1, 12.6]]
    assert found["CONS wo-N"] == []
    assert released_for(groups_of("pgm-3ag (num_agents=4)")[0]) == ()
    assert landmarks_for("pgm-3ag (num_agents=4)", set()) == []
    names = [landmark.name for landmark in landmarks_for("pgm-3ag", {"CONS"})]
    assert "random play" in names
    assert not any(name.startswith("CONS") for name in names)


def test_groups_with_the_same_name_are_numbered_and_known_methods_come_first(write, groups_of):
    write("iql", {0: 1.0}, label="mine", hidden_size=64)
    write("iql", {1: 1.0}, label="mine", hidden_size=32)
    write("cons", {0: 1.0})
    assert [group.label for group in groups_of()] == ["CONS", "mine", "mine (2)"]


def test_bars_are_means_over_seeds_or_shares_of_the_maximum(write, groups_of):
    counted = {"return": 1.0, "opened": 6.0, "red_opened": 3.0, "treasures_taken": 0.5}
    write("cons", {0: 1.0, 1: 2.0}, env="ft", result=counted)
    panels = {panel.name: panel for panel in bar_panels(groups_of("ft"))}
    assert list(panels) == ["red_opened", "treasures_taken"]  # a total is left out if its parts are there
    assert panels["red_opened"].bars[0].value == interval([3.0, 3.0])
    shares = {panel.name: panel for panel in bar_panels(groups_of("ft"), as_shares=True)}
    assert shares["red_opened"].bars[0].value.estimate == pytest.approx(3 / 6)
    assert shares["treasures_taken"].top == 1.0


def test_sharing_rows_show_the_budget_spent_by_methods_that_share(write, groups_of, tmp_path):
    write("iql", {0: 1.0})
    for seed, used in ((0, 100.0), (1, 300.0)):
        rows = evaluated(
            [0.0, 1.0], requests=4.0, answers=2.0, advised_share=0.25, requests_left=[900.0, 700.0], budget_used=used
        )
        write_run(tmp_path / f"cons-{seed}", method="cons", seed=seed, rows=rows)
    (row,) = sharing_rows(groups_of())
    assert row.label == "CONS"
    assert row.budget_used.estimate == 200.0
    assert row.budget_share == pytest.approx(200 / (200 + 800))
    assert (row.advised_share.estimate, row.requests.estimate, row.answers.estimate) == (0.25, 4.0, 2.0)


def test_rows_without_a_budget_leave_it_unknown(tmp_path, groups_of):
    write_run(tmp_path / "old", method="cons", rows=evaluated([0.0, 1.0], requests=4.0, answers=2.0))
    (row,) = sharing_rows(groups_of())
    assert math.isnan(row.budget_used.estimate)
    assert math.isnan(row.budget_share)


def test_every_run_has_a_row_with_its_state_and_duplicates_are_marked_repeated(write, tmp_path):
    write("iql", {0: 1.0})
    write("iql", {1: 1.0}, failure="it broke.")
    write_run(tmp_path / "again", method="iql", seed=0, rows=[0.0, 1.0], result=None, episodes=2000)
    runs = read_runs([tmp_path])
    rows = provenance.run_rows(runs, groups_of_runs(runs), tmp_path)
    assert [(row.seed, row.state, row.error) for row in rows] == [
        (0, "finished", None), (1, "failed", "it broke."), (0, "unfinished, repeated", None),
    ]  # fmt: skip
    assert [row.path for row in rows] == ["pgm-3ag-iql-0", "pgm-3ag-iql-1", "again"]
    assert {row.label for row in rows} == {"IQL"}


def groups_of_runs(runs):
    return [group for there in by_world(grouped(runs)).values() for group in there]


def test_all_settings_are_listed_and_those_that_differ_come_first(write, tmp_path):
    write("iql", {0: 1.0, 1: 1.0}, hidden_size=32, discount=0.99, explore={"share": 0.5}, by_default=["discount"])
    shared = {"share": {"temperature": 0.3}, "by_default": ["discount", "share.temperature"]}
    write("cons", {0: 1.0}, hidden_size=64, discount=0.99, **shared)
    rows = setting_rows(groups_of_runs(read_runs([tmp_path])))  # CONS and IQL
    named = {row.name: row for row in rows}
    differing = [row.name for row in rows if row.is_differing]
    assert differing == ["method", "hidden_size", "share.temperature", "explore.share"]
    assert [row.is_differing for row in rows] == sorted((row.is_differing for row in rows), reverse=True)
    assert [cell.value for cell in named["hidden_size"].cells] == ["64", "32"]
    assert named["share.temperature"].cells == [("0.3", True), ("–", False)]
    assert named["discount"].common == ("0.99", True)
    assert named["set"].common == ("none", False)
    assert not {"seed", "by_default"} & named.keys()


def test_settings_that_an_older_version_left_open_are_called_default(write, tmp_path):
    write("iql", {0: 1.0}, learning_rate=None, evaluate_every=100)
    write("iql", {1: 1.0}, learning_rate=None, evaluate_every=200)
    named = {row.name: row for row in setting_rows(groups_of_runs(read_runs([tmp_path])))}
    assert named["learning_rate"].common == ("default", False)
    assert named["evaluate_every"].common == ("100 or 200", False)  # such settings do not separate groups


def test_default_and_explicit_settings_with_the_same_value_form_one_group(write, groups_of):
    write("cons", {0: 1.0}, share={"temperature": 0.1}, by_default=["share.temperature"])
    write("cons", {1: 1.0}, share={"temperature": 0.1}, by_default=["weights"])
    write("cons", {2: 1.0}, label=None, share={"temperature": 0.3}, by_default=["weights"])
    assert {group.label: group.seeds for group in groups_of()} == {
        "CONS, temperature 0.1": (0, 1), "CONS, temperature 0.3": (2,),
    }  # fmt: skip
    assert [len(released_for(group)) for group in groups_of()] == [2, 0]  # one of them is CONS unchanged


def test_older_runs_with_unresolved_settings_form_a_separate_group(write, groups_of):
    write("cons", {0: 1.0}, learning_rate=None)
    write("cons", {1: 1.0}, learning_rate=0.0005, by_default=["learning_rate"])
    assert [group.label for group in groups_of()] == ["CONS", "CONS, learning_rate 0.0005"]


def test_times_are_listed_by_group_and_machine(write, groups_of, tmp_path):
    write("iql", {0: 1.0, 1: 1.0})  # 60 s in result.json, 2,000 episodes of 25 steps, rows of 1 s and 1,000 episodes
    write("cons", {0: 1.0}, result=None)  # its rows add up to 2 s
    facts = json.loads((tmp_path / "pgm-3ag-iql-1" / "run.json").read_text())
    facts["sessions"][0]["machine"]["processor"] = "Another processor"
    (tmp_path / "pgm-3ag-iql-1" / "run.json").write_text(json.dumps(facts))
    cons, first, second = time_rows(groups_of())
    assert (cons.label, cons.num_runs, cons.is_provisional, cons.seconds) == ("CONS", 1, True, (2.0, 2.0, 2.0))
    assert first.machine == "A processor · 2 cores · 24 GB · Linux 6.1 x86_64"
    assert second.machine.startswith("Another processor")
    assert (first.seconds.median, first.per_episode, first.typical) == (60.0, 60 / 2_000, 1 / 1_000)
    assert first.steps_per_second == 50_000 / 60


def test_runs_without_times_are_not_listed_among_the_times(tmp_path, groups_of):
    write_run(tmp_path / "a", rows=[{"episode": 100, "evaluation_return": 1.0}], result=None)
    assert time_rows(groups_of()) == []


def test_the_commits_that_runs_were_made_with_are_listed(write, tmp_path):
    write("iql", {0: 1.0, 1: 1.0})
    facts = json.loads((tmp_path / "pgm-3ag-iql-1" / "run.json").read_text())
    facts["sessions"][0]["git"] = {"commit": "f4d511f"}
    (tmp_path / "pgm-3ag-iql-1" / "run.json").write_text(json.dumps(facts))
    assert provenance.commits(read_runs([tmp_path])) == [("f4d511f", 1)]


def test_versions_machines_and_commands_are_listed_once_with_their_number_of_runs(write, tmp_path):
    write("iql", {0: 1.0, 1: 1.0})
    facts = json.loads((tmp_path / "pgm-3ag-iql-1" / "run.json").read_text())
    later = facts["sessions"][0] | {"started": "2026-01-03T00:00:00+00:00", "versions": {"consmarl": "0.2.0"}}
    facts["sessions"].append(later)
    (tmp_path / "pgm-3ag-iql-1" / "run.json").write_text(json.dumps(facts))
    runs = read_runs([tmp_path])
    assert [fact.num_runs for fact in provenance.versions(runs)] == [2, 1]
    assert [fact.num_runs for fact in provenance.machines(runs)] == [2]
    assert provenance.started(runs) == ["2026-01-02 03:04 UTC", "2026-01-03 00:00 UTC"]
    assert provenance.num_resumed(runs) == 1
    assert provenance.commands(runs) == [f"consmarl train --env pgm-3ag --method iql --seed {seed}" for seed in (0, 1)]


def test_final_values_leave_out_nan(write, groups_of):
    write("iql", {0: math.nan, 1: 2.0})
    assert final_values(groups_of()[0]) == {1: 2.0}
