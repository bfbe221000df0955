"""What `consmarl view` refuses: wrong choices and damaged records, in one sentence and without changing a file."""

import dataclasses
import io
import json
import re
import shutil
import zipfile

import numpy as np
import pytest

from consmarl import TrainConfig, UsageError
from consmarl.experiments import exchanges
from consmarl.viewer.view import TELLING, _is_of_this_run, view
from tests.calling import consmarl
from tests.viewer import small
from tests.viewer.small import contents, record_of

DAMAGED = 15  # the episode whose record is damaged; knowledge is shared in it


def bare_run(directory, config):
    """A run that has not begun: it has only a configuration."""
    directory.mkdir()
    (directory / "config.json").write_text(config.to_json())
    return directory


def assert_refused(sentence, runs, out, **options):
    """Check that these runs are refused in one sentence, and that no file is changed or added."""
    before = contents(out.parent)
    with pytest.raises(UsageError, match=sentence) as refused:
        view(runs, out, **options)
    assert len(str(refused.value).splitlines()) == 1
    assert str(refused.value).endswith(".")
    assert contents(out.parent) == before


def test_only_one_or_two_runs_are_accepted(runs, tmp_path):
    assert_refused("name one run to view or two to compare, not 0", [], tmp_path / "page.html")
    assert_refused("two to compare, not 3", [runs["cons"]] * 3, tmp_path / "page.html")


def test_runs_in_different_environments_cannot_be_compared(runs, tmp_path):
    set = (*small.CONS.set[:-1], "episode_limit=9")
    other = bare_run(tmp_path / "other", dataclasses.replace(small.CONS, set=set))
    assert_refused("different environments cannot be compared: .* in pgm-3ag .*episode_limit=8, .*episode_limit=9",
                   [runs["cons"], other], tmp_path / "page.html")  # fmt: skip


def test_the_error_names_episodes_that_were_not_recorded(runs, copied, tmp_path):
    out = tmp_path / "page.html"
    assert_refused("no record of episode 16: it has 0, 15, 30, 40, 59", runs["cons"], out, episodes=[15, 16])
    empty = bare_run(tmp_path / "empty", small.CONS)
    assert_refused("no record of episode 0: it has recorded none", empty, out, episodes=[0])
    assert_refused("empty has recorded no episode: train with `--record NUMBER …`", empty, out)
    assert_refused("empty has recorded no episode", [runs["cons"], empty], out)
    early, late = copied("cons", "early"), copied("adhoc-td", "late")
    for run, numbers in ((early, (30, 40, 59)), (late, (0, 15, 30))):
        for number in numbers:
            exchanges.episode_path(run, number).unlink()
    assert_refused("no episode is recorded in both runs: .*early has 0, 15 and .*late has 40, 59", [early, late], out)
    assert_refused("late has no record of episode 0", [early, late], out, episodes=[0])


def test_the_error_names_directories_that_are_not_runs(runs, tmp_path):
    out = tmp_path / "page.html"
    (tmp_path / "nothing").mkdir()
    assert_refused("nothing is not the directory of a run: it has no config.json", tmp_path / "nothing", out)
    assert_refused("nowhere is not the directory of a run", [runs["cons"], tmp_path / "nowhere"], out)


@pytest.mark.parametrize(
    ("names", "options", "sentence"),
    [
        (("cons", "cons"), dict(staged=2), "compares staged episodes of one run"),
        (("cons",), {}, "set their number with --staged"),
        (("cons",), dict(staged=2, greedy=1), "compares staged episodes of one run"),
        (("cons",), dict(staged=2, episodes=[15]), "compares staged episodes of one run"),
        (("iql",), dict(staged=2), "nobody shares knowledge in .*iql, so there is nothing to compare"),
    ],
)
def test_without_sharing_needs_staged_episodes_of_one_run_that_shares(runs, tmp_path, names, options, sentence):
    chosen = [runs[name] for name in names]
    assert_refused(sentence, chosen, tmp_path / "page.html", without_sharing=True, **options)


@pytest.mark.parametrize(
    ("names", "options", "sentence"),
    [
        (("cons", "cons"), dict(greedy=2), "compares greedy episodes of one run"),
        (("cons",), {}, "set their number with --greedy"),
        (("cons",), dict(greedy=2, staged=1), "compares greedy episodes of one run"),
        (("cons",), dict(greedy=2, without_sharing=True), "compare different things"),
        (("cons",), dict(greedy=2, consult="most"), "consult has no value .most.: choose from"),
    ],
)
def test_consulting_needs_greedy_episodes_of_one_run(runs, tmp_path, names, options, sentence):
    chosen = [runs[name] for name in names]
    assert_refused(sentence, chosen, tmp_path / "page.html", **{"consult": "mean"} | options)


@pytest.mark.parametrize("options", [dict(staged=-1), dict(greedy=-1), dict(seed=-1), dict(episodes=[-1])])
def test_negative_numbers_are_refused(runs, tmp_path, options):
    assert_refused("must be a whole number of at least 0", runs["cons"], tmp_path / "page.html", **options)


def changed(**changes):
    """Return a function that replaces arrays of a record, or removes them; `/` is written as `__`."""

    def damage(path):
        with np.load(path) as archive:
            arrays = {name: archive[name] for name in archive.files}
        for name, change in changes.items():
            whole = name.replace("__", "/")
            arrays[whole] = change(arrays.get(whole))
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
    """Return a function that changes one byte of a file; `place` finds its position in the file's bytes."""

    def damage(path):
        whole = bytearray(path.read_bytes())
        whole[place(whole)] ^= 0xFF
        path.write_bytes(whole)

    return damage


def middle_of_values(whole):
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        part = archive.getinfo("steps/values.npy")
    lengths = np.frombuffer(whole, "<u2", 2, part.header_offset + 26)  # of the name and of the extra field
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
    """Return a function that replaces an array by text."""

    def damage(path):
        with zipfile.ZipFile(path) as archive:
            parts = {each: archive.read(each) for each in archive.namelist()}
        with zipfile.ZipFile(path, "w") as archive:
            for each, whole in parts.items():
                archive.writestr(each, b"a text" if each == f"{name}.npy" else whole)

    return damage


def all_of(*groups):
    """Change whole groups of arrays in the same way, so that they still fit together."""

    def by(change):
        def damage(path):
            names = [name for name in record_of(path.parent.parent, DAMAGED) if name.startswith(groups)]
            changed(**{name.replace("/", "__"): change for name in names})(path)

        return damage

    return by


def longer(path):
    """Repeat the first step ten times: steps and states still fit together, but no episode has so many."""
    all_of("steps/", "world/")(lambda rows: np.concatenate([rows[:1]] * 10 + [rows]))(path)


DAMAGES = {
    "cut off": (cut, "is not a recorded episode, or it is damaged"),
    "empty": (lambda path: path.write_bytes(b""), "is not a recorded episode, or it is damaged"),
    "a byte of the numbers": (flip(middle_of_values), "is not a recorded episode, or it is damaged"),
    # the compression method and the flags of the first array
    "a byte of the directory": (flip(lambda whole: directory_start(whole) + 10), "or it is damaged"),
    "a flag of the directory": (flip(lambda whole: directory_start(whole) + 8), "or it is damaged"),
    "an array too few": (changed(requests__modified=lambda _: None), "damaged: it lacks requests/modified"),
    "an array too many": (changed(steps__mood=lambda _: np.zeros(3)), "it has an unknown array steps/mood"),
    "no states": (changed(world__agents=lambda _: None), "does not fit pgm-3ag: its state has no agents of int32"),
    "a request too many": (changed(requests__step=lambda rows: np.append(rows, rows[:1])), "does not fit the others"),
    "an action too few": (changed(steps__values=lambda rows: rows[:, :, 1:]), "does not fit the others"),
    "an axis too many": (changed(teachers__reply=lambda rows: rows[..., None]), "does not fit the others"),
    "no end": (changed(world__agents=lambda rows: rows[:-1]), "world/agents has shape .* does not fit the others"),
    "an agent too few in the world": (changed(world__agents=lambda rows: rows[:, 1:]), "its state has no agents of"),
    "other numbers": (changed(steps__action=lambda rows: rows.astype(np.float32)), "steps/action has type float32"),
    "wider numbers": (changed(requests__step=lambda rows: rows.astype(np.int64)), "requests/step has type int64"),
    "not a number": (changed(teachers__prestige=with_first(np.nan)), "prestige has numbers that are not finite"),
    "beyond all numbers": (changed(steps__rewards=with_first(np.inf)), "rewards has numbers that are not finite"),
    "an action beyond the last": (changed(steps__action=with_first(5)), "steps/action is out of range"),
    "an advice beyond the last": (changed(teachers__best_action=with_first(5)), "best_action is out of range"),
    "a student beyond the last": (changed(requests__student=with_first(3)), "requests/student is out of range"),
    "a step before the first": (changed(requests__step=with_first(-1)), "requests/step is out of range"),
    "no such reply": (changed(teachers__reply=with_first(9)), "teachers/reply has an unknown reply"),
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
    "another version": (header(format="consmarl-exchange-1"), "another version in format consmarl-exchange-1"),
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
    "not of training": (header(kind="silent"), "its header should say that it is a training episode"),
    "of no known kind": (header(kind=["training"]), "its header names an unknown kind of episode"),
    "lines in a name": (header(config={"method": "a\nb", "env": "x" * 500}), "run, episode 15 of a b in … with"),
    "another world": (header(config=json.loads(small.CONS.to_json()) | {"env": "ft"}), "another run, .* in ft"),
}  # fmt: skip


@pytest.fixture
def damaged(copied):
    """Return a function that makes a run with a page and one record, which is damaged."""

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


def test_every_array_of_a_record_is_required(damaged):
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


def test_staging_before_the_first_checkpoint_is_refused(tmp_path):
    assert_refused("no whole checkpoint", bare_run(tmp_path / "run", small.IQL), tmp_path / "page.html", staged=1)


def test_one_damaged_record_among_two_runs_is_refused(runs, damaged):
    run = damaged(cut)
    assert_refused("damaged", [runs["cons"], run], run / "exchange.html")


def test_the_command_refuses_a_damaged_record_in_one_line(damaged):
    run = damaged(cut)
    result = consmarl("view", run)
    assert result.returncode == 2
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert re.fullmatch(r"consmarl: .* is not a recorded episode, or it is damaged \(.*\)\.\n", result.stderr)
    assert (run / "exchange.html").read_text() == "the page that was there"


def test_a_record_of_an_older_version_with_fewer_settings_still_matches_its_run():
    ours = json.loads(TrainConfig(method="cons", preset="paper", episodes=400).resolved().to_json())
    older = {name: ours[name] for name in TELLING} | {"share": {"temperature": 1.0}}
    assert _is_of_this_run(ours, ours)
    assert _is_of_this_run(older, ours)
    assert not _is_of_this_run(older | {"share": {"temperature": 0.3}}, ours)
    assert not _is_of_this_run(older | {"share": []}, ours)
    assert not _is_of_this_run(older | {"seed": 1}, ours)
