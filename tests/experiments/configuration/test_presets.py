"""Presets: their settings reach the run, a user's settings override them, and runs keep the values they began with."""

import importlib.util
import itertools
import json
from pathlib import Path
from types import MappingProxyType

import pytest

from consmarl import Cons, Preset, TrainConfig, UsageError
from consmarl.cli import main
from consmarl.environments.cleanup import Cleanup
from consmarl.environments.gold_miner import GoldMiner
from consmarl.environments.registry import WORLDS
from consmarl.experiments.configuration import presets
from consmarl.experiments.configuration.as_json import every_setting
from consmarl.experiments.configuration.defaults import learners_own
from consmarl.experiments.configuration.methods import METHODS
from consmarl.experiments.configuration.presets import IF_SHARING, IF_TAUGHT, NOT_FOR_PRESETS, PRESETS, PresetEntry
from consmarl.experiments.directory import read_config
from consmarl.experiments.sweeps.command import runs_of
from consmarl.experiments.sweeps.request import SweepRequest
from consmarl.experiments.sweeps.studies import STUDIES
from consmarl.learners.td import Target
from consmarl.learners.team_networks import Weights
from consmarl.sharing.options import Eligibility

ROOT = Path(__file__).parents[3]
SOMEBODY_ELSES = "pettingzoo:nowhere.to_be_found"
ENVS = ("pgm-6ag", "ft-20", "cleanup", SOMEBODY_ELSES)
OPEN = {name for name, value in every_setting(TrainConfig()).items() if value is None}


@pytest.fixture
def made_up(monkeypatch):
    """Replace the settings of the preset `recommended`; Gold Miner sets nothing, and Cleanup only what is given."""

    def put(settings, of_cleanup=MappingProxyType({})):
        monkeypatch.setitem(presets.PRESETS, Preset.RECOMMENDED, PresetEntry("made up", settings))
        monkeypatch.setattr(GoldMiner, "presets", {})
        monkeypatch.setattr(Cleanup, "presets", {"recommended": of_cleanup})

    return put


@pytest.fixture
def docs_script():
    spec = importlib.util.spec_from_file_location("make_preset_table", ROOT / "docs" / "make_preset_table.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PLACES = [pytest.param(preset, env, id=f"{preset.value} {env}") for preset, env in itertools.product(Preset, ENVS)]


@pytest.mark.parametrize(("preset", "env"), PLACES)
def test_every_setting_of_a_preset_belongs_to_some_method(preset, env):
    of_world = WORLDS[env].preset(preset.value) if env in WORLDS else {}
    methods = [method for method, entry in METHODS.items() if entry.is_value_based]
    configs = [TrainConfig(method=method, env=env, preset=preset, sharing="cons") for method in methods]
    settings = {*PRESETS[preset].settings, *of_world}
    for name in {each.removeprefix(IF_SHARING).removeprefix(IF_TAUGHT) for each in settings}:
        assert name in OPEN - NOT_FOR_PRESETS
        assert any(name in config.by_preset for config in configs), name


def test_a_preset_may_have_other_settings_for_runs_with_sharing(made_up):
    made_up(
        {"epsilon_anneal_steps": 900, "if_sharing.epsilon_anneal_steps": 300},
        of_cleanup={"epsilon_anneal_steps": 800, "if_sharing.optimiser": "adam"},
    )
    alone, sharing = (TrainConfig(method=method, env="pgm-3ag") for method in ("iql", "cons"))
    assert alone.by_preset == {"epsilon_anneal_steps": 900}
    assert sharing.by_preset == {"epsilon_anneal_steps": 300}
    assert TrainConfig(method="iql", env="pgm-3ag", sharing="adhoc-td").by_preset == {"epsilon_anneal_steps": 300}
    assert TrainConfig(method="cons", env="pgm-3ag", epsilon_anneal_steps=7).resolved().epsilon_anneal_steps == 7
    # an environment's settings override the general ones
    assert TrainConfig(method="iql", env="cleanup").by_preset == {"epsilon_anneal_steps": 800}
    of_team = TrainConfig(method="cons", env="cleanup").by_preset
    assert of_team == {"epsilon_anneal_steps": 800, "optimiser": "adam"}


def test_a_preset_may_have_other_settings_for_newcomers_among_experts(made_up):
    made_up({"epsilon_anneal_steps": 900, "if_sharing.epsilon_end": 0.2, "if_taught.epsilon_anneal_steps": 100})
    taught = TrainConfig(method="cons", env="pgm-3ag", teachers="experts")
    assert taught.by_preset == {"epsilon_anneal_steps": 100, "epsilon_end": 0.2}
    assert TrainConfig(method="cons", env="pgm-3ag").by_preset == {"epsilon_anneal_steps": 900, "epsilon_end": 0.2}
    # agents that cannot ask gain nothing from teachers
    assert TrainConfig(method="iql", env="pgm-3ag", teachers="experts").by_preset == {"epsilon_anneal_steps": 900}
    # settings resolved without teachers are resolved again once there are some
    changed = TrainConfig(method="cons", env="pgm-3ag").resolved().with_options({"teachers": "experts"})
    assert changed.resolved().epsilon_anneal_steps == 100


def test_every_preset_that_an_environment_names_exists():
    for entry in WORLDS.values():
        assert {*entry.world.presets, *entry.presets} <= {preset.value for preset in Preset}


@pytest.mark.parametrize("preset", Preset)
def test_a_run_has_the_settings_of_its_preset(preset):
    for method, env in itertools.product(METHODS, ("pgm-3ag", "ft", "cleanup")):
        config = TrainConfig(method=method, env=env, preset=preset)
        whole = config.resolved()
        there = every_setting(whole)
        assert config.by_preset == {name: there[name] for name in config.by_preset}
        assert set(config.by_preset) <= set(whole.by_default)
        learner, learn = config.trainer().learner, whole.learn.given()
        assert {name: getattr(learner, name) for name in learn} == learn
        assert learner.optimiser.learning_rate == whole.learning_rate


@pytest.mark.parametrize("preset", [Preset.PAPER, Preset.RELEASE])
def test_paper_and_release_learn_and_explore_with_the_methods_own_settings(preset):
    for method, env in itertools.product(METHODS, ENVS):
        config = TrainConfig(method=method, env=env, preset=preset)
        assert all(name.startswith("share.") for name in config.by_preset)
        there = every_setting(config.resolved())
        assert {name: there[name] for name in learners_own(config)} == learners_own(config)
        own = "policy" if method == "ga-comm" else "epsilon-greedy"
        assert there["exploration"] == own


MADE_UP = {
    "hidden_size": 16, "batch_episodes": 7, "bootstrap_time_limit": True, "learn.target": Target.WATKINS,
    "epsilon_end": 0.2, "weights": Weights.SHARED, "share.temperature": 0.7,
}  # fmt: skip


def test_a_preset_can_set_anything_and_the_environments_values_take_precedence(made_up):
    made_up(MADE_UP, {"batch_episodes": 9})
    cons = TrainConfig(method="cons").trainer()
    assert (cons.learner.hidden_size, cons.learner.bootstrap_time_limit) == (16, True)
    assert (cons.learner.weights, cons.learner.target) == (Weights.SHARED, Target.WATKINS)
    assert (cons.batch_episodes, cons.epsilon.end, cons.sharing.temperature) == (7, 0.2, 0.7)
    assert TrainConfig(method="cons", env="cleanup").trainer().batch_episodes == 9
    assert TrainConfig(preset="paper").resolved().batch_episodes == 32


def test_a_method_ignores_preset_settings_it_does_not_have(made_up):
    made_up(MADE_UP)
    whole = TrainConfig(method="ga-comm").resolved()
    assert (whole.hidden_size, whole.weights, whole.learn.target, whole.share.temperature) == (64, None, None, None)
    assert whole.batch_episodes == 32  # not used by GA-Comm
    assert TrainConfig(method="vdn").resolved().share.temperature is None


def test_the_users_settings_override_the_preset(made_up):
    made_up(MADE_UP)
    given = {"hidden_size": 8, "bootstrap_time_limit": False, "epsilon_end": 0.3, "share.temperature": 0.4}
    config = TrainConfig(method="cons").with_options({**given, "learn.target": "one-step"})
    there = every_setting(config.resolved())
    assert {name: there[name] for name in given} == given
    assert there["learn.target"] is Target.ONE_STEP
    assert there["batch_episodes"] == 7
    assert not {*given, "learn.target"} & set(config.resolved().by_default)


def test_preset_settings_are_adapted_to_the_length_of_the_run(made_up):
    made_up({"num_envs": 8, "share.start_episode": 600})
    runs = [TrainConfig(method="cons", episodes=episodes).resolved() for episodes in (8_000, 1_004)]
    assert [(run.num_envs, run.share.start_episode) for run in runs] == [(8, 600), (4, 125)]
    assert TrainConfig(method="ga-comm").resolved().num_envs == 1


def test_changing_preset_method_or_environment_resolves_the_defaults_again(made_up):
    made_up(MADE_UP)
    whole = TrainConfig(method="iql", discount=0.5).resolved()
    for changes in ({"preset": "paper"}, {"method": "qmix"}, {"env": "cleanup"}):
        other = whole.with_options(changes)
        assert other.resolved() == TrainConfig(discount=0.5).with_options(changes).resolved()
        assert other.discount == 0.5
    assert whole.with_options({"seed": 3}).batch_episodes == 7


def test_recommended_is_the_default_preset(tmp_path):
    assert TrainConfig().preset is Preset.RECOMMENDED
    assert main(["train", "--write-config", str(tmp_path / "mine.json")]) == 0
    assert json.loads((tmp_path / "mine.json").read_text())["preset"] == "recommended"
    assert {run.config.preset for run in runs_of(SweepRequest(methods=("iql", "cons")))} == {Preset.RECOMMENDED}


def test_studies_use_the_paper_preset():
    for study in STUDIES.values():
        for run in study.sweep(0.1).runs() if study.env else []:
            assert run.config.preset is Preset.PAPER


def without_newer_settings(config):
    """Return a run's file as older versions wrote it, before targets and optimisers could be chosen."""
    read = json.loads(config.resolved().to_json())
    newer = {"optimiser", "learning_rate_end", "learn.target", "learn.trace_decay", "learn.averages_weights",
             "share.eligibility", "share.hope_margin"}  # fmt: skip
    for group in ("learn", "share"):
        read[group] = {name: value for name, value in read[group].items() if f"{group}.{name}" not in newer}
    read["by_default"] = [name for name in read["by_default"] if name not in newer]
    return {name: value for name, value in read.items() if name not in newer}


def test_an_older_run_keeps_its_learning_settings(tmp_path):
    old = without_newer_settings(TrainConfig(method="cons", preset="recommended"))
    (tmp_path / "config.json").write_text(json.dumps(old))
    read = [
        read_config(tmp_path),
        TrainConfig.from_file(tmp_path / "config.json"),
        TrainConfig.from_json(json.dumps(old)),
    ]
    for config in read:
        learner = config.trainer().learner
        assert (learner.target, learner.averages_weights) == (Target.ONE_STEP, False)
        assert (type(learner.optimiser).__name__, learner.optimiser.final_share) == ("RMSprop", 1.0)
        assert config.preset is Preset.RECOMMENDED
        # another method gets today's settings
        assert config.with_options({"method": "vdn"}).resolved() == TrainConfig(method="vdn").resolved()


def test_an_older_run_keeps_its_eligibility_rule_if_the_preset_changes(tmp_path, monkeypatch):
    old = without_newer_settings(TrainConfig(method="cons", preset="recommended"))
    (tmp_path / "config.json").write_text(json.dumps(old))
    later = {Preset.RECOMMENDED: dict(eligibility=Eligibility.MORE_HOPEFUL, hope_margin=0.5)}
    monkeypatch.setattr(Cons, "PRESETS", Cons.PRESETS | later)
    assert TrainConfig(method="cons").mechanism.eligibility is Eligibility.MORE_HOPEFUL
    then = read_config(tmp_path).mechanism
    assert (then.eligibility, then.hope_margin) == (Eligibility.EITHER, 0.0)


def test_a_run_from_before_presets_existed_uses_the_paper_preset(tmp_path):
    (tmp_path / "config.json").write_text('{"env": "pgm-3ag", "episodes": 400}')
    assert read_config(tmp_path).resolved() == TrainConfig(preset="paper", episodes=400).resolved()
    by_hand = TrainConfig.from_file(tmp_path / "config.json")  # a user may have written such a file today
    assert by_hand.preset is Preset.RECOMMENDED


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (dict(learn={"trace_decay": 1.5}), r"learn\.trace_decay must lie between 0 and 1, not 1\.5\."),
        (dict(learn={"trace_decay": -0.1}), r"learn\.trace_decay must lie between 0 and 1, not -0\.1\."),
        (
            dict(learning_rate_end=2),
            r"learning_rate_end must be above 0 and at most 1, not 2\.0: .* cannot increase\.",
        ),
        (dict(learning_rate_end=0), r"learning_rate_end must be above 0 and at most 1, not 0\.0"),
        (dict(learning_rate=0), r"learning_rate must be above 0, not 0\.0\."),
        (
            dict(method="ga-comm", learn={"target": "optimistic"}),
            r"learn\.target is an option of .*, not of ga-comm",
        ),
        (dict(method="qmix", learn={"target_memory": "whole-episode"}), r"learn\.target_memory is an option of iql, "),
        (dict(method="ga-comm", exploration="epsilon-greedy"), "ga-comm samples from the policy it learns"),
        (dict(preset="recomended"), "preset has no value 'recomended': did you mean 'recommended'"),
    ],
)
def test_invalid_values_are_refused(settings, sentence):
    with pytest.raises(UsageError, match=sentence):
        TrainConfig(**settings)


def test_the_page_shows_the_settings_of_the_presets(docs_script):
    page = docs_script.PAGE.read_text(encoding="utf-8")
    assert docs_script.with_table(page) == page, "run `python docs/make_preset_table.py`"
    assert docs_script.table().count("\n") > len(Preset)


def test_list_shows_every_preset(capsys):
    assert main(["list"]) == 0
    shown = capsys.readouterr().out
    assert all(entry.summary in shown for entry in PRESETS.values())


@pytest.mark.parametrize(
    ("words", "values"),
    [
        (["--bootstrap-time-limit", "--learn.double-q"], (True, True)),
        (["--no-bootstrap-time-limit", "--no-learn.double-q"], (False, False)),
        (["--bootstrap_time_limit", "False", "--learn.double-q=True"], (False, True)),
        ([], (None, None)),
    ],
)
def test_an_optional_switch_needs_no_value(words, values, tmp_path):
    assert main(["train", *words, "--write-config", str(tmp_path / "mine.json")]) == 0
    written = TrainConfig.from_file(tmp_path / "mine.json")
    assert (written.bootstrap_time_limit, written.learn.double_q) == values


def test_a_switch_given_with_a_file_is_no_longer_listed_as_a_default(tmp_path):
    (tmp_path / "config.json").write_text(TrainConfig().resolved().to_json())
    words = ["--config", str(tmp_path / "config.json"), "--no-bootstrap-time-limit"]
    assert main(["train", *words, "--write-config", str(tmp_path / "mine.json")]) == 0
    written = TrainConfig.from_file(tmp_path / "mine.json")
    assert written.bootstrap_time_limit is False
    assert "bootstrap_time_limit" not in written.by_default
    assert "learning_rate" in written.by_default
