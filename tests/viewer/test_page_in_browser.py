"""The page as users see it: in a browser, opened from a file, with mouse and keyboard."""

import dataclasses
import json
import re

import jax
import numpy as np
import pytest

import consmarl
from consmarl.experiments import exchanges
from consmarl.experiments.configuration.pairs import settings_from
from consmarl.reports.runs import Run, read_run
from consmarl.reports.statistics import interval
from consmarl.sharing.options import AskGate, Eligibility, TeacherMemory
from consmarl.sharing.record import Reply
from consmarl.viewer.moments import states_of
from consmarl.viewer.page import write_page
from consmarl.viewer.view import view
from consmarl.viewer.viewed import Viewed
from tests.viewer import small

PHONE = 390
ACTIONS = ("stay", "down", "left", "up", "right")
# fields of the record that the page shows for a request; how many decimals it shows is up to the page
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


@pytest.fixture(scope="module")
def twins(cons_run, tmp_path_factory):
    """Write a page with and without sharing, of episodes that are not real twins; return its address and both lists."""
    recorded = [exchanges.read_episode(exchanges.episode_path(cons_run, number)) for number in small.RECORDED]
    told = [small.played(recorded[number % 5], exchanges.STAGED, number, bonus=number % 3) for number in range(12)]
    silent = [small.played(recorded[number % 5], exchanges.SILENT, number, bonus=0) for number in range(12)]
    for each in silent:  # agent 2 chooses something else in step 3
        each.steps["action"] = each.steps["action"].copy()
        each.steps["action"][3, 2] = (each.steps["action"][3, 2] + 1) % 5
    run, out = read_run(cons_run), tmp_path_factory.mktemp("twins") / "exchange.html"
    viewed = [Viewed(run, small.CONS, told, "with sharing"), Viewed(run, small.CONS, silent, "nobody asks")]
    return write_page(viewed, out).as_uri(), told, silent


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
    """Wait until the page shows this place: episode/step/agent, or the start of it."""
    page.wait_for_selector(f"html[data-drawn^='{place}']")


def numbers(page, inside, field):
    """Return the numbers of one field: the value that the page holds and the text that it shows."""
    found = page.locator(f"{inside} [data-field='{field}']").all()
    return [(float(each.get_attribute("data-value")), each.text_content()) for each in found]


def same(shown, recorded):
    """Check that the numbers are the record's own, bit for bit, and that their text agrees with them."""
    values = [value for value, _ in shown]
    assert values == np.ravel(recorded).astype(np.float64).tolist()
    for value, text in shown:
        written = float(re.sub(r"[(),]", "", text).replace("−", "-"))
        assert written == pytest.approx(value, rel=0.5, abs=0.00501)


def test_the_page_shows_exactly_what_was_recorded_for_each_student_and_step(opened, address, cons_run):
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
            for field in ("policy_before", "policy_after", "modified"):
                same(numbers(page, ".exchange", field), requests[field][request])
            same(numbers(page, ".exchange", "positive_weight"), np.float32(1) - requests["negative_weight"][request])
            assert_bars_are_of_one_scale(page, requests, request)
            assert_told_why_actions_are_left_out(page, recorded, request)
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


def assert_bars_are_of_one_scale(page, requests, request):
    """A bar's length is its probability, whatever the others are."""
    for kind, field in (("before", "policy_before"), ("after", "policy_after")):
        widths = page.locator(f".track.{kind} .fill").evaluate_all(
            "all => all.map(each => parseFloat(each.style.width))"
        )
        assert widths == pytest.approx(100 * requests[field][request], abs=1e-3)


def assert_told_why_actions_are_left_out(page, recorded, request):
    """Algorithm 1: q actions are left out if Γ̃ is in ((q − 1)/(|A| − 1), q/(|A| − 1)]; 0 belongs to the first part."""
    requests = recorded.requests
    why = page.locator(".why")
    if not requests["is_advised"][request]:
        assert why.count() == 0
        return
    confidence, after = requests["confidence_after"][request], requests["policy_after"][request]
    low, high, count = (float(why.get_attribute(f"data-{name}")) for name in ("low", "high", "count"))
    assert (low, high) == ((count - 1) / (len(after) - 1), count / (len(after) - 1))
    assert low <= confidence <= high
    assert f"{confidence:.3f}" in why.text_content()
    if requests["is_best"][request]:
        assert "no action is left out" in why.text_content()
        return
    assert count == requests["num_excluded"][request]
    least = [ACTIONS[action] for action in np.lexsort((np.arange(len(after)), after))[: int(count)]]
    for name in least:
        assert f"{name} ({after[ACTIONS.index(name)]:.3f})" in why.text_content()
    assert sorted(page.locator(".choice.is-out .choice-head > b").all_text_contents()) == sorted(least)
    assert f"divided into {len(after) - 1} equal parts" in why.text_content()
    assert f"is in part {int(count)} (" in why.text_content()


def test_the_observation_shown_is_the_networks_input(opened, address, cons_run):
    recorded = exchanges.read_episode(exchanges.episode_path(cons_run, 40))
    world = consmarl.make(small.CONS.env, **settings_from(small.CONS.set))
    for step, agent in ((0, 0), (3, 1), (7, 2)):
        state = jax.tree.map(lambda rows, at=step: rows[at], states_of(recorded, world))
        seen = np.asarray(world.observe(state))[agent] * world.observation_scale  # float32, as the network gets it
        page = opened(address, f"#episode=40&step={step}&agent={agent}")
        features = [numbers(page, ".sees", f"feature-{name}")[0][0] for name in world.feature_names]
        cells = page.locator(".channel-grid span").evaluate_all("all => all.map(each => Number(each.dataset.value))")
        by_channel = np.reshape(seen[len(features) :], (-1, len(world.channel_names))).T
        assert features == seen[: len(features)].astype(np.float64).tolist()
        assert cells == by_channel.ravel().astype(np.float64).tolist()
        assert any(cells)


def test_an_episode_plays_to_the_end_and_can_be_paused(opened, address):
    page = opened(address, "#episode=40&step=0&agent=1")
    page.locator("[data-do=play]").click()
    reach(page, "40/2/")
    page.locator("[data-do=play]").click()
    stopped = drawn(page)[1]
    page.wait_for_timeout(700)  # a step takes 500 ms
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
    page.keyboard.press("+")
    assert page.locator("[data-speed]").input_value() == "2"


def test_home_and_end_go_to_the_ends_of_the_episode_from_any_focus(opened, address):
    page = opened(address, "#episode=40&step=2&agent=1")
    places = ("body", "[data-scrub]", "[data-do=play]", ".keys summary", "[data-theme-toggle]", "[data-help] summary",
              ".team .scroll", ".team .pick", ".episodes .link", ".scroll.tall", "[data-scope=this]",
              ".exchange .term")  # fmt: skip
    for place in places:
        page.locator(place).first.evaluate("each => { each.tabIndex = each.tabIndex; each.focus(); }")
        page.keyboard.press("End")
        assert drawn(page) == ("40", 8, 1), place
        page.keyboard.press("Home")
        assert drawn(page) == ("40", 0, 1), place


def test_focused_lists_keep_home_and_end_until_an_entry_is_picked_by_mouse(opened, address):
    page = opened(address, "#episode=40&step=2&agent=1")
    page.locator("[data-speed]").focus()
    page.keyboard.press("End")
    assert page.locator("[data-speed]").input_value() == "10"
    assert drawn(page) == ("40", 2, 1)
    page.locator("[data-episode]").focus()
    page.locator("[data-episode]").dispatch_event("pointerdown")
    page.locator("[data-episode]").select_option("59")
    reach(page, "59/0/1")
    page.keyboard.press("End")
    reach(page, "59/8/1")


def test_input_before_the_first_episode_is_loaded_causes_no_error(opened, pair_address):
    page = opened(pair_address)
    early = """() => {
        const app = new App();  // whose first episode nobody has read yet
        for (const what of ["play", "forth", "last", "change", "first"]) app.player.does(what);
        app.chooseAgent(1);
        app.lay();
        app.all.forEach((pane) => pane.allArrows.dispatchEvent(new Event("change")));
        return app.isReady;
    }"""
    assert page.evaluate(early) is False  # `open_page` checks that no script has failed


def test_the_chosen_agent_stays_chosen_when_the_episode_changes(opened, address):
    page = opened(address, "#episode=40&step=3&agent=0")
    page.locator(".token[aria-label='agent 2']").click()
    page.locator("[data-episode]").select_option("15")
    reach(page, "15/0/2")
    page.locator("body").focus()
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("]")
    reach(page, "30/0/2")
    page.locator(".episodes [data-key='59'] .link").click()
    reach(page, "59/0/2")
    page.locator(".episode-marks path").first.click()
    reach(page, "0/0/2")
    page.evaluate("location.hash = '#episode=40&step=5&agent=1'")
    reach(page, "40/5/1")


def test_the_focus_is_kept_when_a_step_is_drawn(opened, address):
    page = opened(address, "#episode=40&step=2&agent=1")
    page.locator(".team .pick").nth(2).focus()
    page.keyboard.press("ArrowRight")
    assert drawn(page) == ("40", 3, 1)
    page.keyboard.press("Enter")
    assert drawn(page) == ("40", 3, 2)
    page.locator(".episodes [data-key='59'] .link").focus()
    page.keyboard.press("Enter")
    reach(page, "59/0/2")
    assert page.evaluate("document.activeElement.textContent") == "Episode 59"


@pytest.fixture(scope="module")
def asked(cons_run):
    """The address of a step in which a student followed advice."""
    recorded = exchanges.read_episode(exchanges.episode_path(cons_run, 40))
    request = int(np.flatnonzero(recorded.requests["is_advised"])[0])
    return "#episode=40&step={step}&agent={student}".format(
        **{name: int(recorded.requests[name][request]) for name in ("step", "student")}
    )


def test_symbols_can_be_explained_by_keyboard(opened, address, asked):
    page = opened(address, asked)
    keys = set(page.locator(".exchange .term").evaluate_all("all => all.map(each => each.dataset.term)"))
    assert keys >= {"ask", "visits", "negative", "positive", "confidence", "confidence_after", "prestige", "share",
                    "policy", "policy_after", "modified", "max_value", "budget"}  # fmt: skip
    for key in sorted(keys):
        symbol = page.locator(f".exchange .term[data-term={key}]").first
        symbol.focus()
        page.keyboard.press("Enter")
        told = page.locator(".term-note").text_content()
        assert re.search(r"Eq\. \d|Algorithm \d", told)
        assert page.locator(".term-note").count() == 1
        assert symbol.get_attribute("aria-expanded") == "true"
        assert len(symbol.locator("abbr").get_attribute("title")) > 20
        page.keyboard.press("Escape")
        assert page.locator(".term-note").count() == 0
        assert symbol.evaluate("each => each === document.activeElement")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # opens the list of all symbols
    assert page.locator("[data-help]").get_attribute("open") is not None
    assert page.evaluate("document.activeElement.id").startswith("symbol-")


def test_symbols_can_be_explained_on_a_phone(opened, address, asked):
    page = opened(address, asked, width=PHONE, has_touch=True)
    page.locator(".exchange .term[data-term=prestige]").tap()
    box = page.locator(".term-note").bounding_box()
    assert "√n · Γ" in page.locator(".term-note").text_content()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= PHONE
    page.locator("[data-who]").tap()
    assert page.locator(".term-note").count() == 0


def test_the_list_of_symbols_shows_this_runs_values(opened, address):
    page = opened(address, "#episode=40&step=0&agent=0")
    page.locator("[data-help] summary").click()
    assert "Here it is 0.05." in page.locator("#symbol-ask_scale").text_content()
    assert "Here it is 10." in page.locator("#symbol-start").text_content()
    assert "Here it is 0.6." in page.locator("#symbol-rate").text_content()
    assert "preset: paper" in page.locator("[data-settings]").text_content()


def test_reasons_for_silence_and_the_teachers_memory_are_shown(opened, tmp_path):
    share = small.CONS.share.changed(dict(teacher_memory=TeacherMemory.HISTORY, ask_gate=AskGate.EXPLOITING,
                                eligibility=Eligibility.MORE_HOPEFUL, hope_margin=0.5))  # fmt: skip
    config = dataclasses.replace(small.CONS, env="pettingzoo:some.module", set=(), num_envs=1, share=share)
    crowd = small.crowd(3)
    crowd.teachers["reply"][0, 2] = Reply.NOT_MORE_HOPEFUL
    run = Run(tmp_path, json.loads(config.to_json()), {}, [], None, None)
    page = opened(write_page([Viewed(run, config, [crowd])], tmp_path / "page.html").as_uri())
    words = page.locator(".teachers .is-silent [data-field='reply']").text_content()
    assert words == "silent: does not expect 0.5 more"
    assert "remembered the student's episode" in page.locator("[data-exchange] .note").first.text_content()
    page.locator("[data-help] summary").click()
    assert "who may teach: more-hopeful" in page.locator("[data-settings]").text_content()
    page.keyboard.press("1")  # an agent that explores, and so may not ask
    assert "had it not been exploring" in page.locator("[data-tells]").text_content()


def test_experts_beside_the_team_are_listed_but_not_drawn_on_the_board(opened, tmp_path):
    config = dataclasses.replace(small.CONS, env="pettingzoo:some.module", set=(), num_envs=1)
    run = Run(tmp_path, json.loads(config.to_json()), {}, [], None, None)
    page = opened(write_page([Viewed(run, config, [small.crowd(3, num_experts=3)])], tmp_path / "page.html").as_uri())
    lines = page.locator(".teachers tbody tr")
    shown = [(line.get_attribute("data-teacher"), line.locator("td").first.text_content()) for line in lines.all()]
    assert shown == [("1", "1"), ("5", "E2 expert 2"), ("2", "2"), ("3", "E0 expert 0"), ("4", "E1 expert 1")]
    assert "1 of 2 teammates and 1 of 3 experts answer." in page.locator("[data-tells]").text_content()
    assert "Experts (E) stand beside the team" in page.locator("[data-exchange]").text_content()
    assert page.locator(".team .given .agent").all_text_contents() == ["1", "E2"]
    assert [arrow.get_attribute("data-teacher") for arrow in page.locator(".arrows .arrow").all()] == ["1"]
    assert page.locator(".token").count() == 3
    gave = {(each.get_attribute("data-teacher"), each.get_attribute("data-student"))
            for each in page.locator(".taught [data-value='1']").all()}  # fmt: skip
    assert gave == {("1", "0"), ("5", "0")}
    assert (
        page.locator(".taught [data-teacher='5'][data-student='0']").get_attribute("title")
        == "expert 2 gave agent 0 1 answer"
    )


def test_many_silent_teammates_are_folded_into_one_line(opened, tmp_path):
    config = dataclasses.replace(small.CONS, env="pettingzoo:some.module", set=(), num_envs=1)
    run = Run(tmp_path, json.loads(config.to_json()), {}, [], None, None)
    page = opened(write_page([Viewed(run, config, [small.crowd(9)])], tmp_path / "page.html").as_uri())
    silent = page.locator(".teachers .is-silent")
    assert silent.count() == 7
    assert not any(line.is_visible() for line in silent.all())
    assert "7 are silent: knows less (7)." in page.locator(".folded").text_content()
    page.locator(".folded button").click()
    assert all(line.is_visible() for line in silent.all())
    page.keyboard.press("End")
    page.keyboard.press("Home")
    assert all(line.is_visible() for line in silent.all())


def test_the_n_key_goes_to_the_next_recorded_change(opened, address, cons_run):
    recorded = exchanges.read_episode(exchanges.episode_path(cons_run, 40))
    steps = recorded.steps
    is_changed = (steps["action"] != steps["own_action"]).any(axis=1)  # with no second draw, only advice changes it
    page = opened(address, "#episode=40&step=0&agent=0")
    for step in np.flatnonzero(is_changed[1:]) + 1:
        page.keyboard.press("n")
        _, at, agent = drawn(page)
        assert at == step
        assert steps["action"][step, agent] != steps["own_action"][step, agent]
        assert page.locator(".board .sign.changed").count() == (steps["action"] != steps["own_action"])[step].sum()
    page.keyboard.press("n")
    assert "no more changed choices" in page.locator("[data-where]").text_content()


def test_the_slider_and_the_strip_go_to_a_step(opened, address):
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


def test_choosing_an_episode_updates_the_board(opened, address, cons_run):
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


def test_totals_and_who_taught_whom_match_the_records(opened, address, cons_run):
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


def test_two_runs_are_compared_from_the_same_start(opened, pair_address, cons_run, adhoc_run):
    page = opened(pair_address, "#episode=40&step=0&agent=1")
    assert page.locator("[data-same-start]").text_content() == "Both start identically."
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


def test_values_and_rewards_of_compared_runs_share_one_scale(opened, pair_address, cons_run, adhoc_run):
    page = opened(pair_address, "#episode=40&step=3&agent=1")
    recorded = [exchanges.read_episode(exchanges.episode_path(run, 40)) for run in (cons_run, adhoc_run)]
    most = max(np.abs(each.steps["values"]).max() for each in recorded)
    for place, each in enumerate(recorded):
        widths = page.locator(".sees").nth(place).locator(".fill").evaluate_all(
            "all => all.map(each => parseFloat(each.style.width))"
        )  # fmt: skip
        assert widths == pytest.approx(50 * np.abs(each.steps["values"][3, 1]) / most, abs=1e-3)
    most = max(np.abs(each.steps["rewards"].sum(axis=1)).max() for each in recorded)
    for place, each in enumerate(recorded):
        tallest = page.locator(".strip").nth(place).locator(".gain, .loss").evaluate_all(
            "all => Math.max(0, ...all.map(each => Number(each.getAttribute('height'))))"
        )  # fmt: skip
        assert tallest == pytest.approx(10 * np.abs(each.steps["rewards"].sum(axis=1)).max() / most, rel=1e-3)


def test_the_difference_made_by_sharing_is_shown_with_its_interval(opened, twins):
    address, told, silent = twins
    page = opened(address, "#episode=s1&step=0&agent=1")
    differences = [
        float(np.sum(one.steps["rewards"] - other.steps["rewards"])) for one, other in zip(told, silent, strict=True)
    ]
    for place in range(2):
        pane = page.locator(".pane").nth(place)
        shown = [float(each.get_attribute("data-value")) for each in pane.locator("[data-field=difference]").all()]
        assert shown == pytest.approx(differences, abs=1e-3)
    mean = interval(differences)
    words = page.locator(".paired").text_content()
    for number in mean:
        assert f"+{number:.2f}" in words
    assert "n = 12 pairs" in words
    assert "Established for this checkpoint" in words
    assert "higher with sharing in 8, lower in 0 and the same in 4" in words
    assert page.locator(".pairs circle").count() == 12
    page.locator(".pairs circle[data-key=s5]").click()
    reach(page, "s5/0/1")
    assert page.locator(".pairs .is-shown").get_attribute("data-key") == "s5"
    assert page.locator(".charts:visible").count() == 1  # the charts of requests are hidden where nobody asks


def test_a_page_of_pairs_opens_where_the_pair_with_the_largest_gain_diverges(opened, twins):
    address, told, silent = twins
    gains = [np.sum(one.steps["rewards"] - other.steps["rewards"]) for one, other in zip(told, silent, strict=True)]
    pair = int(np.argmax(gains))
    page = opened(address)
    assert drawn(page) == (f"s{pair}", 3, 2)
    words = page.locator(".paired").text_content()
    assert f"Sharing gained most in Staged {pair}. Its two episodes part in step 3: agent 2 chooses" in words
    page.locator("[data-do=last]").click()
    page.locator("[data-turn]").click()
    reach(page, f"s{pair}/3/2")


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


def test_the_address_identifies_episode_step_and_agent(opened, address):
    page = opened(address, "#episode=59&step=4&agent=2")
    assert drawn(page) == ("59", 4, 2)
    page.keyboard.press("ArrowRight")
    assert page.url.endswith("#episode=59&step=5&agent=2")
    for nonsense in ("#episode=7&step=3&agent=0", "#step=999&agent=x", "#episode=<b>"):
        assert drawn(opened(address, nonsense))[0] in ("15", "40", "59")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, PHONE])
def test_the_page_fits_its_window_and_follows_the_theme(opened, address, pair_address, twins, theme, width):
    for place in (address, pair_address, twins[0]):
        page = opened(place, "#episode=40&step=3&agent=0", width=width, color_scheme=theme)
        page.locator("[data-help] summary").click()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        shade = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
        assert (sum(shade) < 3 * 60) is (theme == "dark")
        sizes = page.evaluate(
            "[...document.querySelectorAll('.small-chart text')].map(text => "
            "parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().d)"
        )
        assert min(sizes) >= 10
