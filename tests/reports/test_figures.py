import sys

import numpy as np
import pytest

from consmarl.errors import UsageError
from consmarl.reports.across import Across
from consmarl.reports.colours import COLOURS, CYCLE, colours_of
from consmarl.reports.figures import counters_figure, curves_figure, study_figure, weights_figure, write_figures
from consmarl.reports.plots import strokes_of
from consmarl.reports.runs import grouped, read_runs
from consmarl.reports.statistics import band, interval
from tests.reports.handmade import evaluated, write_run

RETURNS = {("iql", 0): [0.0, 1.0, 3.0], ("iql", 1): [1.0, 2.0, 7.0], ("cons", 0): [0.0, 5.0, 9.0]}
STUDY = {
    "name": "small", "title": "A small study", "figure": 9, "plot": "curve", "metric": "evaluation_return",
    "worlds": ["pgm-3ag"], "groups": ["CONS", "IQL", "AdHocTD", "SEQL"], "episodes": 2_000, "seeds": 2, "scale": 0.1,
    "command": "consmarl sweep --study small",
}  # fmt: skip


@pytest.fixture
def groups(tmp_path):
    for (method, seed), returns in RETURNS.items():
        rows = evaluated(returns, **({"budget_used": 40.0} if method == "cons" else {}))
        write_run(tmp_path / "runs" / f"{method}-{seed}", method=method, seed=seed, rows=rows)
    return grouped(read_runs([tmp_path / "runs"]))


def labelled_lines(axes):
    return {line.get_label(): line for line in axes.get_lines() if not line.get_label().startswith("_")}


def texts(figure):
    return " ".join(figure.get_supxlabel().split())


def sentence_of(error):
    text = str(error.value)
    assert text.endswith(".")
    assert "\n" not in text
    return text


def curves(groups, metric="evaluation_return"):
    return curves_figure({"pgm-3ag": groups}, metric, "A title", strokes_of(group.label for group in groups))


def test_lines_are_the_means_over_seeds(groups):
    (axes,) = curves(groups).axes
    lines = labelled_lines(axes)
    assert list(lines) == ["CONS", "IQL"]  # in the order of their last values, from top to bottom
    assert lines["IQL"].get_xdata().tolist() == [0, 1_000, 2_000]
    assert lines["IQL"].get_ydata().tolist() == [0.5, 1.5, 5.0]
    assert lines["CONS"].get_ydata().tolist() == [0.0, 5.0, 9.0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("episodes", "return (greedy evaluation)")


def test_bands_show_the_intervals_and_one_seed_has_none(groups):
    (axes,) = curves(groups).axes
    (drawn,) = axes.collections
    bounds = band([RETURNS["iql", 0], RETURNS["iql", 1]])
    corners = {tuple(corner) for corner in drawn.get_paths()[0].vertices.tolist()}
    expected = set(zip((0, 1_000, 2_000), bounds.low, strict=True)) | set(
        zip((0, 1_000, 2_000), bounds.high, strict=True)
    )
    assert corners == expected
    assert len(axes.get_lines()) == 2 + 2  # two means, and the edges of the one band


def test_curves_use_only_finished_runs_if_there_are_any(tmp_path):
    write_run(tmp_path / "a", rows=[0.0, 2.0, 4.0])
    write_run(tmp_path / "b", seed=1, rows=[0.0, 8.0], result=None, episodes=2_000)
    figure = curves(grouped(read_runs([tmp_path])))
    assert labelled_lines(figure.axes[0])["IQL"].get_ydata().tolist() == [0.0, 2.0, 4.0]
    assert texts(figure) == "one seed · without 1 run that has not finished"


def test_curves_of_unfinished_runs_end_with_the_shortest_run(tmp_path):
    write_run(tmp_path / "a", rows=[0.0, 2.0, 4.0], result=None)
    write_run(tmp_path / "b", seed=1, rows=[0.0, 8.0], result=None, episodes=2_000)
    figure = curves(grouped(read_runs([tmp_path])))
    assert labelled_lines(figure.axes[0])["IQL"].get_ydata().tolist() == [0.0, 5.0]
    assert texts(figure) == "means over 2 seeds, 95 % bootstrap intervals · not finished: IQL"


def test_failed_runs_are_not_drawn(tmp_path):
    write_run(tmp_path / "a", failure="the disk is full.")
    write_run(tmp_path / "b", seed=1, rows=[0.0, 8.0], result=None, episodes=2_000)
    figure = curves(grouped(read_runs([tmp_path])))
    assert labelled_lines(figure.axes[0])["IQL"].get_ydata().tolist() == [0.0, 8.0]
    assert texts(figure) == "one seed · not finished: IQL · without 1 run that has not finished"


def test_groups_with_the_same_name_get_distinct_labels(tmp_path):
    for size in (32, 64):
        write_run(tmp_path / str(size), label="CONS", hidden_size=size)
    (axes,) = study_figure(grouped(read_runs([tmp_path])), STUDY).axes
    lines = labelled_lines(axes)
    assert list(lines) == ["CONS", "CONS (2)"]
    assert len({line.get_color() for line in lines.values()}) == 2


def test_the_note_names_groups_with_fewer_seeds(groups):
    assert texts(curves(groups)) == "means over 2 seeds (CONS 1), 95 % bootstrap intervals"


def test_budgets_are_drawn_only_for_methods_that_share(groups):
    (axes,) = curves(groups, "budget_used").axes
    assert list(labelled_lines(axes)) == ["CONS"]
    assert axes.get_ylim()[0] == 0


def test_bars_show_the_means_of_counters_with_intervals_and_seeds(groups):
    figure = counters_figure({"pgm-3ag": groups}, "A title", strokes_of(["IQL", "CONS"]))
    (axes,) = figure.axes
    heights = {bars.get_label(): bar.get_height() for bars in axes.containers for bar in bars}
    assert heights == pytest.approx({"CONS": 0.9, "IQL": 0.5})  # a tenth of the final returns
    (whisker,) = axes.collections
    assert whisker.get_segments()[0][:, 1] == pytest.approx(interval([0.3, 0.7])[1:])
    seeds = sorted(value for line in axes.get_lines() for value in line.get_ydata())
    assert seeds == pytest.approx([0.3, 0.7, 0.9])
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["gold mined"]


def test_items_are_shown_as_shares_of_their_maximum(tmp_path):
    result = {"return": 1.0, "opened": 6.0, "yellow_opened": 1.5, "red_opened": 4.5, "coins_taken": 0.75,
              "treasures_taken": 0.5}  # fmt: skip
    write_run(tmp_path / "a", env="ft", result=result)
    figure = study_figure(grouped(read_runs([tmp_path])), STUDY | {"plot": "items", "worlds": ["ft"]})
    (bars,) = figure.axes[0].containers
    assert [bar.get_height() for bar in bars] == [0.5, 0.75, 0.25, 0.5]  # of 3, 6, 3 and 1


def test_the_weights_follow_equation_8():
    lines = labelled_lines(weights_figure("h").axes[0])
    at = {label: dict(zip(line.get_xdata(), line.get_ydata(), strict=True)) for label, line in lines.items()}
    assert [at["PGM, a = 0"][x] for x in (5_000, 10_000, 80_000)] == pytest.approx([1, 0.5, 0.0625])
    assert at["FT, a = 0.3"][10_000] == pytest.approx(1 / 1.7)  # 1/(0.7·2 + 0.3)
    assert at["Cleanup, a = −0.5"][10_000] == pytest.approx(0.4)  # 1/(1.5·2 − 0.5)


def test_a_study_draws_its_groups_and_lists_missing_ones(groups):
    figure = study_figure(groups, STUDY | {"groups": ["CONS", "AdHocTD", "SEQL"]})
    (axes,) = figure.axes
    assert list(labelled_lines(axes)) == ["CONS"]
    assert figure.get_suptitle() == "A small study"
    assert texts(figure).split(" · ") == [
        "one seed",
        "after figure 9 of the paper",
        "shortened to 10 % (scale 0.1)",
        "no runs: AdHocTD, SEQL",
    ]


def test_a_study_at_full_length_does_not_mention_its_scale(groups):
    assert "shortened" not in texts(study_figure(groups, STUDY | {"scale": 1.0}))


def test_a_study_draws_its_metric(groups):
    (axes,) = study_figure(groups, STUDY | {"metric": "return"}).axes
    assert labelled_lines(axes)["CONS"].get_ydata().tolist() == [4.0, 8.0]
    assert axes.get_ylabel() == "return (training)"
    (axes,) = study_figure(groups, STUDY | {"plot": "budget"}).axes
    assert labelled_lines(axes)["CONS"].get_ydata().tolist() == [40.0, 40.0]
    assert axes.get_ylabel() == "requests spent per agent"


def test_a_study_of_two_environments_has_two_panels_and_one_legend(tmp_path):
    for env, method in (("pgm-3ag", "iql"), ("pgm-6ag", "cons")):
        write_run(tmp_path / env, env=env, method=method)
    figure = study_figure(grouped(read_runs([tmp_path])), STUDY | {"worlds": ["pgm-6ag", "pgm-3ag"]})
    assert [axes.get_title("left") for axes in figure.axes] == ["pgm-6ag", "pgm-3ag"]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["CONS", "IQL"]


def test_files_are_written_for_each_environment_and_suffix(groups, tmp_path):
    written = write_figures(groups, tmp_path / "out")
    names = {f"pgm-3ag-{kind}.{suffix}" for kind in ("return", "budget", "counters") for suffix in ("png", "pdf")}
    assert {path.name for path in written} == {path.name for path in (tmp_path / "out").iterdir()} == names
    for path in written:
        content = path.read_bytes()
        assert content.startswith(b"\x89PNG" if path.suffix == ".png" else b"%PDF")
        assert 5_000 < len(content) < 500_000


def test_the_same_runs_give_the_same_files(groups, tmp_path):
    first, second = (
        [path.read_bytes() for path in write_figures(groups, tmp_path / name, suffix=("png", "pdf", "svg"))]
        for name in "ab"
    )
    assert first == second


def test_an_environment_with_changed_settings_has_a_plain_file_name(tmp_path):
    write_run(tmp_path / "runs" / "a", set=["size=4", "view=2"])
    written = write_figures(grouped(read_runs([tmp_path / "runs"])), tmp_path, suffix=("svg",))
    assert written[0] == tmp_path / "pgm-3ag-size=4-view=2-return.svg"


def test_a_study_is_written_to_one_file_named_after_it(groups, tmp_path):
    assert write_figures(groups, tmp_path, study=STUDY, suffix=("png",)) == [tmp_path / "small.png"]


def test_the_weights_study_needs_no_runs_and_has_no_scale(tmp_path):
    weights = STUDY | {"plot": "weights", "groups": [], "worlds": []}
    assert texts(study_figure([], weights)) == "after figure 9 of the paper"
    assert write_figures([], tmp_path, study=weights, suffix=("svg",)) == [tmp_path / "small.svg"]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"plot": "pie"}, "curve, budget, items or weights, not 'pie'"),
        ({"worlds": ["cleanup"]}, "run `consmarl sweep --study small`"),
        ({"plot": "items"}, "record each counter's maximum; those of pgm-3ag do not"),
    ],
)
def test_a_study_that_cannot_be_drawn_is_refused(groups, changed, said):
    with pytest.raises(UsageError) as error:
        study_figure(groups, STUDY | changed)
    assert said in sentence_of(error)


def test_runs_without_anything_to_draw_are_refused(tmp_path):
    write_run(tmp_path / "a", rows=[], result=None)
    with pytest.raises(UsageError) as error:
        write_figures(grouped(read_runs([tmp_path])), tmp_path)
    assert "nothing to draw yet" in sentence_of(error)


def test_unknown_suffixes_are_refused_before_anything_is_written(groups, tmp_path):
    with pytest.raises(UsageError) as error:
        write_figures(groups, tmp_path / "out", suffix=("png", "docx"))
    assert sentence_of(error) == "figures can be written as png, pdf, svg, not as 'docx'."
    assert not (tmp_path / "out").exists()


def test_the_error_for_missing_matplotlib_says_how_to_install_it(groups, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UsageError) as error:
        write_figures(groups, tmp_path)
    assert sentence_of(error) == "figures need matplotlib: pip install 'consmarl[figures]'."


def test_known_methods_always_have_the_same_colours():
    assert (
        colours_of(["mine", "VDN", "I2Q", "IQL"])["IQL"]
        == colours_of(["CONS", "IQL", "AdHocTD"])["IQL"]
        == COLOURS["IQL"]
    )


def test_up_to_seven_labels_have_different_colours():
    for labels in (["CONS", "CONS wo-N", "CONS wo-P", "CONS wo-TE", "AdHocTD", "IQL", "x"],
                   ["CONS", "AdHocTD", "IQL", "I2Q", "SEQL", "GA-Comm", "MAVEN"],
                   ["VDN", "I2Q", "SEQL", "QMIX", "CONS wo-N", "CONS", "IQL"],
                   ["IQL, hidden_size 32", "IQL, hidden_size 64", "CONS", "a", "b", "c", "d"]):  # fmt: skip
        colours = colours_of(labels)
        assert list(colours) == labels
        assert len(set(colours.values())) == 7


def test_a_method_with_settings_has_the_methods_colour():
    assert colours_of(["CONS, budget 10"]) == {"CONS, budget 10": COLOURS["CONS"]}


def test_many_labels_share_colours_and_differ_in_dashes():
    strokes = strokes_of(f"label {number}" for number in range(20))
    assert {stroke.colour for stroke in strokes.values()} == set(CYCLE)
    assert len(set(strokes.values())) == 20


@pytest.mark.parametrize("background", ["#FFFFFF", "#14171A"])
def test_colours_stand_out_from_light_and_dark_backgrounds(background):
    assert all(_contrast(colour, background) > 2.2 for colour in {*CYCLE, *COLOURS.values()})


def _contrast(one, other):
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour):
    """Relative luminance as in WCAG 2."""
    parts = np.array([int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)])
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722]


def test_curves_can_be_drawn_over_steps_and_time(groups):
    for across, places, label in (
        (Across.STEPS, [0, 25_000, 50_000], "environment steps"),
        (Across.TIME, [0, 1, 2], "training time"),
    ):
        figure = curves_figure(
            {"pgm-3ag": groups}, "evaluation_return", "A title", strokes_of(["CONS", "IQL"]), (), across
        )
        (axes,) = figure.axes
        assert labelled_lines(axes)["IQL"].get_xdata().tolist() == places
        assert labelled_lines(axes)["IQL"].get_ydata().tolist() == [0.5, 1.5, 5.0]  # the same over every axis
        assert axes.get_xlabel() == label


def test_an_axis_that_rows_lack_is_refused_in_one_sentence(tmp_path):
    rows = evaluated([0.0, 1.0])
    del rows[1]["seconds"]
    write_run(tmp_path / "runs" / "a", rows=rows)
    with pytest.raises(UsageError) as error:
        write_figures(grouped(read_runs([tmp_path / "runs"])), tmp_path / "figures", across=Across.TIME)
    assert "pgm-3ag · IQL cannot be drawn over time" in sentence_of(error)


def test_a_group_without_counters_has_no_bar(tmp_path):
    write_run(tmp_path / "a")
    write_run(tmp_path / "b", method="cons", result={"return": 1.0})
    figure = counters_figure({"pgm-3ag": grouped(read_runs([tmp_path]))}, "A title", strokes_of(["IQL", "CONS"]))
    assert [bars.get_label() for bars in figure.axes[0].containers] == ["IQL"]
    assert texts(figure) == "one seed, dots are seeds"
