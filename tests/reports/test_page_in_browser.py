"""The page as users see it: in a browser, from a file, light and dark, wide and narrow, with and without scripts."""

import csv
import functools
import re

import numpy as np
import pytest
from PIL import Image

from consmarl.reports.charts import decimals_of_range
from consmarl.reports.curves import lines_of
from consmarl.reports.finals import by_world
from consmarl.reports.page import write_report
from consmarl.reports.runs import grouped, read_runs
from consmarl.reports.words import number
from tests.reports.handmade import evaluated, write_run

WIDE, PHONE = 1280, 390


@pytest.fixture(scope="module")
def groups(tmp_path_factory):
    """Three groups with rising returns; one of them shares and has an animation of its policy."""
    root = tmp_path_factory.mktemp("runs")
    rng = np.random.default_rng(0)
    shared = dict(requests=4.0, answers=2.0, advised_share=0.25, requests_left=[10.0, 20.0], budget_used=85.0)
    for method, base in (("iql", 3.0), ("adhoc-td", 6.0), ("cons", 10.0)):
        for seed in range(4):
            returns = np.linspace(-15, base, 21) + rng.normal(size=21)
            rows = evaluated(returns.round(4).tolist(), loss=float(seed), **(shared if method == "cons" else {}))
            write_run(root / f"{method}-{seed}", method=method, seed=seed, rows=rows)
    write_run(root / "failed", method="iql", seed=9, rows=[0.0], failure="word " * 40, episodes=20_000)
    frames = [Image.new("RGB", (64, 64), (80 * shade, 0, 0)) for shade in range(3)]
    for seed in range(4):
        frames[0].save(root / f"cons-{seed}" / "policy.gif", save_all=True, append_images=frames[1:], duration=100)
    return by_world(grouped(read_runs([root])))["pgm-3ag"]


@pytest.fixture(scope="module")
def address(groups, tmp_path_factory):
    runs = [run for group in groups for run in group.runs]
    return write_report(runs, tmp_path_factory.mktemp("page") / "report.html").as_uri()


@pytest.fixture
def opened(open_page, address):
    return functools.partial(open_page, address)


def hover(page, share, figure="curves-0"):
    """Point at a share of a chart's width; return the tooltip's lines."""
    plot = page.locator(f"[data-figure='{figure}'] [data-plot]")
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    page.mouse.move(box["x"] + share * box["width"], box["y"] + box["height"] / 2)
    return tooltip(page, figure)


def tooltip(page, figure="curves-0"):
    parts = page.locator(f"[data-figure='{figure}'] .tooltip > *").all()
    return [re.sub(r"\s+", " ", part.text_content()).strip() for part in parts]


def expected(groups, name, episode, statistic="mean"):
    """Return what a tooltip should say, computed from the statistics: the highest value first."""
    lines = lines_of(groups, name)
    decimals = decimals_of_range(np.concatenate([np.concatenate(b) for line in lines for b in line.bands.values()]))
    rows = []
    for line in lines:
        (place,) = np.flatnonzero(line.episodes == episode)
        middle, low, high = (number(float(each[place]), decimals) for each in line.bands[statistic])
        estimate = float(line.bands[statistic].estimate[place])
        rows.append((estimate, f"{groups[line.group].label}{middle} [{low}, {high}]"))
    return [f"Episode {episode:,}", *(text for _, text in sorted(rows, key=lambda row: -row[0]))]


def path_of(page, group, kind="line"):
    path = page.locator(f"[data-figure='curves-0'] .curves [data-group='{group}'] .{kind}").get_attribute("d")
    return [float(each) for each in re.findall(r"[\d.]+", path.replace("h0", ""))]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [WIDE, PHONE, 360])
def test_the_page_fits_its_window_and_follows_the_theme(opened, theme, width):
    page = opened(width, color_scheme=theme)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    shade = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
    assert (sum(shade) < 3 * 60) is (theme == "dark")


def test_text_in_charts_keeps_its_size_on_a_phone(opened):
    page = opened(PHONE)
    sizes = page.evaluate(
        "[...document.querySelectorAll('.canvas text')].filter(text => text.getClientRects().length)"
        ".map(text => parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().d)"
    )
    assert len(sizes) > 10
    assert min(sizes) >= 11


@pytest.mark.parametrize("width", [WIDE, PHONE])
def test_pointing_at_an_episode_shows_its_statistics(opened, groups, width):
    page = opened(width)
    assert hover(page, 0.51) == expected(groups, "evaluation_return", 10_000)
    assert hover(page, 0.999) == expected(groups, "evaluation_return", 20_000)
    box = page.locator("[data-figure='curves-0'] .tooltip").bounding_box()
    assert 0 <= box["x"] <= box["x"] + box["width"] <= width
    page.mouse.move(0, 0)
    assert not page.locator("[data-figure='curves-0'] .tooltip").is_visible()


def test_a_tap_shows_the_values_until_the_next_tap_elsewhere(opened, groups):
    page = opened(PHONE, has_touch=True)
    plot = page.locator("[data-figure='curves-0'] [data-plot]")
    plot.tap(position={"x": 0.25 * plot.bounding_box()["width"], "y": 50})
    assert tooltip(page) == expected(groups, "evaluation_return", 5_000)
    page.locator("h1").tap()
    assert not page.locator("[data-figure='curves-0'] .tooltip").is_visible()


def test_arrow_keys_move_from_episode_to_episode(opened, groups):
    page = opened()
    page.locator("[data-figure='curves-0'] [data-plot]").focus()
    for key in ("ArrowLeft", "ArrowLeft", "ArrowLeft"):
        page.keyboard.press(key)
    assert tooltip(page) == expected(groups, "evaluation_return", 18_000)
    page.keyboard.press("Home")
    assert tooltip(page) == expected(groups, "evaluation_return", 0)
    page.keyboard.press("Escape")
    assert not page.locator("[data-figure='curves-0'] .tooltip").is_visible()


def test_the_legend_hides_and_shows_a_group(opened):
    page = opened()
    entry = page.locator("[data-figure='curves-0'] .legend-entry", has_text="AdHocTD")
    curve = page.locator("[data-figure='curves-0'] .curves [data-group='1']")
    entry.click()
    assert not curve.is_visible()
    assert entry.get_attribute("aria-pressed") == "false"
    assert not any("AdHocTD" in line for line in hover(page, 0.5))
    entry.click()
    assert curve.is_visible()
    assert any("AdHocTD" in line for line in hover(page, 0.5))


def test_choosing_another_metric_or_statistic_changes_the_curve_and_its_values(opened, groups):
    page = opened()
    before = path_of(page, 0)
    page.locator("[data-view='iqm']").first.click()
    assert path_of(page, 0) != before
    assert hover(page, 0.5) == expected(groups, "evaluation_return", 10_000, "iqm")
    page.locator("[data-figure='curves-0'] [data-metric]").select_option(label="Gold mined")
    assert hover(page, 0.5) == expected(groups, "evaluation_gold_mined", 10_000, "iqm")
    assert page.locator("[data-figure='curves-0'] [data-title]").text_content().startswith("Gold mined")
    page.locator("[data-figure='curves-0'] [data-metric]").select_option(label="Loss")
    assert hover(page, 0.5) == expected(groups, "loss", 10_000)
    assert page.locator("[data-view='iqm']").first.is_disabled()


def test_the_script_draws_the_same_as_the_static_page(opened):
    page = opened()
    places = "[...document.querySelectorAll('#curves .grid > *')].map(n => [n.tagName, n.textContent, "
    places += "...['x', 'y', 'x1', 'y1'].map(a => Math.round(10 * parseFloat(n.getAttribute(a))))])"
    drawn = {(group, kind): path_of(page, group, kind) for group in range(3) for kind in ("line", "band")}
    grid = page.evaluate(places)
    select = page.locator("[data-figure='curves-0'] [data-metric]")
    select.select_option(label="Loss")
    assert path_of(page, 0) != drawn[0, "line"]
    select.select_option(value="0")
    for (group, kind), path in drawn.items():
        assert path_of(page, group, kind) == pytest.approx(path, abs=0.5)  # the script's values are rounded
    assert page.evaluate(places) == grid


def test_without_scripts_curves_and_tables_are_shown_and_controls_are_hidden(opened):
    page = opened(java_script_enabled=False)
    assert page.locator("#curves .curves .line").first.is_visible()
    assert page.locator("#curves .legend-entry").first.is_visible()
    for section in ("finals", "comparisons", "sharing", "runs"):
        assert page.locator(f"#{section} table").first.is_visible()
    assert page.locator("#policies img").is_visible()
    assert not any(node.is_visible() for node in page.locator("select, [data-view], [data-copy], [data-play]").all())


def test_the_theme_can_be_switched_and_is_reset_on_reload(opened):
    page = opened(color_scheme="light")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.locator("[data-theme-toggle]").click()
    assert page.evaluate(ground) != light
    page.reload()
    assert page.evaluate(ground) == light


def test_clicking_a_heading_sorts_the_runs(opened):
    page = opened()
    button = page.locator("#runs thead button", has_text="Final return")
    values = "[...document.querySelectorAll('#runs tbody tr')].map(row => row.cells[5].dataset.value)"
    button.click()
    rising = page.evaluate(values)
    assert rising[-1] == ""  # the failed run has none
    assert list(map(float, rising[:-1])) == sorted(map(float, rising[:-1]))
    button.click()
    assert page.evaluate(values) == [*reversed(rising[:-1]), ""]


def test_commands_can_be_copied(opened):
    page = opened(permissions=["clipboard-read", "clipboard-write"])
    page.locator("[data-copy]").click()
    copied = page.evaluate("navigator.clipboard.readText()").splitlines()
    assert "consmarl train --env pgm-3ag --method cons --seed 0" in copied
    assert len(copied) == 13


def test_pictures_are_animated_unless_readers_prefer_no_motion(opened):
    for motion, kind in (("no-preference", "image/gif"), ("reduce", "image/png")):
        page = opened(reduced_motion=motion)
        image, button = page.locator("#policies img"), page.locator("[data-play]")
        assert image.evaluate("image => image.currentSrc").startswith(f"data:{kind}")
        name = button.text_content()
        button.click()
        assert button.text_content() != name
        assert not image.evaluate("image => image.src").startswith(f"data:{kind}")


def seeds_of(page, group):
    paths = page.locator(f"[data-figure='curves-0'] .curves [data-group='{group}'] .seed").all()
    return [path.get_attribute("d") for path in paths]


@pytest.mark.parametrize("width", [WIDE, PHONE])
def test_each_seed_can_be_shown_behind_its_groups_mean(opened, width):
    page = opened(width)
    assert seeds_of(page, 0) == []
    button = page.locator("[data-figure='curves-0'] [data-seeds]")
    button.click()
    assert button.get_attribute("aria-pressed") == "true"
    assert [len(seeds_of(page, group)) for group in range(3)] == [4, 4, 4]
    assert len(set(seeds_of(page, 0))) == 4
    tops = page.evaluate(
        "[...document.querySelectorAll('#curves .seed')].map(path => [path.getBBox().y, path.getBBox().height])"
    )
    assert all(top >= 0 and top + height <= 1_000 for top, height in tops)  # all are visible
    kinds = "[...document.querySelectorAll('#curves .curves > g')].map(g => g.lastChild.getAttribute('class'))"
    assert page.evaluate(kinds) == ["seed"] * 3 + ["line"] * 3
    page.locator("[data-figure='curves-0'] .legend-entry").first.click()
    assert not page.locator("[data-figure='curves-0'] .curves [data-group='0'] .seed").first.is_visible()
    button.click()
    assert seeds_of(page, 1) == []


def test_curves_can_be_shown_over_steps_and_time(opened, groups):
    page = opened()
    axis = page.locator("[data-figure='curves-0'] [data-axis]")
    ticks = page.locator("[data-figure='curves-0'] .grid .x")
    at_episodes = path_of(page, 0)
    page.locator("[data-figure='curves-0'] [data-across='steps']").click()
    assert axis.text_content() == "environment steps"
    assert ticks.last.text_content() == "400k"  # of 500k: 20,000 episodes of 25 steps
    assert path_of(page, 0) == pytest.approx(at_episodes, abs=0.5)  # all episodes have the same length
    assert hover(page, 0.51)[0] == "250,000 environment steps"
    assert hover(page, 0.51)[1:] == expected(groups, "evaluation_return", 10_000)[1:]
    page.locator("[data-figure='curves-0'] [data-across='time']").click()
    assert axis.text_content() == "training time"
    assert hover(page, 0.51) == ["After 10 s", *expected(groups, "evaluation_return", 10_000)[1:]]
    page.locator("[data-figure='curves-0'] [data-metric]").select_option(label="Loss")
    assert axis.text_content() == "training time"


def test_a_chart_and_a_table_can_be_downloaded_as_csv(opened, groups):
    page = opened()
    with page.expect_download() as started:
        page.locator("[data-figure='curves-0'] [data-csv]").click()
    assert started.value.suggested_filename == "evaluation_return-on-pgm-3ag.csv"
    rows = list(csv.DictReader(started.value.path().read_text(encoding="utf-8").splitlines()))
    line = lines_of(groups, "evaluation_return")[0]
    found = [row for row in rows if row["group"] == groups[0].label]
    assert [int(row["episode"]) for row in found] == line.episodes.tolist()
    np.testing.assert_allclose([float(row["mean"]) for row in found], line.bands["mean"].estimate, atol=0.005)
    np.testing.assert_allclose([float(row["seed_2"]) for row in found], line.seeds.values[2], atol=0.005)
    assert {"environment_steps", "seconds", "iqm_low", "seed_3"} <= found[0].keys()
    with page.expect_download() as started:
        page.locator("#finals-heading + .csv").click()
    assert started.value.suggested_filename == "final-returns.csv"
    assert started.value.path().read_text().startswith("world,group,seeds,")
