"""`consmarl view`: which episodes a page shows, that they are shown as recorded, and which ones it plays itself."""

import dataclasses
import json
import re
from pathlib import Path

import jax
import numpy as np
import pytest

import consmarl
from consmarl.cli import main
from consmarl.environments.draw.scene import draw_scene
from consmarl.environments.draw.svg import hexadecimal
from consmarl.errors import UsageError
from consmarl.experiments import exchanges
from consmarl.experiments.configuration.pairs import settings_from
from consmarl.experiments.configuration.sharings import ShareOptions
from consmarl.reports.runs import Run
from consmarl.sharing.options import Consult, TeacherMemory
from consmarl.sharing.record import Reply
from consmarl.viewer.absorbed import absorbed
from consmarl.viewer.moments import start_of, states_of
from consmarl.viewer.packing import unpacked
from consmarl.viewer.page import write_page
from consmarl.viewer.staging import played_episodes
from consmarl.viewer.summaries import summary_of
from consmarl.viewer.view import view
from consmarl.viewer.viewed import Viewed
from tests.viewer import small
from tests.viewer.small import contents, record_of

WORLD = consmarl.make(small.CONS.env, **settings_from(small.CONS.set))
SHARING = ("cons", "adhoc-td")
SHARED = 15  # an episode in which knowledge is shared


def read_page(path):
    """Return a page's data about its runs, and its blocks, unpacked."""
    text = path.read_text(encoding="utf-8")
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    blocks = re.findall(r'<script type="text/plain" id="block-(\d+)">(.*?)</script>', text, re.DOTALL)
    assert [int(number) for number, _ in blocks] == list(range(len(blocks)))
    return json.loads(data)["runs"], [unpacked(block) for _, block in blocks]


def numbers_of(run):
    return [episode["number"] for episode in run["episodes"]]


def assert_same_bits(shown, recorded):
    assert shown.shape == recorded.shape
    assert shown.dtype == (np.uint8 if recorded.dtype == bool else recorded.dtype)
    assert shown.tobytes() == np.ascontiguousarray(recorded).tobytes()


@pytest.mark.parametrize("name", small.CONFIGS)
def test_a_page_contains_every_number_of_the_records(runs, name, tmp_path):
    (run,), blocks = read_page(view(runs[name], tmp_path / "page.html"))
    assert numbers_of(run) == list(small.RECORDED)
    for episode in run["episodes"]:
        _, shown = blocks[episode["block"]]
        recorded = record_of(runs[name], episode["number"])
        groups = ("steps/", "requests/", "teachers/")
        assert {each for each in shown if each.startswith(groups)} == {
            each for each in recorded if each.startswith(groups)
        }
        for each, rows in recorded.items():
            if each.startswith(groups):
                assert_same_bits(shown[each], rows)
        np.testing.assert_array_equal(shown["scene/cells"], recorded["world/agents"])
        assert episode["num_steps"] == len(recorded["steps/rewards"])


@pytest.mark.parametrize("name", SHARING)
def test_a_page_shows_the_effects_of_the_answers(runs, name, tmp_path):
    (run,), blocks = read_page(view(runs[name], tmp_path / "page.html"))
    sharing = small.CONFIGS[name].trainer().sharing
    for episode in run["episodes"]:
        recorded = exchanges.read_episode(exchanges.episode_path(runs[name], episode["number"]))
        found = absorbed(recorded, sharing)
        for field, rows in found._asdict().items():
            assert_same_bits(blocks[episode["block"]][1][f"absorbed/{field}"], rows)
        assert episode["summary"] == summary_of(recorded, found)
        assert (episode["summary"]["requests"] > 0) == (episode["number"] > small.CONS.share.start_episode)
    assert run["sharing"] == name
    assert run["start_episode"] == small.CONS.share.start_episode
    assert run["series"]["episode"] == [20, 40, 60]
    assert sum(episode["summary"]["changed"] for episode in run["episodes"]) > 0
    notes = [episode["note"] for episode in run["episodes"]]
    assert notes == ["before sharing", "soon after sharing began", "midway", "midway", "late in the run"]


@pytest.mark.parametrize("memory", TeacherMemory)
def test_a_page_says_what_teachers_remembered(memory, tmp_path):
    share = small.CONS.share.changed({"teacher_memory": memory})
    config = dataclasses.replace(small.CONS, env="pettingzoo:some.module", set=(), num_envs=1, share=share)
    viewed = Viewed(Run(tmp_path, json.loads(config.to_json()), {}, [], None, None), config, [small.crowd(3)])
    (run,), _ = read_page(write_page([viewed], tmp_path / "page.html"))
    assert run["remembered"].startswith("Teammates ")
    assert ("remembered the student's episode" in run["remembered"]) == (memory is TeacherMemory.HISTORY)
    assert ["what teachers remember", memory.value] in run["settings"]


def test_runs_without_sharing_can_be_viewed_too(runs, tmp_path):
    (run,), blocks = read_page(view(runs["iql"], tmp_path / "page.html"))
    assert run["sharing"] == "none"
    assert run["series"] == {"episode": []}
    assert not any(episode["summary"]["is_sharing"] for episode in run["episodes"])
    for _, shown in blocks:
        assert not [each for each in shown if each.startswith(("requests/", "teachers/", "absorbed/"))]
        assert {"steps/values", "scene/cells", "sees/codes"} <= shown.keys()


def test_agents_are_shown_with_their_observations(runs, tmp_path):
    (run,), blocks = read_page(view(runs["cons"], tmp_path / "page.html", episodes=[SHARED]))
    recorded = exchanges.read_episode(exchanges.episode_path(runs["cons"], SHARED))
    states = states_of(recorded, WORLD)
    assert states._asdict().keys() == recorded.world.keys()
    for field, rows in states._asdict().items():
        np.testing.assert_array_equal(rows, recorded.world[field], strict=True)
    _, shown = blocks[run["episodes"][0]["block"]]
    observe = jax.jit(WORLD.observe)
    assert len(shown["sees/codes"]) == recorded.num_steps
    for step, seen in enumerate(shown["sees/codes"]):
        state = jax.tree.map(lambda rows, at=step: rows[at], states)
        np.testing.assert_array_equal(seen, observe(state))


def test_every_state_is_drawn_as_recorded(runs, tmp_path):
    _, ((facts, shown),) = read_page(view(runs["cons"], tmp_path / "page.html", episodes=[59]))
    states = states_of(exchanges.read_episode(exchanges.episode_path(runs["cons"], 59)), WORLD)
    assert len(shown["scene/lines"]) == len(states.num_steps)
    for step in range(len(states.num_steps)):
        scene = draw_scene(WORLD, jax.tree.map(lambda rows, at=step: rows[at], states))
        for layer in ("below", "above"):
            ends = shown[f"scene/{layer}_ends"]
            start = ends[step - 1] if step else 0
            drawn = [facts["shapes"][number] for number in shown[f"scene/{layer}"][start : ends[step]]]
            assert drawn == getattr(scene, layer)
        np.testing.assert_array_equal(shown["scene/agents"][step], scene.agents)
        assert facts["lines"][shown["scene/lines"][step]] == list(scene.lines)
        for numbers, gauges in zip(shown["scene/gauges"][step], scene.gauges, strict=True):
            for number, gauge in zip(numbers, gauges, strict=True):
                told = facts["gauges"][number]
                assert told["share"] == pytest.approx(gauge.share, abs=1e-4)
                assert told["colour"] == hexadecimal(gauge.colour)
                assert (told["number"], told["is_complete"]) == (gauge.number, gauge.is_complete)


def test_the_page_is_written_to_the_runs_directory_by_default(copied, tmp_path):
    run = copied("iql")
    before = contents(run)
    assert view(run) == run / "exchange.html"
    page = (run / "exchange.html").read_bytes()
    assert contents(run).keys() - before.keys() == {Path("exchange.html")}
    (run / "exchange.html").unlink()
    assert view(str(run), tmp_path / "new" / "page.html") == tmp_path / "new" / "page.html"
    assert (tmp_path / "new" / "page.html").read_bytes() == page
    assert contents(run) == before


def test_episodes_are_chosen_by_number_and_shown_in_order(runs, tmp_path):
    (run,), blocks = read_page(view(runs["iql"], tmp_path / "page.html", episodes=[59, 0, 59]))
    assert numbers_of(run) == [0, 59]
    assert len(blocks) == 2
    assert [episode["key"] for episode in run["episodes"]] == ["0", "59"]


def test_two_runs_are_compared_on_the_episodes_that_both_have(runs, copied, tmp_path):
    fewer = copied("adhoc-td")
    exchanges.episode_path(fewer, 40).unlink()
    both, blocks = read_page(view([runs["cons"], fewer], tmp_path / "page.html"))
    assert [run["name"] for run in both] == ["CONS", "AdHocTD"]
    assert [numbers_of(run) for run in both] == [[0, 15, 30, 59]] * 2
    assert [episode["block"] for run in both for episode in run["episodes"]] == list(range(8))
    starts = [[episode["start"] for episode in run["episodes"]] for run in both]
    assert starts[0] == starts[1]  # runs with one seed start their episodes alike
    assert len(set(starts[0])) == 4
    for place, name in ((0, "cons"), (4, "adhoc-td")):
        assert_same_bits(blocks[place][1]["steps/values"], record_of(runs[name], 0)["steps/values"])


def test_a_name_that_looks_like_markup_is_escaped(copied):
    run = copied("iql")
    facts = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(facts | {"label": "</script><b>&"}))
    page = view(run, episodes=[0])
    (described,), _ = read_page(page)
    assert described["name"] == "</script><b>&, seed 0"
    assert "<b>" not in page.read_text(encoding="utf-8")


def test_a_lone_surrogate_in_a_label_is_replaced(copied):
    run = copied("iql")
    facts = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(facts | {"label": "half \ud800"}))
    assert "half \N{REPLACEMENT CHARACTER}" in view(run, episodes=[0]).read_text(encoding="utf-8")


def test_invalid_facts_in_a_header_are_refused(copied):
    run = copied("iql")
    path, arrays = exchanges.episode_path(run, 0), record_of(run, 0)
    header = json.loads(str(arrays["header"])) | {"after": "x"}
    with path.open("wb") as file:
        np.savez(file, **(arrays | {"header": np.array(json.dumps(header))}))
    with pytest.raises(UsageError, match="is damaged: its header"):
        view(run, episodes=[0])


def staged_part(run):
    return [episode for episode in run["episodes"] if episode["kind"] != exchanges.TRAINING]


@pytest.fixture(scope="module")
def staged(runs, tmp_path_factory):
    """Write a page of two runs with staged and greedy episodes; return it, a function for more, and the runs' files."""
    directory = tmp_path_factory.mktemp("staged")

    def write(name, **changes):
        return view([runs[each] for each in SHARING], directory / name, **(dict(staged=2, greedy=1, seed=7) | changes))

    before = [contents(runs[each]) for each in SHARING]
    page = write("page.html")
    return page, write, before


def test_staged_episodes_start_the_same_in_every_run(staged):
    both, blocks = read_page(staged[0])
    for run in both:
        assert numbers_of(run)[: len(small.RECORDED)] == list(small.RECORDED)
        assert [episode["key"] for episode in staged_part(run)] == ["s0", "s1", "e0"]
        assert [episode["note"] for episode in staged_part(run)][1:] == [
            "played like training, after 60 episodes",
            "greedy, without sharing, after 60 episodes",
        ]
        assert [episode["summary"]["is_sharing"] for episode in staged_part(run)] == [True, True, False]
        assert staged_part(run)[0]["summary"]["requests"] > 0
    starts = [[episode["start"] for episode in staged_part(run)] for run in both]
    assert starts[0] == starts[1]
    assert starts[0][0] != starts[0][1]
    cells = [blocks[staged_part(run)[0]["block"]][1]["scene/cells"][0] for run in both]
    np.testing.assert_array_equal(*cells)


def test_the_same_seed_gives_the_same_page_and_another_seed_other_starts(staged):
    page, write, _ = staged
    assert write("again.html").read_bytes() == page.read_bytes()
    starts, others = (
        [episode["start"] for episode in staged_part(read_page(each)[0][0])]
        for each in (page, write("other.html", seed=8, episodes=[0]))
    )
    assert not set(starts) & set(others)


def test_agents_that_ask_in_half_of_the_episodes_ask_in_some_staged_ones(runs):
    config = dataclasses.replace(small.CONS, share=ShareOptions(start_episode=10, ask_scale=0.05, ask_share=0.5))
    asking = [set(each.requests["student"].tolist()) for each in played_episodes(runs["cons"], config, staged=8)]
    assert any(len(students) < 3 for students in asking)
    assert set.union(*asking) == {0, 1, 2}


def test_staged_episodes_continue_from_the_state_of_training(staged, runs):
    both, blocks = read_page(staged[0])
    for run, name in zip(both, SHARING, strict=True):
        before = record_of(runs[name], small.RECORDED[-1])
        _, shown = blocks[staged_part(run)[0]["block"]]
        assert 0.9 < shown["steps/epsilon"][-1] < shown["steps/epsilon"][0] <= before["steps/epsilon"][-1]
        assert shown["steps/is_exploring"].any()
        # counts and budgets continue from where the run stopped
        assert (shown["steps/requests_left"][0] <= before["steps/requests_left"][-1]).all()
        assert shown["steps/num_visits"][0].max() > 1


def test_viewing_runs_does_not_change_them(staged, runs):
    assert [contents(runs[each]) for each in SHARING] == staged[2]


def test_greedy_episodes_take_the_actions_with_the_highest_values(staged):
    both, blocks = read_page(staged[0])
    _, shown = blocks[staged_part(both[0])[-1]["block"]]
    assert not shown["steps/is_exploring"].any()
    assert not shown["steps/epsilon"].any()
    np.testing.assert_array_equal(shown["steps/action"], shown["steps/values"].argmax(axis=-1))


def first_change(recorded):
    """Return the first step in which advice made an agent choose another action than its own, or None."""
    requests, steps = recorded.requests, recorded.steps
    at = requests["step"], requests["student"]
    changed = requests["step"][requests["is_advised"] & (steps["action"][at] != steps["own_action"][at])]
    return int(changed.min()) if len(changed) else None


@pytest.mark.parametrize("name", SHARING)
def test_twins_without_sharing_are_identical_up_to_the_first_changed_action(runs, name):
    told, silent = (
        played_episodes(runs[name], small.CONFIGS[name], staged=2, seed=3, is_silent=is_silent)
        for is_silent in (False, True)
    )
    assert any(first_change(recorded) is not None for recorded in told)
    for recorded, twin in zip(told, silent, strict=True):
        change = first_change(recorded)
        last = recorded.num_steps if change is None else change
        assert len(twin.requests["step"]) == 0
        assert not twin.steps["is_asking"].any()
        np.testing.assert_array_equal(twin.steps["action"], twin.steps["own_action"])
        assert start_of(recorded) == start_of(twin)
        for field, rows in recorded.world.items():
            np.testing.assert_array_equal(rows[: last + 1], twin.world[field][: last + 1])
        # in the step of the change, what precedes the actions is still the same, and what follows is not
        for field in ("values", "is_exploring", "own_action", "num_visits", "ask_probability", "epsilon"):
            np.testing.assert_array_equal(recorded.steps[field][: last + 1], twin.steps[field][: last + 1])
        for field in ("rewards", "action"):
            np.testing.assert_array_equal(recorded.steps[field][:last], twin.steps[field][:last])
        if change is not None:
            assert (recorded.steps["action"][change] != twin.steps["action"][change]).any()


def test_a_run_is_compared_with_itself_without_sharing(runs, tmp_path):
    page = view(runs["cons"], tmp_path / "page.html", staged=2, seed=3, without_sharing=True)
    (told, silent), blocks = read_page(page)
    assert (told["name"], silent["name"]) == ("CONS, with sharing", "CONS, nobody asks")
    assert [[episode["key"] for episode in run["episodes"]] for run in (told, silent)] == [["s0", "s1"]] * 2
    assert [each["start"] for each in told["episodes"]] == [each["start"] for each in silent["episodes"]]
    assert {episode["kind"] for episode in silent["episodes"]} == {exchanges.SILENT}
    assert all(episode["summary"]["requests"] > 0 for episode in told["episodes"])
    assert all(episode["summary"]["requests"] == 0 for episode in silent["episodes"])
    played = played_episodes(runs["cons"], small.CONS, staged=2, seed=3)
    assert_same_bits(blocks[told["episodes"][1]["block"]][1]["steps/values"], played[1].steps["values"])


def test_an_unfinished_run_can_be_viewed(copied):
    run = copied("cons")
    for name in ("metrics.jsonl", "result.json", "run.json"):
        (run / name).unlink()
    (described,), blocks = read_page(view(run))
    assert described["series"] == {"episode": []}
    assert len(blocks) == len(small.RECORDED)


def test_the_command_writes_the_page_and_says_where(runs, tmp_path, capsys):
    out = tmp_path / "x.html"
    assert main(["view", str(runs["cons"]), "--episode", "15", "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"wrote {out}\n"
    (run,), _ = read_page(out)
    assert numbers_of(run) == [15]


def test_a_report_writes_and_links_the_pages_of_recorded_runs(copied, tmp_path, capsys):
    run = copied("cons")
    for path in (run / "exchange.html", run / "policy.safetensors"):
        path.unlink(missing_ok=True)
    report = [str(each) for each in ("report", run, "--no-gifs", "--out", tmp_path / "report.html")]
    main([*report, "--no-views"])
    assert not (run / "exchange.html").exists()
    assert "exchange.html" not in (tmp_path / "report.html").read_text(encoding="utf-8")
    main(report)
    assert f"wrote {run / 'exchange.html'}" in capsys.readouterr().out
    assert 'href="run/exchange.html"' in (tmp_path / "report.html").read_text(encoding="utf-8")
    written = (run / "exchange.html").stat().st_mtime_ns
    main(report)  # a page that is newer than every record is not written again
    assert (run / "exchange.html").stat().st_mtime_ns == written
    exchanges.episode_path(run, SHARED).write_bytes(b"damaged")
    main(report)
    assert "no page for the exchanges" in capsys.readouterr().err
    assert 'href="run/exchange.html"' in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("mode", [Consult.VOTE, Consult.CONS])
def test_a_run_is_compared_with_itself_when_agents_consult_each_other(runs, tmp_path, mode):
    page = view(runs["cons"], tmp_path / "page.html", greedy=2, seed=3, consult=mode.value)
    (consulted, alone), blocks = read_page(page)
    assert (consulted["name"], alone["name"]) == ("CONS, consulting the team", "CONS, each on its own")
    assert (consulted["sharing"], alone["sharing"]) == ("consulting", "none")
    assert [each["start"] for each in consulted["episodes"]] == [each["start"] for each in alone["episodes"]]
    for number, episode in enumerate(consulted["episodes"]):
        played = played_episodes(runs["cons"], small.CONS, greedy=2, seed=3, consult=mode)[number]
        summary = episode["summary"]
        assert summary["requests"] == played.num_steps * played.num_agents
        assert summary["answers"] == (played.teachers["reply"] == Reply.ANSWERED).sum()
        assert_same_bits(blocks[episode["block"]][1]["requests/modified"], played.requests["modified"])
    assert "Consulting and alone" in page.read_text()
