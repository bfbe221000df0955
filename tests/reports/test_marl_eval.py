import json

import pytest

from consmarl.errors import UsageError
from consmarl.reports.marl_eval import to_marl_eval, write_marl_eval
from consmarl.reports.runs import grouped, read_runs
from tests.reports.handmade import evaluated, write_run


def exported(directory):
    return to_marl_eval(grouped(read_runs([directory])))


def sentence_about(directory):
    with pytest.raises(UsageError) as error:
        exported(directory)
    text = str(error.value)
    assert text.endswith(".")
    assert "\n" not in text
    return text


def test_a_run_becomes_steps_and_absolute_metrics(tmp_path):
    result = {"return": 7.5, "return_error": 0.5, "gold_mined": 1.25, "episodes_evaluated": 400, "seconds": 9.0}
    write_run(tmp_path / "a", rows=[-2.0, 4.0], result=result)
    assert exported(tmp_path) == {
        "PatientGoldMiner": {
            "pgm-3ag": {
                "IQL": {
                    "run_1": {
                        "step_1": {"step_count": 0, "return": [-2.0], "gold_mined": [-0.2]},
                        "step_2": {"step_count": 25_000, "return": [4.0], "gold_mined": [0.4]},
                        "absolute_metrics": {"return": [7.5], "gold_mined": [1.25]},
                    }
                }
            }
        }
    }


def test_runs_are_numbered_in_order_of_seed_for_every_algorithm(tmp_path):
    for seed, value in ((7, 3.0), (5, 2.0)):
        write_run(tmp_path / f"iql-{seed}", seed=seed, rows=[0.0, value])
    for seed in (0, 1):
        write_run(tmp_path / f"cons-{seed}", method="cons", seed=seed)
    task = exported(tmp_path)["PatientGoldMiner"]["pgm-3ag"]
    assert list(task["IQL"]) == list(task["CONS"]) == ["run_1", "run_2"]
    assert [run["absolute_metrics"]["return"] for run in task["IQL"].values()] == [[2.0], [3.0]]


def test_only_evaluations_common_to_all_runs_of_an_environment_are_steps(tmp_path):
    write_run(tmp_path / "a", rows=evaluated([0.0, 1.0, 2.0], every=1_000))
    write_run(tmp_path / "b", method="cons", rows=evaluated([0.0, 5.0], every=2_000))
    task = exported(tmp_path)["PatientGoldMiner"]["pgm-3ag"]
    steps = {name: [step["step_count"] for step in list(runs["run_1"].values())[:-1]] for name, runs in task.items()}
    assert steps == {"IQL": [0, 50_000], "CONS": [0, 50_000]}
    assert task["IQL"]["run_1"]["step_2"]["return"] == [2.0]


def test_only_counters_common_to_all_rows_and_results_are_metrics(tmp_path):
    rows = [row | {"evaluation_stones_taken": 3.0} for row in evaluated([0.0, 1.0])]
    write_run(tmp_path / "new", rows=rows)
    write_run(tmp_path / "old", method="cons", rows=[0.0, 1.0])
    steps = exported(tmp_path)["PatientGoldMiner"]["pgm-3ag"]["IQL"]["run_1"]
    assert [set(step) - {"step_count"} for step in steps.values()] == [{"return", "gold_mined"}] * 3


def test_environments_of_a_family_are_tasks_of_one_marl_eval_environment(tmp_path):
    write_run(tmp_path / "a", env="pgm-3ag")
    write_run(tmp_path / "b", env="pgm-6ag")
    write_run(tmp_path / "c", env="ft-20")
    write_run(tmp_path / "d", env="cleanup", set=["episode_limit=50"])
    write_run(tmp_path / "e", env="mine")
    worlds = {environment: list(tasks) for environment, tasks in exported(tmp_path).items()}
    assert worlds == {
        "PatientGoldMiner": ["pgm-3ag", "pgm-6ag"],
        "FindTheTreasure": ["ft-20"],
        "Cleanup": ["cleanup (episode_limit=50)"],
        "mine": ["mine"],
    }


@pytest.mark.parametrize(
    "other", [{"method": "cons"}, {"rows": [0.0, 1.0]}, {"rows": evaluated([0.0, 1.0, 2.0], counter="stones_taken")}]
)
def test_environments_that_cannot_be_combined_stay_separate(tmp_path, other):
    write_run(tmp_path / "a", env="pgm-3ag")
    write_run(tmp_path / "b", env="pgm-6ag", **other)
    assert {name: list(tasks) for name, tasks in exported(tmp_path).items()} == {
        "pgm-3ag": ["pgm-3ag"],
        "pgm-6ag": ["pgm-6ag"],
    }


def test_names_of_algorithms_have_no_commas(tmp_path):
    for size in (32, 64):
        write_run(tmp_path / str(size), hidden_size=size)
    task = exported(tmp_path)["PatientGoldMiner"]["pgm-3ag"]
    assert list(task) == ["IQL; hidden_size 32", "IQL; hidden_size 64"]


def test_different_numbers_of_seeds_are_refused(tmp_path):
    for seed in (0, 1):
        write_run(tmp_path / f"iql-{seed}", seed=seed)
    write_run(tmp_path / "cons-0", method="cons")
    sentence = sentence_about(tmp_path)
    assert "but pgm-3ag has CONS 1, IQL 2" in sentence
    assert "run the missing ones" in sentence


def test_unfinished_and_failed_runs_are_refused(tmp_path):
    write_run(tmp_path / "going" / "a", result=None)
    assert f"`consmarl resume {tmp_path / 'going' / 'a'}`" in sentence_about(tmp_path / "going")
    write_run(tmp_path / "dead" / "a", failure="the disk is full.")
    assert "is failed" in sentence_about(tmp_path / "dead")


def test_runs_without_a_common_evaluation_are_refused(tmp_path):
    write_run(tmp_path / "a", rows=evaluated([0.0, 1.0])[1:])
    write_run(tmp_path / "b", seed=1, rows=evaluated([0.0, 1.0], every=300)[1:], episodes=1_000)
    assert "evaluate_every" in sentence_about(tmp_path)


def test_two_groups_with_the_same_name_are_refused(tmp_path):
    write_run(tmp_path / "a", label="mine", hidden_size=32)
    write_run(tmp_path / "b", label="Mine", hidden_size=64)
    assert "cannot tell apart" in sentence_about(tmp_path)


def test_an_empty_list_of_runs_is_refused():
    with pytest.raises(UsageError, match="no runs"):
        to_marl_eval([])


def test_the_file_contains_the_exported_data(tmp_path):
    write_run(tmp_path / "runs" / "a")
    out = write_marl_eval(grouped(read_runs([tmp_path / "runs"])), tmp_path / "out" / "marl_eval.json")
    assert json.loads(out.read_text()) == exported(tmp_path / "runs")
    assert [path.name for path in out.parent.iterdir()] == ["marl_eval.json"]


def test_a_refused_export_leaves_the_existing_file(tmp_path):
    write_run(tmp_path / "runs" / "a", result=None)
    out = tmp_path / "marl_eval.json"
    out.write_text("{}")
    with pytest.raises(UsageError):
        write_marl_eval(grouped(read_runs([tmp_path / "runs"])), out)
    assert out.read_text() == "{}"
