"""Sharing and learning begin within the run, or a message says that they will not."""

import pytest
from tests.reports.handmade import write_run

from consmarl import Preset, TrainConfig
from consmarl.cli import main
from consmarl.experiments.configuration.method_checks import (
    why_nobody_knows_more,
    why_nobody_learns,
    why_nobody_shares,
)
from consmarl.experiments.sweeps.studies import STUDIES
from consmarl.experiments.train import train
from consmarl.reports.finals import by_world
from consmarl.reports.findings import cautions
from consmarl.reports.runs import grouped, read_runs
from consmarl.training.loop import Trainer

SHORT = dict(method="cons", preset="paper", episodes=2_000)


@pytest.fixture
def plays_nothing(monkeypatch):
    monkeypatch.setattr("consmarl.experiments.train._Session.finish", lambda *_, **__: None)
    monkeypatch.setattr(Trainer, "init", lambda *_, **__: None)


@pytest.mark.parametrize("method", ["cons", "adhoc-td"])
@pytest.mark.parametrize(
    ("preset", "episodes", "start"),
    [
        ("recommended", 2_000, 250), ("release", 2_000, 250), ("release", 39_992, 4_999),
        ("release", 40_000, 5_000), ("release", 100_000, 5_000), ("recommended", 4, 0),
        ("paper", 2_000, 5_000), ("paper", 40_000, 5_000),
    ],
)  # fmt: skip
def test_except_in_the_paper_preset_the_start_fits_the_run(method, preset, episodes, start):
    config = TrainConfig(method=method, preset=preset, episodes=episodes)
    assert config.sharing_start == start
    assert config.trainer().sharing.start_episode == start
    assert config.resolved().share.start_episode == start


def test_a_start_that_was_set_is_kept():
    config = TrainConfig(**SHORT | dict(preset="recommended"), share={"start_episode": 700})
    assert config.trainer().sharing.start_episode == 700
    assert TrainConfig(episodes=2_000).sharing_start is None  # nobody shares


def test_studies_start_sharing_where_the_paper_does():
    for study in (STUDIES[name] for name in ("pgm-3ag", "ablation", "ft-20")):
        for scale in (1.0, 0.1):
            # one seed is enough
            for run in study.sweep(scale).runs()[: len(study.variants)] if study.env else []:
                assert run.config.sharing_start in (None, round(5_000 * scale))
                assert why_nobody_shares(run.config) is None


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (SHORT, "starts after episode 5,000, and the run has only 2,000 episodes: nobody will share; set "
                "--share.start-episode 250, "
                "for example, or choose a preset whose start fits the run, such as --preset recommended."),
        (SHORT | dict(preset="recommended", share={"start_episode": 1_999}),
         "starts after episode 1,999, and the run has only 2,000 episodes: nobody will share; set "
         "--share.start-episode 250, for "
         "example."),
        (SHORT | dict(episodes=1, preset="release"), "nobody will share, which needs at least 2 episodes."),
        (SHORT | dict(share={"start_episode": 1_998}), None),
        (SHORT | dict(preset="recommended"), None),
        (dict(method="iql", episodes=2_000), None),
        (dict(method="cons", sharing="none", episodes=2_000), None),
        (dict(method="cons"), None),
    ],
)  # fmt: skip
def test_a_run_that_ends_before_sharing_starts_gets_a_warning(settings, sentence):
    config = TrainConfig(**settings)
    for each in (config, config.resolved()):
        said = why_nobody_shares(each)
        assert said is None if sentence is None else said.endswith(sentence)


@pytest.mark.usefixtures("plays_nothing")
def test_train_warns_that_nobody_will_share(tmp_path, capsys):
    train(TrainConfig(**SHORT), tmp_path / "silent")
    assert "nobody will share; set --share.start-episode 250" in capsys.readouterr().err
    train(TrainConfig(**SHORT | dict(preset="recommended")), tmp_path / "sharing")
    assert capsys.readouterr().err == ""


def test_a_sweep_warns_once_for_all_seeds_even_in_a_dry_run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["sweep", "--methods", "iql", "cons", "--seeds", "0", "1", "--dry-run", "--options", "episodes=2000"]
    assert main([*words, "preset=paper"]) == 0
    said = capsys.readouterr().err
    assert (
        said.count(
            "pgm-3ag/cons: sharing starts after episode 5,000, and the run has only 2,000 episodes: nobody will share"
        )
        == 1
    )
    assert "iql" not in said
    assert main(words) == 0
    assert capsys.readouterr().err == ""


def test_a_report_says_that_nobody_shared(tmp_path):
    for method, settings in (("iql", {}), ("cons", TrainConfig(**SHORT).resolved().share.given())):
        share = {name: getattr(value, "value", value) for name, value in settings.items()}
        write_run(tmp_path / method, method=method, share=share)
    runs = read_runs([tmp_path])
    said = [each for each in cautions(runs, by_world(grouped(runs))) if "never shared" in each]
    assert said == [
        "CONS never shared anything: sharing starts after episode 5,000, and its runs have 2,000 episodes. "
        "Comparisons show it without sharing."
    ]


def test_a_report_distinguishes_runs_by_the_settings_that_were_set(tmp_path):
    for preset in Preset:
        config = TrainConfig(method="cons", preset=preset).resolved()
        share = {name: getattr(value, "value", value) for name, value in config.share.given().items()}
        own = dict(preset=preset.value, share=share, exploration=config.exploration)
        write_run(tmp_path / preset.value, method="cons", by_default=list(config.by_default), **own)
    labels = {group.label for group in grouped(read_runs([tmp_path]))}
    assert labels == {"CONS, preset paper", "CONS, preset release", "CONS, preset recommended"}


@pytest.mark.parametrize(
    ("settings", "number"),
    [
        (dict(episodes=200), "the run has 200"),
        (dict(replay_episodes=200), "replay holds 200"),
        (dict(episodes=201, num_envs=1), None),  # 201 · 25 steps are more than 5,000
        (dict(episodes=4, warmup_steps=0), None),
        (dict(episodes=4, method="ga-comm"), None),  # it has no replay to wait for
    ],
)
def test_a_run_that_never_learns_gets_a_warning(settings, number):
    sentence = why_nobody_learns(TrainConfig(preset="paper", **settings), episode_limit=25)
    assert sentence is None if number is None else number in sentence


@pytest.mark.usefixtures("plays_nothing")
def test_train_warns_that_nobody_will_learn(tmp_path, capsys):
    train(TrainConfig(preset="paper", episodes=40), tmp_path / "run")
    assert "nobody will learn" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("settings", "is_told"),
    [
        (dict(method="cons", env="ft", preset="paper"), True),
        (dict(method="adhoc-td", env="ft", preset="release"), True),
        (dict(method="cons", env="ft", preset="paper", weights="separate"), False),
        (dict(method="cons", env="ft", preset="paper", share={"teacher_memory": "own"}), False),
        (dict(method="cons", env="ft"), True),
        (dict(method="qmix", sharing="cons"), True),
        (dict(method="cons"), False),
        (dict(method="iql", env="ft"), False),
    ],
)
def test_a_team_with_one_network_gets_a_warning_if_nobody_can_know_more(settings, is_told):
    config = TrainConfig(**settings)
    for each in (config, config.resolved()):
        assert (why_nobody_knows_more(each) is not None) == is_told


@pytest.mark.usefixtures("plays_nothing")
def test_train_and_sweep_warn_that_nobody_knows_more(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    train(TrainConfig(method="cons", env="ft", preset="paper"), tmp_path / "one-network")
    assert "agents share one network" in capsys.readouterr().err
    words = ["--methods", "cons", "--envs", "ft", "--seeds", "0", "1", "--options", "preset=paper"]
    assert main(["sweep", *words, "--dry-run"]) == 0
    assert capsys.readouterr().err.count("ft/cons: agents share one network") == 1
