"""How a run's file records settings left at their defaults, and what happens to them when other settings change."""

import itertools
import json
import subprocess
from types import SimpleNamespace

import pytest

from consmarl import Preset, ShareOptions, TrainConfig, UsageError
from consmarl.cli import main
from consmarl.experiments.configuration.as_json import every_setting
from consmarl.experiments.configuration.explorations import EXPLORATIONS
from consmarl.experiments.configuration.methods import METHODS, LearnOptions
from consmarl.experiments.configuration.sharings import SHARINGS
from consmarl.experiments.directory import read_config
from consmarl.experiments.source import git_facts
from consmarl.experiments.sweeps.plan import PlannedRun, check_against
from consmarl.learners.team_networks import Weights

OF_THE_WORLD = ("pgm-3ag", "ft", "cleanup")
FLOATS = dict(observation_size=2, observation_dtype="float32")  # as in environments of other packages


@pytest.fixture
def trained(monkeypatch):
    """Collect the configurations that would be trained; nothing is trained."""
    configs = []
    monkeypatch.setattr("consmarl.experiments.ending.ending", str)
    monkeypatch.setattr("consmarl.experiments.train.train", lambda config, out: configs.append(config) or out)
    return configs


def written(config, directory):
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.json").write_text(config.to_json())
    return directory / "config.json"


@pytest.mark.parametrize("method", METHODS)
def test_a_run_writes_every_setting_that_its_method_has(method):
    for env, preset in itertools.product(OF_THE_WORLD, Preset):
        config = TrainConfig(method=method, env=env, preset=preset)
        whole = config.resolved()
        expected = {name for name in every_setting(config) if not name.startswith(("share.", "learn.", "explore."))}
        expected -= {name for name in ("weights", "reward_of") if not config.entry.has(name)}
        expected |= {f"learn.{name}" for name in LearnOptions.known() if config.entry.has(name)}
        expected |= {f"share.{name}" for name in SHARINGS[config.sharing_kind].options}
        expected |= {f"explore.{name}" for name in EXPLORATIONS[config.exploration_kind].options}
        assert {name for name, value in every_setting(whole).items() if value is not None} == expected
        left_open = {name for name, value in every_setting(config).items() if value is None}
        assert set(whole.by_default) == expected & left_open
        assert whole.resolved() == whole
        assert TrainConfig.from_json(whole.to_json()) == whole
        assert TrainConfig.from_json(whole.to_json()).by_default == whole.by_default
        assert None not in json.loads(whole.to_json()).values()
        assert whole.trainer() == config.trainer()


def test_the_paper_preset_writes_the_papers_values():
    read = json.loads(TrainConfig(method="cons", preset="paper", set=["num_agents=4"]).resolved().to_json())
    assert (read["exploration"], read["epsilon_start"], read["epsilon_end"]) == ("epsilon-greedy", 1.0, 0.05)
    assert (read["epsilon_anneal_steps"], read["learning_rate"], read["weights"]) == (50_000, 5e-4, "separate")
    assert (read["optimiser"], read["learning_rate_end"], read["hidden_size"]) == ("rmsprop", 1.0, 64)
    assert (read["batch_episodes"], read["replay_episodes"], read["target_every_updates"]) == (32, 10_000, 200)
    assert (read["discount"], read["warmup_steps"], read["bootstrap_time_limit"]) == (0.99, 5_000, False)
    share = read["share"]
    assert (share["temperature"], share["ask_gate"], share["start_episode"]) == (1.0, "always", 5_000)
    assert share["budget_answers"] == 3 * 50_000
    assert "give_scale" not in share  # an option of AdHocTD
    assert (read["learn"]["target"], read["learn"]["target_memory"]) == ("one-step", "next-observations")


def test_settings_that_were_set_are_not_listed_as_defaults():
    whole = TrainConfig(method="cons", weights="shared", share={"temperature": 0.5}).resolved()
    assert not {"weights", "share.temperature", "method", "episodes"} & set(whole.by_default)
    assert {"reward_of", "share.ask_gate"} <= set(whole.by_default)


def test_resolving_a_configuration_does_not_create_a_third_party_environment():
    config = TrainConfig(env="pettingzoo:nowhere.to_be_found", method="ga-comm", preset="paper").resolved()
    assert (config.epsilon_start, config.epsilon_anneal_steps, config.num_envs) == (0.5, None, 1)
    world = SimpleNamespace(episode_limit=40, num_agents=3, num_actions=5, **FLOATS)
    assert config.resolved(world).epsilon_anneal_steps == 750 * 40
    sharing = TrainConfig(env="pettingzoo:nowhere.to_be_found", method="cons", preset="paper").resolved()
    assert (sharing.epsilon_anneal_steps, sharing.share.budget_answers) == (50_000, None)
    assert sharing.resolved(world).share.budget_answers == 2 * 50_000
    assert "share.budget_answers" in sharing.resolved(world).by_default


def test_a_file_with_nulls_can_still_be_read():
    old = json.loads(TrainConfig(method="cons").to_json())
    assert old["exploration"] is None
    assert "by_default" not in old
    assert TrainConfig.from_json(json.dumps(old)) == TrainConfig(method="cons")


def with_other_defaults(path, **values):
    """Rewrite the file as a version with other defaults would have written it."""
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def test_a_run_resumes_with_the_values_it_began_with(tmp_path):
    path = written(TrainConfig(method="cons").resolved(), tmp_path)
    with_other_defaults(path, learning_rate=0.125, epsilon_end=0.25)
    trainer = read_config(tmp_path).trainer()
    assert trainer.learner.optimiser.learning_rate == 0.125
    assert trainer.epsilon.end == 0.25


def test_an_older_run_resumes_with_its_original_start_of_sharing(tmp_path):
    config = TrainConfig(method="cons", preset="recommended", episodes=2_000)
    assert config.sharing_start == 250
    written(config, tmp_path)  # as older versions wrote it, without the resolved settings
    sharing = read_config(tmp_path).trainer().sharing
    assert sharing.start_episode == 5_000
    assert (sharing.ask_gate.value, sharing.temperature, sharing.teacher_memory.value) == ("exploring", 0.3, "student")


def test_options_given_with_a_file_change_only_the_defaults_that_depend_on_them(tmp_path, trained, capsys):
    path = written(TrainConfig(method="cons", preset="release", weights="separate").resolved(), tmp_path)
    with_other_defaults(path, learning_rate=0.125)
    given = ["train", "--config", str(path)]
    main([*given, "--seed", "3", "--share.temperature=0.5"])
    main([*given, "--episodes", "2000"])
    main([*given, "--env", "ft", "--reward-of", "individual"])
    main([*given, "--sharing", "none"])
    assert main([*given, "--method", "ga-comm"]) == 2
    assert "ga-comm has no choice of weights" in capsys.readouterr().err  # which the file sets explicitly
    seeded, short, elsewhere, silent = trained
    assert (seeded.learning_rate, seeded.seed, seeded.share.temperature) == (0.125, 3, 0.5)
    assert "share.temperature" not in seeded.by_default
    assert "learning_rate" in seeded.by_default
    assert (short.resolved().share.start_episode, short.resolved().learning_rate) == (250, 5e-4)
    assert elsewhere.resolved().weights is Weights.SEPARATE  # as the file says
    assert elsewhere.resolved().reward_of.value == "individual"  # as the command says
    assert elsewhere.resolved().share.weight_shape == 0.7  # the preset's value for that environment
    assert silent.resolved().share == ShareOptions()
    assert silent.trainer().sharing is not None


def test_a_method_given_with_a_file_replaces_the_files_method(tmp_path, trained):
    path = written(TrainConfig(method="iql").resolved(), tmp_path)
    for method in METHODS:
        assert main(["train", "--config", str(path), "--method", method]) == 0
        assert trained[-1].resolved() == TrainConfig(method=method).resolved()
        read = TrainConfig.from_file(path).with_options({"method": method})
        assert read.resolved() == TrainConfig(method=method).resolved()


@pytest.mark.parametrize("periods", [["--num-envs", "5", "--episodes", "40"], ["--report-every", "100"]])
def test_default_periods_adapt_to_changed_settings(periods, tmp_path, trained):
    path = written(TrainConfig(preset="paper", episodes=400).resolved(), tmp_path)
    assert main(["train", "--config", str(path), *periods]) == 0
    whole = trained[-1].resolved()
    assert whole.evaluate_every % whole.report_every == 0
    assert whole.report_every % whole.num_envs == 0


def test_a_sweep_recognises_its_runs_however_they_were_written(tmp_path):
    config = TrainConfig(method="cons", preset="paper")
    run = PlannedRun("one", config)
    for there in (config, config.resolved(), config.with_options({"exploration": "epsilon-greedy"}).resolved()):
        written(there, tmp_path / "one")
        check_against(tmp_path, [run])
    written(config.with_options({"share.temperature": 0.5}).resolved(), tmp_path / "one")
    with pytest.raises(UsageError, match=r"started with share\.temperature 0\.5, and now 1\.0 is wanted"):
        check_against(tmp_path, [run])


def test_a_sweep_recognises_its_runs_in_a_third_party_environment(tmp_path):
    run = PlannedRun("one", TrainConfig(env="pettingzoo:nowhere.to_be_found", method="adhoc-td"))
    world = SimpleNamespace(episode_limit=40, num_agents=3, num_actions=5, **FLOATS)
    written(run.config.resolved(world), tmp_path / "one")
    check_against(tmp_path, [run])


def test_a_run_without_sharing_has_no_sharing_options():
    assert TrainConfig().resolved().sharing == "none"
    assert TrainConfig().resolved().share == ShareOptions()


def repository(tmp_path):
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    identity = ["-c", "user.name=A", "-c", "user.email=a@b.c"]

    def git(*words):
        subprocess.check_call(["git", *identity, *words], cwd=tmp_path, stdout=subprocess.DEVNULL)

    git("init", "-q")
    return package, git


def test_the_commit_is_recorded_if_git_tracks_the_source(tmp_path, monkeypatch):
    package, git = repository(tmp_path)
    (tmp_path / "README").write_text("somebody's project")
    git("add", "README")
    git("commit", "-qm", "first")
    assert git_facts(package) is None  # it lies in a repository that does not track it
    git_facts.cache_clear()
    git("add", "package")
    git("commit", "-qm", "second")
    clean = git_facts(package)
    assert len(clean["commit"]) == 40
    assert clean["is_dirty"] is False
    git_facts.cache_clear()
    (package / "new.py").write_text("")
    assert git_facts(package) == clean | {"is_dirty": True}
    git_facts.cache_clear()
    monkeypatch.setenv("PATH", "")
    assert git_facts(package) is None
    git_facts.cache_clear()


def test_parameters_of_the_environment_may_be_a_dict():
    expected = TrainConfig(set=("grid=(5,5)", "mining_steps=4"))
    assert TrainConfig(set={"grid": (5, 5), "mining-steps": 4}) == expected
    assert TrainConfig().with_options({"set": {"grid": (5, 5), "mining_steps": 4}}) == expected
