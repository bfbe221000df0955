"""The message at the end of a run."""

import json

from consmarl.experiments.configuration.config import TrainConfig
from consmarl.experiments.ending import ending
from consmarl.experiments.exchanges import episode_path


def finished_run(directory, **settings):
    directory.mkdir()
    (directory / "config.json").write_text(TrainConfig(**settings).to_json())
    result = {"return": 12.34567, "return_error": 0.5, "episodes_evaluated": 400}
    (directory / "result.json").write_text(json.dumps(result))
    return directory


def test_a_run_ends_with_what_it_reached_and_what_comes_next(tmp_path):
    run = finished_run(tmp_path / "run")
    assert ending(run).splitlines() == [
        f"finished {run}: team return 12.346 ± 0.500 (mean and standard error of 400 greedy episodes)",
        "next:",
        f"  consmarl evaluate {run}",
        f"  consmarl watch {run}",
        f"  consmarl report {run}",
    ]


def test_commands_can_be_copied_whatever_the_directory_is_called(tmp_path):
    run = finished_run(tmp_path / "my run")
    assert f"consmarl evaluate '{run}'" in ending(run)


def test_recorded_episodes_can_be_viewed_and_others_environments_watched_by_name(tmp_path):
    run = finished_run(tmp_path / "run", env="pettingzoo:mpe2.simple_spread_v3")
    record = episode_path(run, 3)
    record.parent.mkdir()
    record.write_bytes(b"")
    said = ending(run)
    assert f"consmarl view {run}" in said
    assert f"  consmarl watch {run} --env pettingzoo:mpe2.simple_spread_v3\n" in said
