"""`consmarl view`: which episodes a page shows, that it shows them as they were, and what it refuses."""

import dataclasses
import io
import json
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import jax
import numpy as np
import pytest

import consmarl
from consmarl import UsageError
from consmarl.cli import main
from consmarl.environments.draw.scene import draw_scene
from consmarl.environments.draw.svg import hexadecimal
from consmarl.experiments import exchanges
from consmarl.experiments.settings import settings_from
from consmarl.experiments.train import train
from consmarl.viewer.absorbed import absorbed
from consmarl.viewer.moments import start_of, states_of
from consmarl.viewer.packing import unpacked
from consmarl.viewer.staging import played_episodes
from consmarl.viewer.summaries import summary_of
from consmarl.viewer.view import view
from tests.experiments.small import COMMAND
from tests.viewer import small

pytestmark = pytest.mark.usefixtures("compile_quickly")

WORLD = consmarl.make(small.CONS.env, **settings_from(small.CONS.set))
CONFIGS = {"cons": small.CONS, "adhoc-td": small.ADHOC_TD, "iql": small.IQL}
SHARING = ("cons", "adhoc-td")
DAMAGED = 15  # the episode whose record is damaged; knowledge is shared in it


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    directory = tmp_path_factory.mktemp("runs")
    return {name: train(config, directory / name) for name, config in CONFIGS.items()}


@pytest.fixture
def copied(runs, tmp_path):
    """Return a function that copies what a page is made of, all but the checkpoints."""

    def copied(name, to="run"):
        copy = tmp_path / to
        shutil.copytree(runs[name], copy, ignore=shutil.ignore_patterns("checkpoints", "events"))
        return copy

    return copied


def read_page(path):
    """Return what a page knows of its runs, and its blocks, unpacked."""
    text = path.read_text(encoding="utf-8")
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    blocks = re.findall(r'<script type="text/plain" id="block-(\d+)">(.*?)</script>', text, re.DOTALL)
    assert [int(number) for number, _ in blocks] == list(range(len(blocks)))
    return json.loads(data)["runs"], [unpacked(block) for _, block in blocks]


def numbers_of(run):
    return [episode["number"] for episode in run["episodes"]]


def record_of(run, number):
    with np.load(run / "exchanges" / f"episode-{number:09d}.npz") as archive:
        return {name: archive[name] for name in archive.files}


def contents(directory):
    """Return all that can be told of a directory's files."""
    return {
        path.relative_to(directory): (path.stat().st_mtime_ns, path.read_bytes())
        for path in directory.rglob("*")
        if path.is_file()
    }


def assert_same_bits(shown, recorded):
    assert shown.shape == recorded.shape
    assert shown.dtype == (np.uint8 if recorded.dtype == bool else recorded.dtype)
    assert shown.tobytes() == np.ascontiguousarray(recorded).tobytes()


@pytest.mark.parametrize("name", CONFIGS)
def test_a_page_holds_every_number_of_the_records(runs, name, tmp_path):
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
def test_a_page_tells_what_became_of_the_answers(runs, name, tmp_path):
    (run,), blocks = read_page(view(runs[name], tmp_path / "page.html"))
    sharing = CONFIGS[name].trainer().sharing
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
    assert notes == ["before sharing", "soon after sharing began", "later", "late in the run"]


def test_runs_in_which_nobody_shares_can_be_seen_too(runs, tmp_path):
    (run,), blocks = read_page(view(runs["iql"], tmp_path / "page.html"))
    assert run["sharing"] == "none"
    assert run["series"] == {"episode": []}
    assert not any(episode["summary"]["is_sharing"] for episode in run["episodes"])
    for _, shown in blocks:
        assert not [each for each in shown if each.startswith(("requests/", "teachers/", "absorbed/"))]
        assert {"steps/values", "scene/cells", "sees/codes"} <= shown.keys()


def test_agents_are_shown_with_what_they_saw(runs, tmp_path):
    (run,), blocks = read_page(view(runs["cons"], tmp_path / "page.html", episodes=[DAMAGED]))
    recorded = exchanges.read_episode(exchanges.episode_path(runs["cons"], DAMAGED))
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


def test_every_state_is_drawn_as_it_was(runs, tmp_path):
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


def test_the_page_lies_in_the_run_unless_told_otherwise(copied, tmp_path):
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
    assert [numbers_of(run) for run in both] == [[0, 15, 59]] * 2
    assert [episode["block"] for run in both for episode in run["episodes"]] == list(range(6))
    starts = [[episode["start"] for episode in run["episodes"]] for run in both]
    assert starts[0] == starts[1]  # with one seed, runs meet the same worlds
    assert len(set(starts[0])) == 3
    for place, name in ((0, "cons"), (3, "adhoc-td")):
        assert_same_bits(blocks[place][1]["steps/values"], record_of(runs[name], 0)["steps/values"])


def test_a_name_that_looks_like_markup_stays_a_name(copied):
    run = copied("iql")
    facts = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(facts | {"label": "</script><b>&"}))
    page = view(run, episodes=[0])
    (described,), _ = read_page(page)
    assert described["name"] == "</script><b>&, seed 0"
    assert "<b>" not in page.read_text(encoding="utf-8")


def staged_part(run):
    return [episode for episode in run["episodes"] if episode["kind"] != exchanges.TRAINING]


@pytest.fixture(scope="module")
def staged(runs, tmp_path_factory):
    """Write a page of two runs with staged and greedy episodes; return it and how to write others like it."""
    directory = tmp_path_factory.mktemp("staged")

    def write(name, **changes):
        return view([runs[each] for each in SHARING], directory / name, **(dict(staged=2, greedy=1, seed=7) | changes))

    before = [contents(runs[each]) for each in SHARING]
    page = write("page.html")
    return page, write, before


def test_staged_episodes_start_alike_whatever_the_run(staged):
    both, blocks = read_page(staged[0])
    for run in both:
        assert numbers_of(run)[:4] == list(small.RECORDED)
        assert [episode["key"] for episode in staged_part(run)] == ["s0", "s1", "e0"]
        assert [episode["note"] for episode in staged_part(run)][1:] == [
            "as training goes on after 60 episodes",
            "greedy, without sharing, after 60 episodes",
        ]
        assert [episode["summary"]["is_sharing"] for episode in staged_part(run)] == [True, True, False]
        assert staged_part(run)[0]["summary"]["requests"] > 0
    starts = [[episode["start"] for episode in staged_part(run)] for run in both]
    assert starts[0] == starts[1]
    assert starts[0][0] != starts[0][1]
    cells = [blocks[staged_part(run)[0]["block"]][1]["scene/cells"][0] for run in both]
    np.testing.assert_array_equal(*cells)


def test_the_same_seed_writes_the_same_page_and_another_one_other_starts(staged):
    page, write, _ = staged
    assert write("again.html").read_bytes() == page.read_bytes()
    starts, others = (
        [episode["start"] for episode in staged_part(read_page(each)[0][0])]
        for each in (page, write("other.html", seed=8, episodes=[0]))
    )
    assert not set(starts) & set(others)


def test_staged_episodes_are_played_as_training_goes_on(staged, runs):
    both, blocks = read_page(staged[0])
    for run, name in zip(both, SHARING, strict=True):
        before = record_of(runs[name], small.RECORDED[-1])
        _, shown = blocks[staged_part(run)[0]["block"]]
        assert 0.9 < shown["steps/epsilon"][-1] < shown["steps/epsilon"][0] <= before["steps/epsilon"][-1]
        assert shown["steps/is_exploring"].any()
        # counts and budgets are those that the run has come to
        assert (shown["steps/requests_left"][0] <= before["steps/requests_left"][-1]).all()
        assert shown["steps/num_visits"][0].max() > 1


def test_looking_at_runs_leaves_them_as_they_were(staged, runs):
    assert [contents(runs[each]) for each in SHARING] == staged[2]


def test_greedy_episodes_do_what_is_valued_most(staged):
    both, blocks = read_page(staged[0])
    _, shown = blocks[staged_part(both[0])[-1]["block"]]
    assert not shown["steps/is_exploring"].any()
    np.testing.assert_array_equal(shown["steps/action"], shown["steps/values"].argmax(axis=-1))


def first_change(recorded):
    """Return the first step in which somebody followed answers to another action than its own, or none."""
    requests, steps = recorded.requests, recorded.steps
    at = requests["step"], requests["student"]
    changed = requests["step"][requests["is_advised"] & (steps["action"][at] != steps["own_action"][at])]
    return int(changed.min()) if len(changed) else None


@pytest.mark.parametrize("name", SHARING)
def test_silent_twins_are_the_same_up_to_the_first_choice_that_answers_changed(runs, name):
    told, silent = (
        played_episodes(runs[name], CONFIGS[name], staged=2, seed=3, is_silent=is_silent) for is_silent in (False, True)
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
        # what comes before the actions is the same in that step still, what comes after is not
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


def bare_run(directory, config):
    """A run that has not begun: it has a configuration and nothing else."""
    directory.mkdir()
    (directory / "config.json").write_text(config.to_json())
    return directory


def assert_refused(sentence, runs, out, **options):
    """Look at runs that cannot be looked at: there is one sentence, and no file has changed or come."""
    before = contents(out.parent)
    with pytest.raises(UsageError, match=sentence) as refused:
        view(runs, out, **options)
    assert len(str(refused.value).splitlines()) == 1
    assert str(refused.value).endswith(".")
    assert contents(out.parent) == before


def test_one_run_or_two(runs, tmp_path):
    assert_refused("name one run to look at, or two to compare, not 0", [], tmp_path / "page.html")
    assert_refused("two to compare, not 3", list(runs.values()), tmp_path / "page.html")


def test_runs_in_different_worlds_cannot_be_compared(runs, tmp_path):
    set = (*small.CONS.set[:-1], "episode_limit=9")
    other = bare_run(tmp_path / "other", dataclasses.replace(small.CONS, set=set))
    assert_refused("different worlds cannot be compared: .* in pgm-3ag .*episode_limit=8, .*episode_limit=9",
                   [runs["cons"], other], tmp_path / "page.html")  # fmt: skip


def test_episodes_that_were_not_recorded_are_named(runs, copied, tmp_path):
    out = tmp_path / "page.html"
    assert_refused("no record of episode 16: it has 0, 15, 40, 59", runs["cons"], out, episodes=[15, 16])
    empty = bare_run(tmp_path / "empty", small.CONS)
    assert_refused("no record of episode 0: it has recorded none", empty, out, episodes=[0])
    assert_refused("empty has recorded no episode: train with `--record NUMBER …`", empty, out)
    assert_refused("empty has recorded no episode", [runs["cons"], empty], out)
    early, late = copied("cons", "early"), copied("adhoc-td", "late")
    for run, numbers in ((early, (40, 59)), (late, (0, 15))):
        for number in numbers:
            exchanges.episode_path(run, number).unlink()
    assert_refused("no episode is recorded in both runs: .*early has 0, 15 and .*late has 40, 59", [early, late], out)
    assert_refused("late has no record of episode 0", [early, late], out, episodes=[0])


def test_directories_that_are_no_runs_are_named(runs, tmp_path):
    out = tmp_path / "page.html"
    (tmp_path / "nothing").mkdir()
    assert_refused("nothing is not the directory of a run: it has no config.json", tmp_path / "nothing", out)
    assert_refused("nowhere is not the directory of a run", [runs["cons"], tmp_path / "nowhere"], out)


@pytest.mark.parametrize(
    ("names", "options", "sentence"),
    [
        (("cons", "adhoc-td"), dict(staged=2), "compares staged episodes of one run"),
        (("cons",), {}, "say how many by --staged"),
        (("cons",), dict(staged=2, greedy=1), "compares staged episodes of one run"),
        (("cons",), dict(staged=2, episodes=[15]), "compares staged episodes of one run"),
        (("iql",), dict(staged=2), "nobody shares knowledge in .*iql, so there is nothing to compare"),
    ],
)
def test_without_sharing_takes_staged_episodes_of_one_run_that_shares(runs, tmp_path, names, options, sentence):
    chosen = [runs[name] for name in names]
    assert_refused(sentence, chosen, tmp_path / "page.html", without_sharing=True, **options)


@pytest.mark.parametrize("options", [dict(staged=-1), dict(greedy=-1), dict(seed=-1), dict(episodes=[-1])])
def test_numbers_below_zero_are_refused(runs, tmp_path, options):
    assert_refused("must be a whole number of at least 0", runs["iql"], tmp_path / "page.html", **options)


def changed(**changes):
    """A damage: arrays of a record by new ones, or by none; `/` is written as `__`."""

    def damage(path):
        with np.load(path) as archive:
            arrays = {name: archive[name] for name in archive.files}
        for name, change in changes.items():
            whole = name.replace("__", "/")
            arrays[whole] = change(arrays[whole])
        with path.open("wb") as file:
            np.savez(file, **{name: rows for name, rows in arrays.items() if rows is not None})

    return damage


def header(**changes):
    def with_changes(told):
        facts = json.loads(str(told)) | changes
        return np.array(json.dumps({name: value for name, value in facts.items() if value is not None}))

    return changed(header=with_changes)


def with_first(value):
    def with_first(rows):
        rows.flat[0] = value
        return rows

    return with_first


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(place):
    """Change a byte: `place` tells where, from the file's bytes."""

    def damage(path):
        whole = bytearray(path.read_bytes())
        whole[place(whole)] ^= 0xFF
        path.write_bytes(whole)

    return damage


def middle_of_values(whole):
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        part = archive.getinfo("steps/values.npy")
    lengths = np.frombuffer(whole, "<u2", 2, part.header_offset + 26)  # of a name and of what follows it
    return part.header_offset + 30 + int(lengths.sum()) + part.compress_size // 2


def directory_start(whole):
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        return archive.start_dir


def an_array(path):
    with path.open("wb") as file:
        np.save(file, np.zeros(3))


def a_zip_of_texts(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header", "{}")


def text_instead_of(name):
    """An array that is no array: a text lies under its name."""

    def damage(path):
        with zipfile.ZipFile(path) as archive:
            parts = {each: archive.read(each) for each in archive.namelist()}
        with zipfile.ZipFile(path, "w") as archive:
            for each, whole in parts.items():
                archive.writestr(each, b"a text" if each == f"{name}.npy" else whole)

    return damage


def all_of(*groups):
    """Change whole groups of arrays alike, so that they still fit together."""

    def by(change):
        def damage(path):
            names = [name for name in record_of(path.parent.parent, DAMAGED) if name.startswith(groups)]
            changed(**{name.replace("/", "__"): change for name in names})(path)

        return damage

    return by


def longer(path):
    """Let the first step be ten times as long ago: steps and states fit together, but no episode has so many."""
    all_of("steps/", "world/")(lambda rows: np.concatenate([rows[:1]] * 10 + [rows]))(path)


DAMAGES = {
    "cut off": (cut, "is not a recorded episode, or it is damaged"),
    "empty": (lambda path: path.write_bytes(b""), "is not a recorded episode, or it is damaged"),
    "a byte of the numbers": (flip(middle_of_values), "is not a recorded episode, or it is damaged"),
    # what says how the first part is compressed, and how it is protected
    "a byte of the directory": (flip(lambda whole: directory_start(whole) + 10), "or it is damaged"),
    "a flag of the directory": (flip(lambda whole: directory_start(whole) + 8), "or it is damaged"),
    "an array too few": (changed(requests__modified=lambda _: None), "damaged: it lacks requests/modified"),
    "no states": (changed(world__agents=lambda _: None), "does not fit pgm-3ag: its world has no agents of int32"),
    "a request too many": (changed(requests__step=lambda rows: np.append(rows, rows[:1])), "does not fit the others"),
    "an action too few": (changed(steps__values=lambda rows: rows[:, :, 1:]), "does not fit the others"),
    "an axis too many": (changed(teachers__reply=lambda rows: rows[..., None]), "does not fit the others"),
    "no end": (changed(world__agents=lambda rows: rows[:-1]), "world/agents is of shape .* does not fit the others"),
    "an agent too few in the world": (changed(world__agents=lambda rows: rows[:, 1:]), "its world has no agents of"),
    "other numbers": (changed(steps__action=lambda rows: rows.astype(np.float32)), "steps/action is of type float32"),
    "wider numbers": (changed(requests__step=lambda rows: rows.astype(np.int64)), "requests/step is of type int64"),
    "not a number": (changed(teachers__prestige=with_first(np.nan)), "prestige has numbers that are not finite"),
    "beyond all numbers": (changed(steps__rewards=with_first(np.inf)), "rewards has numbers that are not finite"),
    "an action beyond the last": (changed(steps__action=with_first(5)), "steps/action points beyond what there is"),
    "an advice beyond the last": (changed(teachers__best_action=with_first(5)), "best_action points beyond"),
    "a student beyond the last": (changed(requests__student=with_first(3)), "requests/student points beyond"),
    "a step before the first": (changed(requests__step=with_first(-1)), "requests/step points beyond"),
    "no such reply": (changed(teachers__reply=with_first(9)), "teachers/reply has a reply that there is not"),
    "more requests than can be": (
        all_of("requests/", "teachers/")(lambda rows: np.concatenate([rows] * 20)), "is damaged"
    ),
    "all that was said": (all_of("requests/", "teachers/")(lambda _: None), "is damaged: it lacks requests/"),
    "more steps than can be": (longer, "damaged"),
    "not a step": (
        lambda path: (all_of("steps/", "requests/", "teachers/")(lambda rows: rows[:0])(path),
                      all_of("world/")(lambda rows: rows[:1])(path)),
        "is damaged",
    ),
    "another version": (header(format="consmarl-exchange-1"), "by another version, as consmarl-exchange-1: this one"),
    "no format": (header(format=None), "is not a recorded episode: its header should say"),
    "no configuration": (header(config=None), "is damaged: its header lacks config"),
    "a header that is a list": (changed(header=lambda _: np.array("[]")), "is not a recorded episode"),
    "a header that is no JSON": (changed(header=lambda _: np.array("{")), "is not a recorded episode"),
    "something else": (lambda path: np.savez(path, values=np.zeros(3)), "is not a recorded episode"),
    "an array": (an_array, "is not a recorded episode"),
    "texts": (a_zip_of_texts, "is not a recorded episode"),
    "a text for an array": (text_instead_of("steps/values"), "is damaged"),
    "another episode": (header(episode=16), "is a record of another run, episode 16 .*in pgm-3ag with seed 0"),
    "another seed": (header(config=json.loads(small.CONS.to_json()) | {"seed": 1}), "another run, .* with seed 1"),
    "another world": (header(config=json.loads(small.CONS.to_json()) | {"env": "ft"}), "another run, .* in ft"),
}  # fmt: skip


@pytest.fixture
def damaged(copied):
    """Return a function that makes a run with a page, one of whose records is damaged."""

    def damaged(damage):
        run = copied("cons")
        for number in small.RECORDED:
            if number != DAMAGED:
                exchanges.episode_path(run, number).unlink()
        (run / "exchange.html").write_text("the page that was there")
        damage(exchanges.episode_path(run, DAMAGED))
        return run

    return damaged


@pytest.mark.parametrize("kind", DAMAGES)
def test_a_damaged_record_is_refused_and_the_old_page_stays(kind, damaged):
    damage, sentence = DAMAGES[kind]
    run = damaged(damage)
    assert_refused(sentence, run, run / "exchange.html")
    assert_refused(sentence, run, run.parent / "page.html")
    assert (run / "exchange.html").read_text() == "the page that was there"


def test_no_array_of_a_record_can_be_missed(damaged):
    run = damaged(lambda path: path)
    path = exchanges.episode_path(run, DAMAGED)
    whole = path.read_bytes()
    names = record_of(run, DAMAGED).keys() - {"header"}
    assert len(names) > 30
    for name in sorted(names):
        changed(**{name.replace("/", "__"): lambda _: None})(path)
        assert_refused(f"lacks {name}|has no {name.partition('/')[2]} of", run, run / "exchange.html")
        path.write_bytes(whole)
    assert view(run).stat().st_size > len(whole)


def test_a_record_of_another_run_is_refused(runs, copied):
    other = copied("cons")
    shutil.copy(exchanges.episode_path(runs["adhoc-td"], DAMAGED), exchanges.episode_path(other, DAMAGED))
    assert_refused("is a record of another run", other, other / "exchange.html")


def test_an_unfinished_run_can_be_looked_at(copied):
    run = copied("cons")
    for name in ("metrics.jsonl", "result.json", "run.json"):
        (run / name).unlink()
    (described,), blocks = read_page(view(run))
    assert described["series"] == {"episode": []}
    assert len(blocks) == len(small.RECORDED)


def test_nothing_can_be_staged_before_the_first_checkpoint(tmp_path):
    assert_refused("no whole checkpoint", bare_run(tmp_path / "run", small.IQL), tmp_path / "page.html", staged=1)


def test_one_damaged_record_among_two_runs_is_refused(runs, damaged):
    run = damaged(cut)
    assert_refused("damaged", [runs["adhoc-td"], run], run / "exchange.html")


def test_the_command_writes_the_page_and_says_where(runs, tmp_path, capsys):
    out = tmp_path / "x.html"
    assert main(["view", str(runs["cons"]), "--episode", "15", "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"wrote {out}\n"
    (run,), _ = read_page(out)
    assert numbers_of(run) == [15]


def test_the_command_refuses_a_damaged_record_in_one_line(damaged):
    run = damaged(cut)
    result = subprocess.run([COMMAND, "view", run], capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 2
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert re.fullmatch(r"consmarl: .* is not a recorded episode, or it is damaged \(.*\)\.\n", result.stderr)
    assert (run / "exchange.html").read_text() == "the page that was there"
