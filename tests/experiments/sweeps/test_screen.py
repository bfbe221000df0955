"""What a sweep shows about its runs, and how it estimates the time that they will take."""

import json

import pytest

from consmarl.experiments.sweeps import views as views_module
from consmarl.experiments.sweeps.screen import SweepScreen
from consmarl.experiments.sweeps.views import RunView, last_row, makespan, seconds_to_go


@pytest.fixture
def clock(monkeypatch):
    """A clock that moves only when it is set."""

    class Clock:
        now = 0.0

    monkeypatch.setattr(views_module.time, "monotonic", lambda: Clock.now)
    return Clock


@pytest.fixture
def view(tmp_path):
    def view(name, episodes=100):
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
        return RunView(name, tmp_path / name, episodes)

    return view


def write_row(view, **row):
    with (view.directory / "metrics.jsonl").open("a") as file:
        file.write(json.dumps(row) + "\n")
    view.look()


def begun(view):
    view.begin()
    (view.directory / "log.txt").touch()
    return view


def finished(view, seconds):
    (view.directory / "result.json").write_text(json.dumps({"seconds": seconds}))
    view.state = "finished"
    return view


def test_the_last_complete_row_is_found(tmp_path):
    path = tmp_path / "metrics.jsonl"
    assert last_row(path) == {}
    path.write_text(
        "".join(json.dumps({"episode": number, "filler": "x" * 90}) + "\n" for number in range(1000)) + '{"epi'
    )
    assert last_row(path)["episode"] == 999


def test_the_table_shows_running_and_failed_runs_first(tmp_path):
    views = [RunView(f"run-{number}", tmp_path, 10) for number in range(60)]
    begun(views[50])
    views[55].end("failed", "oh")
    screen = SweepScreen(views, "title")
    names = list(screen.table().columns[0].cells)
    assert names[:2] == ["run-50", "run-55"]
    assert "more" in names[-1]


def test_damaged_rows_are_skipped(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b'{"episode": 3}\n[1, 2]\nnull\n\xff\n' + b"[" * 9000 + b"\n")
    assert last_row(path) == {"episode": 3}


def test_a_run_is_shown_as_compiling_until_its_first_training_row(view):
    run = view("world/iql/seed-0")
    assert run.shown_state == "waiting"
    run.begin()
    assert run.shown_state == "waiting"  # a cluster has not started it yet
    begun(run)
    assert run.shown_state == "compiling"
    write_row(run, episode=0, evaluation_return=1.0)
    assert run.shown_state == "compiling"
    write_row(run, episode=8, **{"return": 1.0})
    assert run.shown_state == "running"
    run.end("stopped", None)
    begun(run)
    assert run.shown_state == "compiling"  # again, although there are rows from before
    screen = SweepScreen([run, view("world/iql/seed-1")], "title")
    assert [cell.plain for cell in screen.table().columns[1].cells] == ["compiling", "waiting"]
    assert screen._summary().plain == "1 compiling, 1 waiting"


def test_the_time_left_of_a_run_is_estimated(view, clock):
    run = begun(view("world/iql/seed-0"))
    for clock.now, episode in ((50.0, 10), (60.0, 20), (70.0, 30)):
        write_row(run, episode=episode, **{"return": 1.0})
    assert run.seconds_per_episode == 1.0  # without the time to compile
    clock.now = 75.0
    assert run.seconds_left(1.0) == 65.0  # 70 episodes of 1 s, of which 5 s have passed
    assert list(SweepScreen([run], "title").table().columns[4].cells) == ["1:05"]


def test_waiting_jobs_start_when_earlier_ones_end():
    assert makespan([], []) == 0
    assert makespan([10, 4], []) == 10
    assert makespan([10, 4], [5, 5]) == 14  # 4 + 5 = 9, then 9 + 5
    assert makespan([10, 4], [1, 1, 1]) == 10


def test_the_time_left_of_a_sweep_is_estimated(view, clock, capsys):
    running = begun(view("world/iql/seed-1"))
    for clock.now, episode in ((50.0, 10), (60.0, 20)):
        write_row(running, episode=episode, **{"return": 1.0})
    waiting = [view("world/iql/seed-2"), view("world/cons/seed-2"), view("other/cons/seed-2")]
    views = [finished(view("world/cons/seed-0"), seconds=300.0), running, *waiting]
    # 80 s for the running one; 100 episodes for each waiting one, of 1 s (like it), 3 s (the finished one), 2 s (mean)
    assert seconds_to_go(views) == 80 + 100 + 300 + 200
    assert SweepScreen(views, "title")._summary().plain == "1 running, 1 finished, 3 waiting; about 11:20 to go"
    compiling = begun(view("other/cons/seed-3"))  # now two workers share the queue
    assert seconds_to_go([*views, compiling]) == 80 + 100 + 300
    SweepScreen(views, "title").tell(views[0])  # in its place: 100 s, then 200; beside it: 80 + 300
    assert "world/cons/seed-0: finished  (1 of 5; about 6:20 to go)" in capsys.readouterr().err


def test_a_sweep_without_any_timings_has_no_estimate(view):
    assert seconds_to_go([begun(view("world/iql/seed-0")), view("world/iql/seed-1")]) is None
    damaged = view("world/iql/seed-2")
    (damaged.directory / "result.json").write_text("[]")
    damaged.state = "finished"
    assert seconds_to_go([damaged, view("world/iql/seed-1")]) is None
