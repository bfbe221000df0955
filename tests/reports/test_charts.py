"""Charts show exactly the statistics, with readable labels."""

import json
import math
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consmarl.reports.across import Across
from consmarl.reports.axes import episode_axis, spread, tick_label, time_axis, value_axis
from consmarl.reports.charts import area_path, decimals_of_range, end_label, figure, line_path, svg
from consmarl.reports.curves import MOST_POINTS, Points, every_so_many, lines_of, points_for_others, thinned
from consmarl.reports.finals import by_world, scalar_curve
from consmarl.reports.metrics import metrics_of
from consmarl.reports.older_runs import OF_ANY_WORLD
from consmarl.reports.payloads import payload, rounded
from consmarl.reports.runs import grouped, read_runs
from consmarl.reports.statistics import band, interquartile_mean, on_common_episodes
from consmarl.reports.themes import ON_DARK, ON_LIGHT, contrast, styles_of
from consmarl.reports.weights import weights_figure
from consmarl.reports.words import short_count
from tests.reports.handmade import evaluated, write_run

SVG = "{http://www.w3.org/2000/svg}"
numbers = st.floats(-1e6, 1e6)


@pytest.fixture
def groups(tmp_path):
    for method, base in (("iql", 1.0), ("cons", 3.0)):
        for seed in range(4):  # with fewer, the interquartile mean is the mean
            write_run(
                tmp_path / f"{method}-{seed}", method=method, seed=seed, rows=[0.0, base + seed, base * (seed + 2)]
            )
    return by_world(grouped(read_runs([tmp_path])))["pgm-3ag"]


def drawn(groups, name="evaluation_return"):
    found = figure("f", [(group.label, place) for place, group in enumerate(groups)],
                   [(OF_ANY_WORLD[name], lines_of(groups, name))], "on pgm-3ag")  # fmt: skip
    assert found is not None
    return found


def test_a_curve_shows_the_mean_and_band_of_its_groups_runs(groups):
    line = lines_of(groups, "evaluation_return")[0]
    episodes, values = on_common_episodes([run.curve("evaluation_return") for run in groups[0].runs])
    np.testing.assert_array_equal(line.episodes, episodes)
    for found, expected in ((line.bands["mean"], band(values)), (line.bands["iqm"], band(values, interquartile_mean))):
        np.testing.assert_array_equal(found, expected)


def test_the_fast_curve_equals_the_slow_one(groups):
    run = groups[0].runs[0]
    for name in ("evaluation_return", "return", "nothing of the kind"):
        for fast, slow in zip(scalar_curve(run, name), run.curve(name), strict=True):
            np.testing.assert_array_equal(fast, slow)
            assert fast.dtype == slow.dtype


def test_long_curves_are_thinned_evenly_and_keep_both_ends():
    chosen = thinned(10_001, MOST_POINTS)
    assert len(chosen) == MOST_POINTS
    assert (chosen[0], chosen[-1]) == (0, 10_000)
    assert set(np.diff(chosen)) <= {25, 26}
    np.testing.assert_array_equal(thinned(30, MOST_POINTS), np.arange(30))


def test_curves_not_shown_at_first_get_fewer_points_the_more_runs_there_are():
    assert points_for_others(9, 15) == Points()
    assert points_for_others(100, 15).line < points_for_others(50, 15).line < MOST_POINTS
    assert points_for_others(1_000, 15).seed < points_for_others(100, 15).seed


def test_a_chart_is_well_formed_and_shows_each_group_once(groups):
    root = ElementTree.fromstring(
        str(svg(drawn(groups))).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    )
    curves = root.findall(f".//{SVG}g[@data-group]")
    assert [each.get("data-group") for each in curves] == ["0", "1"]
    for curve in curves:
        assert all(path.get("d") for path in curve.findall(f"{SVG}path"))
    ends = [each.text for each in root.findall(f".//{SVG}text[@data-group]")]
    assert ends == ["CONS", "IQL"]


def test_points_are_drawn_on_the_scale_of_the_ticks(groups):
    chart = drawn(groups)
    root = ElementTree.fromstring(str(svg(chart)).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1))
    ticks = {float(each.text.replace("−", "-")): 1 - float(each.get("y").rstrip("%")) / 100
             for each in root.findall(f".//{SVG}text[@class='y']")}  # fmt: skip
    (low, at_low), (high, at_high) = min(ticks.items()), max(ticks.items())
    path = root.find(f".//{SVG}g[@data-group='0']/{SVG}path[@class='line']").get("d")
    points = [tuple(map(float, pair.split(","))) for pair in path.removeprefix("M").split()]
    line = chart.charts[0].lines[0]
    for (across, down), episode, value in zip(points, line.episodes, line.bands["mean"].estimate, strict=True):
        assert across == pytest.approx(1000 * episode / 2000, abs=0.06)
        share = at_low + (value - low) / (high - low) * (at_high - at_low)
        assert down == pytest.approx(1000 * (1 - share), abs=0.2)


def test_a_charts_description_states_its_last_values(groups):
    says = drawn(groups).charts[0].views["mean"].says
    line = lines_of(groups, "evaluation_return")[0]
    assert says.startswith("Return (greedy evaluation) on pgm-3ag, mean over seeds.")
    assert f"CONS {line.bands['mean'].estimate[-1]:.2f} [" in says
    assert "at episode 2,000" in says


def test_scripts_get_the_statistics_rounded_to_the_decimals_shown(groups):
    chart = drawn(groups)
    data = json.loads(json.dumps(payload(chart), allow_nan=False))
    found = data["charts"][0]
    for series, line in zip(found["series"], chart.charts[0].lines, strict=True):
        assert data["places"][series["x"]["episodes"]] == line.episodes.tolist()
        for name, expected in line.bands.items():
            for shown, exact in zip(series["bands"][name], expected, strict=True):
                assert shown == [round(value, found["decimals"]) for value in exact.tolist()]
    # the same for both groups: evaluations after 0, 1,000 and 2,000 episodes of 25 steps, one second per row
    assert data["places"] == [[0, 1_000, 2_000], [0, 25_000, 50_000], [0.0, 1.0, 2.0]]


def test_one_seed_has_a_line_and_no_band(tmp_path):
    write_run(tmp_path / "a", rows=[0.0, 1.0, 2.0])
    chart = drawn(by_world(grouped(read_runs([tmp_path])))["pgm-3ag"])
    assert payload(chart)["charts"][0]["series"][0]["bands"]["mean"][1:] == [None, None]
    assert 'class="band" d=""' in svg(chart)


def test_nan_and_infinite_values_leave_gaps_in_a_curve(tmp_path):
    rows = evaluated([0.0, 1.0, 2.0, 3.0, 4.0])
    for row, loss in zip(rows, [1.0, math.nan, 2.0, math.inf, 3.0], strict=True):
        row["loss"] = loss
    write_run(tmp_path / "a", rows=rows)
    chart = drawn(by_world(grouped(read_runs([tmp_path])))["pgm-3ag"], "loss")
    assert payload(chart)["charts"][0]["series"][0]["bands"]["mean"][0] == [1.0, None, 2.0, None, 3.0]
    assert svg(chart).count("h0") == 3  # each point stands alone


def test_paths_are_broken_at_gaps():
    assert line_path([0, 0.5, 1], [0, 1, 0.5]) == "M0,1000 500,0 1000,500"
    assert line_path([0, 0.25, 0.5, 1], [0, 1, math.nan, 1]) == "M0,1000 250,0M1000,0h0"
    assert area_path([0, 1], [0, 0], [1, 0.5]) == "M0,0 1000,500 1000,1000 0,1000Z"
    assert area_path([0, 1], [math.nan] * 2, [math.nan] * 2) == ""


@given(st.lists(numbers, min_size=1, max_size=20))
def test_an_axis_contains_all_values_and_all_ticks(values):
    axis = value_axis(values)
    assert axis.low <= min(values) <= max(values) <= axis.high
    assert axis.ticks
    slack = 1e-6 * (axis.high - axis.low)
    assert all(axis.low - slack <= value <= axis.high + slack for value, _ in axis.ticks)
    assert len({label for _, label in axis.ticks}) == len(axis.ticks) <= 9


def test_ticks_are_round_numbers_with_a_true_minus_sign():
    assert [label for _, label in value_axis([-14.0, 12.0]).ticks] == ["−15", "−10", "−5", "0", "5", "10"]
    assert [label for _, label in value_axis([0.0, 50_000.0]).ticks] == ["0", "10k", "20k", "30k", "40k", "50k"]
    assert [label for _, label in episode_axis(40_000, short_count).ticks] == ["0", "10k", "20k", "30k", "40k"]
    assert tick_label(0.25, 0.25) == "0.25"
    assert tick_label(2_500, 2_500) == "2.5k"


@given(st.lists(st.floats(0, 1), max_size=8))
def test_labels_keep_their_distance_and_order_and_stay_inside(places):
    moved = spread(places, 0.1)
    assert sorted(moved) == [moved[index] for index in sorted(range(len(places)), key=lambda index: places[index])]
    assert all(-1e-9 <= each <= 1 + 1e-9 for each in moved)
    assert all(after - before >= 0.1 - 1e-9 for before, after in zip(sorted(moved), sorted(moved)[1:], strict=False))


def test_only_overlapping_labels_move_and_as_little_as_possible():
    assert spread([0.9, 0.1, 0.5], 0.1) == [0.9, 0.1, 0.5]
    assert spread([0.5, 0.5], 0.1) == pytest.approx([0.45, 0.55])


def test_decimals_resolve_a_five_hundredth_of_the_range():
    assert decimals_of_range(np.array([-14.0, 12.0])) == 2
    assert decimals_of_range(np.array([0.0, 50_000.0])) == 0
    assert decimals_of_range(np.array([math.nan])) == 0
    assert rounded(np.array([1.26, math.nan, -0.01]), 1) == [1.3, None, 0.0]
    assert all(isinstance(each, int) for each in rounded(np.array([2.7, 3.0]), 0))


def test_lines_are_labelled_unless_there_are_many_or_cut_labels_look_alike(groups):
    assert drawn(groups).has_end_labels
    long = ["CONS, exploration epsilon-greedy", "CONS, exploration epsilon-squared"]
    for labels in (long, [str(number) for number in range(9)]):
        cut = drawn(groups)._replace(labels=labels)
        assert not cut.has_end_labels
        assert '<g class="ends" aria-hidden="true"></g>' in svg(cut)


def test_a_long_end_label_is_cut():
    assert end_label("CONS") == "CONS"
    assert end_label("CONS, exploration epsilon-z-greedy") == "CONS, exploration eps…"


def test_metrics_are_ordered_by_family_with_returns_first_and_lists_left_out(tmp_path):
    rows = evaluated([0.0, 1.0], loss=1.0, requests=2.0, agent_returns=[1.0, 2.0], gold_mined=1.0, something_new=1.0)
    write_run(tmp_path / "a", rows=rows)
    metrics = metrics_of(read_runs([tmp_path]))
    assert [each.name for each in metrics] == [
        "evaluation_return", "evaluation_gold_mined", "return", "gold_mined", "something_new", "loss", "epsilon",
        "requests",
    ]  # fmt: skip
    assert metrics[4].title == "Something new"


@pytest.mark.parametrize("num_labels", [1, 7, 20])
def test_groups_have_distinct_styles_with_enough_contrast_in_light_and_dark(num_labels):
    styles = styles_of([f"variant {number}" for number in range(num_labels)])
    for style in styles:
        assert contrast(style.light, ON_LIGHT) >= 3.0
        assert contrast(style.dark, ON_DARK) >= 4.5
    assert len({(style.light, style.dash) for style in styles}) == num_labels


def test_contrast_follows_wcag():
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)  # as in any contrast checker


def test_the_weight_of_negative_knowledge_follows_equation_8():
    chart = weights_figure("weights").charts[0]
    for line, shape in zip(chart.lines, (0.0, 0.3, -0.5), strict=True):
        assert (line.episodes[0], line.episodes[-1]) == (5_000, 80_000)
        expected = 1 / ((1 - shape) / 5_000 * line.episodes + shape)
        np.testing.assert_allclose(line.bands["value"].estimate, expected, rtol=1e-6)
    assert re.search(r"a = −0\.5", chart.views["value"].says)


def test_seeds_have_their_own_lines_if_there_are_several(groups, tmp_path):
    line = lines_of(groups, "evaluation_return")[1]
    assert line.seeds.seeds == (0, 1, 2, 3)
    assert line.seeds.every == 1
    assert line.seeds.values.tolist() == [[0.0, 1.0 + seed, seed + 2.0] for seed in range(4)]
    write_run(tmp_path / "alone", method="maven", rows=[0.0, 1.0])
    alone = by_world(grouped(read_runs([tmp_path / "alone"])))["pgm-3ag"]
    assert lines_of(alone, "evaluation_return")[0].seeds is None


def test_the_axis_of_a_chart_with_seeds_contains_all_seeds(groups):
    view = drawn(groups).charts[0].views["mean"]
    lines = lines_of(groups, "evaluation_return")
    highest = max(line.seeds.values.max() for line in lines)
    assert view.frame.y.high < highest <= view.with_seeds.y.high  # the interval does not reach the best seed


def test_lines_of_seeds_keep_every_nth_point_and_the_last(groups):
    assert every_so_many(10, 4).tolist() == [0, 4, 8, 9]
    assert every_so_many(9, 4).tolist() == [0, 4, 8]
    (line,) = lines_of(groups[:1], "evaluation_return", Points(3, 2))
    assert line.seeds.every == 2
    assert line.seeds.values.shape == (4, 2)


def test_over_steps_and_time_points_are_at_the_average_of_their_seeds(tmp_path):
    for seed, seconds in ((0, 2.0), (1, 4.0)):
        rows = evaluated([0.0, 1.0, 2.0], steps=10 + seed)
        for row in rows[1:]:
            row["seconds"] = seconds
        write_run(tmp_path / str(seed), seed=seed, rows=rows)
    chart = drawn(by_world(grouped(read_runs([tmp_path])))["pgm-3ag"])
    (line,) = chart.charts[0].lines
    assert line.over(Across.EPISODES).tolist() == [0, 1_000, 2_000]
    assert line.over(Across.STEPS).tolist() == [0, 10_500, 21_000]
    assert line.over(Across.TIME).tolist() == [0, 3, 6]
    assert chart.x[Across.TIME].high == 6


def test_an_axis_is_not_offered_if_some_rows_lack_its_values(tmp_path):
    rows = evaluated([0.0, 1.0, 2.0])
    del rows[1]["seconds"]
    write_run(tmp_path / "a", rows=rows)
    groups = by_world(grouped(read_runs([tmp_path])))["pgm-3ag"]
    assert list(drawn(groups).x) == [Across.EPISODES, Across.STEPS]
    figure_over_time = figure(
        "f", [("IQL", 0)], [(OF_ANY_WORLD["return"], lines_of(groups, "return"))], "", Across.TIME
    )
    assert figure_over_time.across is Across.EPISODES


def test_time_ticks_use_a_suitable_unit():
    assert [label for _, label in time_axis(90).ticks] == ["0", "30 s", "60 s", "90 s"]
    assert [label for _, label in time_axis(900).ticks] == ["0", "5 min", "10 min", "15 min"]
    assert [label for _, label in time_axis(6_400).ticks] == ["0", "30 min", "60 min", "90 min"]
    assert [label for _, label in time_axis(4 * 3600).ticks] == ["0", "1 h", "2 h", "3 h", "4 h"]
    assert [label for _, label in time_axis(0.02).ticks][1] == "0.005 s"
