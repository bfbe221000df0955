"""The page as people use it: in a browser, from a file, by mouse and by keyboard."""

import re

import jax
import numpy as np
import pytest

import consmarl
from consmarl.experiments import exchanges
from consmarl.experiments.settings import settings_from
from consmarl.sharing.record import Reply
from consmarl.viewer.moments import states_of
from consmarl.viewer.view import view
from tests.viewer import small

pytestmark = pytest.mark.usefixtures("compile_quickly")

PHONE = 390
ACTIONS = ("stay", "down", "left", "up", "right")
# what the page tells of a request, by the fields of the record; the number of its decimals is the page's affair
OF_REQUEST = ("negative_weight", "confidence_after", "num_excluded")
OF_STEP = ("ask_probability", "num_visits", "requests_left", "rewards")
OF_TEACHER = ("num_visits", "max_value", "best_probability", "worst_probability", "confidence", "prestige")


@pytest.fixture(scope="module")
def cons_run(runs):
    return runs["cons"]


@pytest.fixture(scope="module")
def adhoc_run(runs):
    return runs["adhoc-td"]


@pytest.fixture(scope="module")
def address(cons_run, tmp_path_factory):
    return view(cons_run, tmp_path_factory.mktemp("page") / "exchange.html", greedy=1).as_uri()


@pytest.fixture(scope="module")
def pair_address(cons_run, adhoc_run, tmp_path_factory):
    return view([cons_run, adhoc_run], tmp_path_factory.mktemp("pair") / "exchange.html").as_uri()


@pytest.fixture
def opened(open_page):
    def opened(address, place="", **options):
        page = open_page(address + place, **options)
        page.wait_for_selector("html[data-drawn]")
        return page

    return opened


def drawn(page):
    """Return the episode, the step and the agent that are shown."""
    episode, step, agent = page.evaluate("document.documentElement.dataset.drawn").split("/")
    return episode, int(step), int(agent)


def reach(page, place):
    """Wait until the page shows what is named by its beginning: episode/step/agent."""
    page.wait_for_selector(f"html[data-drawn^='{place}']")


def numbers(page, inside, field):
    """Return numbers of one kind: what the page holds, and what it writes."""
    found = page.locator(f"{inside} [data-field='{field}']").all()
    return [(float(each.get_attribute("data-value")), each.text_content()) for each in found]


def same(shown, recorded):
    """Tell whether numbers are the record's own, bit for bit, and are written as such."""
    values = [value for value, _ in shown]
    assert values == np.ravel(recorded).astype(np.float64).tolist()
    for value, text in shown:
        written = float(re.sub(r"[(),]", "", text).replace("−", "-"))
        assert written == pytest.approx(value, rel=0.5, abs=0.00501)


def test_selected_students_show_exactly_what_was_recorded_in_a_whole_episode(opened, address, cons_run):
    recorded = exchanges.read_episode(exchanges.episode_path(cons_run, 40))
    steps, requests, teachers = recorded.steps, recorded.requests, recorded.teachers
    page = opened(address, "#episode=40&step=0&agent=0")
    num_seen = 0
    for step in range(recorded.num_steps):
        assert drawn(page)[:2] == ("40", step)
        for student in range(recorded.num_agents):
            page.locator(f".team [data-agent='{student}']").click()
            assert drawn(page) == ("40", step, student)
            found = np.flatnonzero((requests["step"] == step) & (requests["student"] == student))
            assert len(found) == steps["is_asking"][step, student]
            same(numbers(page, ".sees", "values"), steps["values"][step, student])
            same(numbers(page, f".team [data-agent='{student}']", "rewards"), steps["rewards"][step, student])
            if not len(found):
                same(numbers(page, ".exchange", "ask_probability"), steps["ask_probability"][step, student])
                continue
            (request,) = found
            num_seen += 1
            for field in ("policy_before", "policy_after"):
                same(numbers(page, ".exchange", field), requests[field][request])
            modified = [float(each.get_attribute("data-modified")) for each in page.locator(".choice").all()]
            assert modified == requests["modified"][request].astype(np.float64).tolist()
            for field in OF_REQUEST:
                same(numbers(page, ".facts-of", field)[:1], requests[field][request])
            for field in OF_STEP:
                same(numbers(page, ".exchange .facts-of", field), steps[field][step, student])
            did, own = (ACTIONS[steps[name][step, student]] for name in ("action", "own_action"))
            does = page.locator(".choice:has(.tag.did) .choice-head > b").all_text_contents()
            assert does == [did]
            would = page.locator(".choice:has(.tag.own) .choice-head > b").all_text_contents()
            assert would == ([own] if own != did else [])
            assert (
                page.locator(".choice.is-out").count()
                == requests["num_excluded"][request] * requests["is_advised"][request]
            )
            for teacher in range(recorded.num_agents):
                row = f".teachers [data-teacher='{teacher}']"
                if teacher == student:
                    assert page.locator(row).count() == 0
                    continue
                assert page.locator(f"{row} [data-field='reply']").get_attribute("data-value") == str(
                    teachers["reply"][request, teacher]
                )
                words = page.locator(f"{row} [data-field='reply']").text_content()
                assert (words == "answers") == (teachers["reply"][request, teacher] == Reply.ANSWERED)
                for field in OF_TEACHER:
                    same(numbers(page, row, field), teachers[field][request, teacher])
                told = [cell.get_attribute("data-action") for cell in page.locator(f"{row} .told").all()]
                assert told == [str(teachers[name][request, teacher]) for name in ("best_action", "worst_action")]
            arrows = page.locator(".board .arrow.is-chosen").evaluate_all(
                "all => all.map(each => each.dataset.teacher)"
            )
            assert sorted(map(int, arrows)) == np.flatnonzero(teachers["reply"][request] == Reply.ANSWERED).tolist()
        page.keyboard.press("ArrowRight")
    assert num_seen == len(requests["step"]) > 5


def test_what_an_agent_sees_is_what_its_network_gets(opened, address, cons_run):
    recorded = exchanges.read_episode(exchanges.episode_path(cons_run, 40))
    world = consmarl.make(small.CONS.env, **settings_from(small.CONS.set))
    for step, agent in ((0, 0), (3, 1), (7, 2)):
        state = jax.tree.map(lambda rows, at=step: rows[at], states_of(recorded, world))
        seen = np.asarray(world.observe(state))[agent] * world.observation_scale  # float32, as the network has it
        page = opened(address, f"#episode=40&step={step}&agent={agent}")
        features = [numbers(page, ".sees", f"feature-{name}")[0][0] for name in world.feature_names]
        cells = page.locator(".channel-grid span").evaluate_all("all => all.map(each => Number(each.dataset.value))")
        by_channel = np.reshape(seen[len(features) :], (-1, len(world.channel_names))).T
        assert features == seen[: len(features)].astype(np.float64).tolist()
        assert cells == by_channel.ravel().astype(np.float64).tolist()
        assert any(cells)


def test_it_plays_to_the_end_and_can_be_paused(opened, address):
    page = opened(address, "#episode=40&step=0&agent=1")
    page.locator("[data-do=play]").click()
    reach(page, "40/2/")
    page.locator("[data-do=play]").click()
    stopped = drawn(page)[1]
    page.wait_for_timeout(700)  # a step takes 500
    assert drawn(page)[1] == stopped < 8
    page.locator("[data-speed]").select_option("10")
    assert page.locator("[data-do=play]").text_content() == "Play"
    page.locator("[data-do=play]").click()
    reach(page, "40/8/1")
    page.locator("[data-do=play]:text-is('Play')").wait_for()
    assert "over" in page.locator("[data-tells]").text_content()


def test_keys_do_what_buttons_do(opened, address):
    page = opened(address, "#episode=40&step=2&agent=0")
    for key, expected in (
        ("ArrowRight", ("40", 3, 0)),
        ("ArrowLeft", ("40", 2, 0)),
        ("j", ("40", 2, 1)),
        ("k", ("40", 2, 0)),
        ("k", ("40", 2, 2)),
        ("1", ("40", 2, 1)),
        ("7", ("40", 2, 1)),  # there is no such agent
    ):
        page.keyboard.press(key)
        assert drawn(page) == expected
    page.keyboard.press("]")
    reach(page, "59/0/")
    page.keyboard.press("[")
    reach(page, "40/0/")
    page.keyboard.press("Space")
    assert page.locator("[data-do=play]").text_content() == "Pause"
    page.keyboard.press("Space")
    assert page.locator("[data-do=play]").text_content() == "Play"
    page.locator("[data-scrub]").focus()
    page.keyboard.press("End")
    assert drawn(page)[1] == 8
    page.keyboard.press("Home")
    assert drawn(page)[1] == 0
    page.keyboard.press("+")
    assert page.locator("[data-speed]").input_value() == "2"


def test_the_next_change_is_the_next_recorded_one(opened, address, cons_run):
    recorded = exchanges.read_episode(exchanges.episode_path(cons_run, 40))
    steps = recorded.steps
    is_changed = (steps["action"] != steps["own_action"]).any(axis=1)  # without a second draw, nothing else changes it
    page = opened(address, "#episode=40&step=0&agent=0")
    for step in np.flatnonzero(is_changed[1:]) + 1:
        page.keyboard.press("n")
        _, at, agent = drawn(page)
        assert at == step
        assert steps["action"][step, agent] != steps["own_action"][step, agent]
        assert page.locator(".board .sign.changed").count() == (steps["action"] != steps["own_action"])[step].sum()
    page.keyboard.press("n")
    assert "no changed choice" in page.locator("[data-where]").text_content()


def test_scrubbing_and_the_strip_go_to_a_step(opened, address):
    page = opened(address, "#episode=15&step=0&agent=0")
    page.locator("[data-scrub]").fill("5")
    assert drawn(page)[1] == 5
    box = page.locator(".strip").bounding_box()
    page.mouse.click(box["x"] + box["width"] * 2.5 / 8, box["y"] + box["height"] / 2)
    assert drawn(page)[1] == 2


def test_clicking_an_agent_on_the_board_chooses_it(opened, address):
    page = opened(address, "#episode=15&step=1&agent=0")
    page.locator(".token[aria-label='agent 2']").click()
    assert drawn(page)[2] == 2
    assert page.locator(".team [aria-current]").get_attribute("data-agent") == "2"


def test_episodes_can_be_chosen_and_the_board_goes_with_them(opened, address, cons_run):
    page = opened(address, "#episode=15&step=0&agent=0")
    for number in small.RECORDED:
        page.locator("[data-episode]").select_option(str(number))
        reach(page, f"{number}/0/")
        recorded = exchanges.read_episode(exchanges.episode_path(cons_run, number))
        page.keyboard.press("ArrowRight")
        shown = page.locator(".token").evaluate_all("all => all.map(each => each.getAttribute('transform'))")
        cells = [[float(each) for each in re.findall(r"[\d.]+", transform)[:2]] for transform in shown]
        for (across, down), (row, column) in zip(cells, recorded.world["agents"][1], strict=True):
            assert abs(across / 40 - column - 0.5) < 0.6
            assert abs(down / 40 - row - 0.5) < 0.6
        total = recorded.steps["rewards"].sum(dtype=np.float64)
        row = page.locator(f".episodes [data-key='{number}']")
        assert float(row.locator("[data-field=return]").get_attribute("data-value")) == pytest.approx(total)
        assert row.get_attribute("aria-current") == "true"
    page.locator("[data-episode]").select_option("e0")
    reach(page, "e0/0/")
    assert page.locator(".board .arrow").count() == 0


def test_totals_and_who_taught_whom_are_the_records(opened, address, cons_run):
    page = opened(address, "#episode=40&step=0&agent=0")
    everything = np.zeros((3, 3), int)
    for number in small.RECORDED:
        recorded = exchanges.read_episode(exchanges.episode_path(cons_run, number))
        is_sent = recorded.teachers["reply"] == Reply.ANSWERED
        taught = np.zeros((3, 3), int)
        for request, student in enumerate(recorded.requests["student"]):
            taught[:, student] += is_sent[request]
        everything += taught
        row = f".episodes [data-key='{number}']"
        assert [value for value, _ in numbers(page, row, "requests")] == [len(is_sent)]
        assert [value for value, _ in numbers(page, row, "answers")] == [is_sent.sum()]
        if number == 40:
            page.locator("[data-scope=this]").click()
            assert matrix(page).tolist() == taught.tolist()
    page.locator("[data-scope=all]").click()
    assert matrix(page).tolist() == everything.tolist()
    assert everything.sum() > 0


def matrix(page):
    cells = page.locator(".taught [data-field=taught]").all()
    return np.array([int(cell.get_attribute("data-value")) for cell in cells]).reshape(3, 3)


def test_two_runs_are_compared_on_the_same_start(opened, pair_address, cons_run, adhoc_run):
    page = opened(pair_address, "#episode=40&step=0&agent=1")
    assert page.locator("[data-same-start]").text_content() == "Both start alike."
    assert page.locator(".run-name").all_text_contents() == ["CONS", "AdHocTD"]
    boards = page.locator(".board")
    places = [boards.nth(place).locator(".token").evaluate_all("all => all.map(each => each.getAttribute('transform'))")
              for place in range(2)]  # fmt: skip
    assert places[0] == places[1]
    for step in range(9):
        for place, run in enumerate((cons_run, adhoc_run)):
            rewards = exchanges.read_episode(exchanges.episode_path(run, 40)).steps["rewards"][:step]
            shown = page.locator("[data-return] b").nth(place).text_content().replace("−", "-")
            assert float(shown) == pytest.approx(rewards.sum(dtype=np.float64), abs=0.00501)
        page.keyboard.press("ArrowRight")
    page.locator("[data-which='1']").click()
    assert page.locator(".pane").count() == 1
    page.locator("[data-which='0']").click()
    assert page.locator(".pane").count() == 1
    page.locator("[data-which=both]").click()
    assert page.locator(".pane").count() == 2


def test_votes_of_adhoc_td_are_shown(opened, pair_address, adhoc_run):
    recorded = exchanges.read_episode(exchanges.episode_path(adhoc_run, 40))
    (advised,) = np.nonzero(recorded.requests["is_advised"])
    request = advised[0]
    step, student = (int(recorded.requests[name][request]) for name in ("step", "student"))
    page = opened(pair_address, f"#episode=40&step={step}&agent={student}&runs=1")
    votes = [float(each.get_attribute("data-modified")) for each in page.locator(".choice").all()]
    assert votes == recorded.requests["modified"][request].tolist()
    assert sum(votes) == (recorded.teachers["reply"][request] == Reply.ANSWERED).sum()
    assert "majority" in page.locator("[data-tells]").text_content()


def test_the_address_names_a_moment(opened, address):
    page = opened(address, "#episode=59&step=4&agent=2")
    assert drawn(page) == ("59", 4, 2)
    page.keyboard.press("ArrowRight")
    assert page.url.endswith("#episode=59&step=5&agent=2")
    for nonsense in ("#episode=7&step=3&agent=0", "#step=999&agent=x", "#episode=<b>"):
        assert drawn(opened(address, nonsense))[0] in ("15", "40", "59")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, PHONE])
def test_it_fits_its_window_and_follows_the_theme(opened, address, pair_address, theme, width):
    for place in (address, pair_address):
        page = opened(place, "#episode=40&step=3&agent=0", width=width, color_scheme=theme)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        shade = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
        assert (sum(shade) < 3 * 60) is (theme == "dark")
        sizes = page.evaluate(
            "[...document.querySelectorAll('.small-chart text')].map(text => "
            "parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().d)"
        )
        assert min(sizes) >= 10
