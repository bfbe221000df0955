"""What a run's directory says about the run, and that only one process at a time writes to it."""

import dataclasses
import gc
import json
import os
import shutil
import struct
import subprocess
import threading
from collections import deque

import pytest
from safetensors import safe_open
from tensorboardX.proto.event_pb2 import Event
from tests.experiments.small import SMALL, assert_same_run, rows

import consmarl
from consmarl.environments.gold_miner import GoldMiner
from consmarl.environments.interface import Counters, Environment
from consmarl.errors import UsageError
from consmarl.experiments import processor
from consmarl.experiments.configuration.config import TrainConfig
from consmarl.experiments.directory import held
from consmarl.experiments.events import EventsFile
from consmarl.experiments.source import git_facts
from consmarl.experiments.train import resume, train
from consmarl.metrics import LEARNING, LOSS, SHARING, Metric, Schema
from consmarl.reports.marl_eval import to_marl_eval
from consmarl.reports.page import write_report
from consmarl.reports.runs import grouped, read_runs
from consmarl.training import programs
from consmarl.training.programs import Shelf, keep_programs


class Fishing(GoldMiner):
    """An environment that does not declare its counters."""

    metrics = Environment.metrics

    def counters(self, state):
        return Counters({"fish_caught": state.gold_mined}, {"nets_torn": state.stones_taken.sum()})


BRIEF = SMALL | dict(episodes=32, evaluate_every=16)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return train(TrainConfig(**BRIEF), tmp_path_factory.mktemp("run") / "brief", label="A name")


@pytest.fixture
def copy(run, tmp_path):
    subprocess.check_call(["cp", "-r", run, tmp_path / "copy"])
    return tmp_path / "copy"


def changed(path, **changes):
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_run_json_records_versions_machine_and_commit(run):
    facts = json.loads((run / "run.json").read_text())
    assert facts["format"] == 1
    assert facts["label"] == "A name"
    (session,) = facts["sessions"]
    assert session["versions"]["consmarl"] == consmarl.__version__
    assert {"python", "jax", "numpy"} <= session["versions"].keys()
    assert session["machine"]["cores"] == os.cpu_count()
    assert session["episode"] == 0
    assert session["git"] == git_facts()


def test_the_configuration_and_the_policy_record_every_setting(run):
    whole = TrainConfig(**BRIEF).resolved()
    read = json.loads((run / "config.json").read_text())
    assert TrainConfig.from_json(json.dumps(read)) == whole
    assert None not in read.values()
    assert read["by_default"] == list(whole.by_default)
    with safe_open(run / "policy.safetensors", framework="numpy") as policy:
        assert json.loads(policy.metadata()["config"]) == read


def test_the_result_holds_the_final_evaluation(run):
    result = json.loads((run / "result.json").read_text())
    assert result["episode"] == 32
    assert result["episodes_evaluated"] == 5
    assert {"return", "return_error", "gold_mined", "stones_taken", "env_steps", "seconds"} <= result.keys()


def scalars(directory):
    """Return what TensorBoard shows, (tag, episode) → value; a file replaces older values from its first episode on."""
    values = {}
    for path in sorted((directory / "events").iterdir(), key=lambda path: path.stat().st_mtime_ns):
        data, place = path.read_bytes(), 0
        while place < len(data):
            (length,) = struct.unpack_from("<Q", data, place)
            event = Event.FromString(data[place + 12 : place + 12 + length])
            place += 12 + length + 4
            if event.HasField("session_log"):
                values = {key: value for key, value in values.items() if key[1] < event.step}
            for value in event.summary.value:
                assert (value.tag, event.step) not in values, "written twice"
                values[value.tag, event.step] = value.simple_value
    return values


def test_tensorboard_shows_every_number_once_even_after_a_resume(run, copy):
    subprocess.check_call(["rm", "-r", copy / "checkpoints" / "checkpoint-000000032"])
    resume(copy)
    for directory in (run, copy):
        seen = scalars(directory)
        for row in rows(directory):
            for name, value in row.items():
                numbers = value if isinstance(value, list) else [value]
                found = [seen[key] for key in seen if key[1] == row["episode"] and key[0].split("/")[1] in (
                    name, name.removeprefix("evaluation_")) and key[0].startswith("evaluation/") is name.startswith(
                    "evaluation_")]  # fmt: skip
                assert found == pytest.approx(numbers, rel=1e-6), name
    assert len(json.loads((copy / "run.json").read_text())["sessions"]) == 2


def test_tensorboard_groups_curves_by_their_declared_families(tmp_path):
    declared = Schema((LOSS, Metric("entropy", family=LEARNING), Metric("whispers_left", family=SHARING)))
    row = {"loss": 1.0, "entropy": 1.0, "new_loss": 1.0, "whispers_left": [1, 2], "fish_caught": 1.0,
           "evaluation_return": 1.0, "seconds": 1.0}  # fmt: skip
    events = EventsFile(tmp_path / "events", 0, declared)
    events.append({"episode": 8} | row)
    events.close()
    assert {tag for tag, _ in scalars(tmp_path)} == {
        "training/episode", "learning/loss", "learning/entropy", "learning/new_loss", "sharing/whispers_left/agent_0",
        "sharing/whispers_left/agent_1", "training/fish_caught", "evaluation/return", "training/seconds",
    }  # fmt: skip


def test_undeclared_counters_of_an_environment_appear_in_all_outputs(tmp_path, monkeypatch):
    own = TrainConfig.trainer

    def fishing(config):
        trainer = own(config)
        settings = {each.name: getattr(trainer.world, each.name) for each in dataclasses.fields(trainer.world)}
        return dataclasses.replace(trainer, world=Fishing(**settings))

    monkeypatch.setattr(TrainConfig, "trainer", fishing)
    out = train(TrainConfig(**(BRIEF | dict(episodes=8, evaluate_every=8, checkpoint_every=8))), tmp_path / "run")
    declared = {each["name"] for each in json.loads((out / "run.json").read_text())["metrics"]}
    assert {"return", "fish_caught", "nets_torn", "loss", "epsilon"} <= declared
    assert {"training/fish_caught", "evaluation/fish_caught", "training/nets_torn"} <= {tag for tag, _ in scalars(out)}
    runs = read_runs([out])
    page = write_report(runs, tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.count("Fish caught") >= 3  # as curves of training and evaluation, and as a bar
    (task,) = to_marl_eval(grouped(runs))["PatientGoldMiner"].values()
    assert task["IQL"]["run_1"]["absolute_metrics"].keys() == {"return", "fish_caught", "nets_torn"}


def test_a_run_describes_its_metrics_and_resuming_adds_missing_descriptions(run, copy):
    facts = json.loads((run / "run.json").read_text())
    names = {each["name"] for each in facts["metrics"]}
    written = {name for row in rows(run) for name in row if not name.startswith("evaluation_")}
    assert written - {"episode", "env_steps"} == names
    gold = next(each for each in facts["metrics"] if each["name"] == "gold_mined")
    assert gold == {"name": "gold_mined", "title": "Gold mined", "unit": "gold", "more_is_better": True, "most": 3.0}
    (copy / "run.json").write_text(json.dumps({name: each for name, each in facts.items() if name != "metrics"}))
    assert read_runs([copy])[0].rows == read_runs([run])[0].rows
    resume(copy)
    assert json.loads((copy / "run.json").read_text())["metrics"] == facts["metrics"]


def test_no_events_are_written_without_tensorboard(tmp_path):
    out = train(
        TrainConfig(**(BRIEF | dict(episodes=8, evaluate_every=8, checkpoint_every=8, tensorboard=False))),
        tmp_path / "run",
    )
    assert not (out / "events").exists()


@pytest.mark.usefixtures("without_jax_cache")
def test_a_run_with_cached_programs_is_identical_to_a_freshly_compiled_one(run, tmp_path, monkeypatch):
    keep_programs(Shelf(tmp_path / "programs", 10**8))
    assert_same_run(train(TrainConfig(**BRIEF), tmp_path / "keeping"), run)
    kept = {path.name.partition("-")[0] for path in (tmp_path / "programs").iterdir()}
    assert kept == {"begin", "init_learner", "evaluate", "run_rounds"}
    shutil.copytree(tmp_path / "programs", tmp_path / "copied")  # as another process finds them
    keep_programs(Shelf(tmp_path / "copied", 10**8))
    monkeypatch.setattr(programs, "_serialised", lambda _: pytest.fail("one was compiled"))
    assert_same_run(train(TrainConfig(**BRIEF), tmp_path / "kept"), run)
    keep_programs(None)


def test_a_run_of_another_format_is_refused_and_left_unchanged(copy):
    changed(copy / "run.json", format=2, sessions=[{"versions": {"consmarl": "9.9"}}])
    before = sorted(path.stat().st_mtime_ns for path in copy.rglob("*"))
    with pytest.raises(UsageError, match=r"written by consmarl 9\.9 in format 2: this is consmarl .* reads format 1"):
        resume(copy)
    assert sorted(path.stat().st_mtime_ns for path in copy.rglob("*")) == before


def test_the_error_for_an_unknown_setting_names_both_versions(copy):
    changed(copy / "config.json", warp_factor=9)
    changed(copy / "run.json", sessions=[{"versions": {"consmarl": "9.9"}}])
    with pytest.raises(UsageError, match=r"no setting 'warp_factor'.*written by consmarl 9\.9, this is"):
        resume(copy)


def test_resuming_with_other_versions_prints_a_notice(copy, capsys):
    facts = json.loads((copy / "run.json").read_text())
    facts["sessions"][-1]["versions"]["jax"] = "0.0.1"
    (copy / "run.json").write_text(json.dumps(facts))
    resume(copy)
    assert "resuming with other versions (jax 0.0.1 →" in " ".join(capsys.readouterr().err.split())


def test_resuming_on_another_processor_prints_a_notice(copy, capsys):
    facts = json.loads((copy / "run.json").read_text())
    facts["sessions"][-1]["machine"]["processor"] = "An abacus"
    (copy / "run.json").write_text(json.dumps(facts))
    resume(copy)
    said = " ".join(capsys.readouterr().err.split())
    assert f"resuming with another processor (An abacus → {processor.name()}): results may differ" in said


def test_training_into_a_directory_in_use_is_refused(tmp_path):
    with held(tmp_path / "run", "a run"), pytest.raises(UsageError, match=r"a run in .* is in progress"):
        train(TrainConfig(**BRIEF), tmp_path / "run")
    assert not (tmp_path / "run" / "config.json").exists()


def test_resuming_a_run_in_progress_is_refused(copy):
    before = (copy / "metrics.jsonl").read_bytes()
    with held(copy, "a run"), pytest.raises(UsageError, match="in progress: wait for it"):
        resume(copy)
    assert (copy / "metrics.jsonl").read_bytes() == before


def test_training_works_outside_the_main_thread(tmp_path):
    config = TrainConfig(**(BRIEF | dict(episodes=8, evaluate_every=8, checkpoint_every=8)))
    thread = threading.Thread(target=train, args=(config, tmp_path / "run"))
    thread.start()
    thread.join()
    assert (tmp_path / "run" / "result.json").is_file()


@pytest.fixture
def small_disk(tmp_path):
    """A separate file system of 192 kB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=192k", "tmpfs", disk], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("this user may not mount a disk")
    yield disk
    subprocess.check_call(["umount", disk])


def test_a_full_disk_raises_a_clear_error_and_loses_nothing_that_was_saved(small_disk):
    config = TrainConfig(**(BRIEF | dict(episodes=480, keep_checkpoints=50)))
    with pytest.raises(UsageError, match="No space left on device"):
        train(config, small_disk / "run")
    kept = rows_that_are_whole(small_disk / "run")
    assert kept
    assert [row["episode"] for row in kept] == list(range(0, kept[-1]["episode"] + 1, 8))
    subprocess.check_call(["mount", "-o", "remount,size=8m", small_disk])
    resume(small_disk / "run")
    assert [row["episode"] for row in rows(small_disk / "run")] == list(range(0, 481, 8))
    assert rows(small_disk / "run")[: len(kept)] == [
        {name: row[name] for name in row if name != "seconds"} for row in kept
    ]


def rows_that_are_whole(directory):
    return [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines() if line.endswith("}")]


def test_a_full_disk_raises_a_clear_error_when_writing_events(small_disk, capfd):
    threads = threading.active_count()
    events = EventsFile(small_disk / "events", 0)
    row = {"return": 1.0, "agent_returns": [0.5] * 20}
    with pytest.raises(UsageError, match=r"cannot write to .*events.*: No space left on device\."):
        deque((events.append({"episode": episode} | row) for episode in range(100_000)), maxlen=0)
    events.close()
    del events
    gc.collect()  # nothing is left that would try to write again
    assert threading.active_count() == threads
    assert capfd.readouterr().err == ""


def test_events_of_a_restarted_run_replace_the_earlier_ones(tmp_path):
    for value in (1.0, 2.0):
        events = EventsFile(tmp_path / "events", 0)
        events.append({"episode": 0, "evaluation_return": value})
        events.close()
    assert scalars(tmp_path) == {("training/episode", 0): 0.0, ("evaluation/return", 0): 2.0}


def test_a_read_only_disk_raises_a_clear_error(small_disk):
    subprocess.check_call(["mount", "-o", "remount,ro", small_disk])
    with pytest.raises(UsageError, match=r"cannot write to .*: Read-only file system\."):
        train(TrainConfig(**BRIEF), small_disk / "run")
