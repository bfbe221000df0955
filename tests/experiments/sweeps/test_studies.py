"""The paper's figures as studies."""

import pytest

from consmarl.experiments.sweeps.studies import STUDIES


def test_every_figure_of_the_paper_is_a_study():
    assert [study.figure for study in STUDIES.values()] == list(range(1, 13))


@pytest.mark.parametrize("scale", [1.0, 0.1, 0.013])
def test_every_run_of_every_study_can_be_built_and_studies_share_runs(scale):
    by_name = {}
    for study in STUDIES.values():
        for run in study.sweep(scale).runs() if study.env else []:
            assert by_name.setdefault(run.name, run) == run  # the same directory means the same run
    assert by_name
    built = {run.name.rsplit("/", 1)[0]: run.config for run in by_name.values()}
    for config in built.values():
        assert config.trainer().world.num_agents > 1


def test_episodes_and_seeds_are_those_of_the_paper_and_the_release():
    # episodes from the authors' README, number of seeds from the paper, seed values from the code's default
    expected = {"pgm-6ag": (80_000, 5), "pgm-3ag": (100_000, 5), "ft": (50_000, 4), "cleanup": (80_000, 3)}
    for name, (episodes, seeds) in expected.items():
        runs = STUDIES[name].sweep().runs()
        assert {run.config.episodes for run in runs} == {episodes}
        assert sorted({run.config.seed for run in runs}) == list(range(10, 10 + seeds))


def test_shortening_keeps_all_proportions():
    for run, short in zip(STUDIES["ablation"].sweep().runs(), STUDIES["ablation"].sweep(0.1).runs(), strict=True):
        assert short.config.episodes == run.config.episodes / 10
        limit = run.config.trainer().world.episode_limit
        assert short.config.epsilon(limit).anneal_steps == run.config.epsilon(limit).anneal_steps / 10
        assert short.config.sharing_kind != "none"
        whole, tenth = (each.config.trainer().sharing for each in (run, short))
        assert tenth.start_episode == whole.start_episode / 10
        assert tenth.budget_requests == whole.budget_requests / 10
        assert short.config.share.knowledge == run.config.share.knowledge


def test_a_study_can_be_run_with_other_settings():
    runs = STUDIES["ft"].sweep(0.1, {"preset": "recommended", "share.temperature": 0.5}).runs()
    assert {run.config.preset.value for run in runs} == {"recommended"}
    assert {run.config.share.temperature for run in runs if run.label == "CONS"} == {0.5}
    assert {run.config.share.temperature for run in runs if run.label != "CONS"} == {None}


def test_the_ablations_match_the_papers():
    configs = {run.label: run.config for run in STUDIES["ablation"].sweep().runs()}
    knowledge = {
        label: config.trainer().sharing.knowledge.value for label, config in configs.items() if label != "AdHocTD"
    }
    assert knowledge == {
        "CONS": "schedule", "CONS wo-N": "positive-only", "CONS wo-P": "negative-only", "CONS wo-TE": "schedule",
    }  # fmt: skip
    assert configs["CONS wo-TE"].trainer().sharing.sampling.value == "plain"


def test_a_description_names_command_groups_and_metric():
    description = STUDIES["ablation"].description(0.1)
    assert description["command"] == "consmarl sweep --study ablation --scale 0.1"
    assert description["groups"] == ["CONS", "CONS wo-N", "CONS wo-P", "CONS wo-TE", "AdHocTD"]
    assert description["metric"] == "return"
    assert STUDIES["ft"].description()["groups"] == ["CONS", "I2Q", "SEQL", "GA-Comm", "AdHocTD", "IQL", "MAVEN"]
