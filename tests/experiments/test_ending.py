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


def test_the_final_message_shows_the_return_and_the_next_commands(tmp_path):
    run = finished_run(tmp_path / "run")
    assert ending(run).splitlines() == [
        f"finished {run}: team return 12.346 ± 0.500 (mean and standard error of 400 greedy episodes)",
        "next:",
        f"  consmarl evaluate {run}",
        f"  consmarl watch {run}",
        f"  consmarl report {run}",
    ]


def test_paths_with_spaces_are_quoted_in_commands(tmp_path):
    run = finished_run(tmp_path / "my run")
    assert f"consmarl evaluate '{run}'" in ending(run)


def test_the_next_commands_include_view_and_name_a_third_party_environment(tmp_path):
    run = finished_run(tmp_path / "run", env="pettingzoo:mpe2.simple_spread_v3")
    record = episode_path(run, 3)
    record.parent.mkdir()
    record.write_bytes(b"")
    said = ending(run)
    assert f"consmarl view {run}" in said
    assert f"  consmarl watch {run} --env pettingzoo:mpe2.simple_spread_v3\n" in said
