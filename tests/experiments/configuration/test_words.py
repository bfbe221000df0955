"""Settings given as strings give the same run as enums, or are refused in one sentence."""

import dataclasses
import enum
import json
import types
import typing

import numpy as np
import pytest

import consmarl
from consmarl import (
    AdHocTD,
    Cons,
    LearnOptions,
    Preset,
    ShareOptions,
    TrainConfig,
    UsageError,
)
from consmarl.environments.cleanup import Cleanup
from consmarl.learners.ga_comm import GAComm
from consmarl.learners.i2q import I2Q
from consmarl.learners.interface import TeamSpec
from consmarl.learners.iql import IQL, TargetMemory
from consmarl.learners.maven import MAVEN
from consmarl.learners.optimiser import RMSprop
from consmarl.learners.qmix import QMIX
from consmarl.learners.rewards import RewardOf
from consmarl.learners.seql import SEQL
from consmarl.learners.team_networks import Weights
from consmarl.learners.vdn import VDN
from consmarl.options import Options
from consmarl.sharing.options import AskGate
from consmarl.training.exploration import LinearSchedule
from consmarl.training.loop import Trainer

SPEC = TeamSpec(2, 3, (1.0,))
LEARNERS = (IQL, SEQL, I2Q, VDN, QMIX, MAVEN, GAComm)
RECORDS = {
    TrainConfig: {}, ShareOptions: {}, LearnOptions: {}, Cons: {}, AdHocTD: {}, Cleanup: {}, LinearSchedule: {},
    RMSprop: {}, **{learner: dict(spec=SPEC) for learner in LEARNERS},
}  # fmt: skip

IN_WORDS = TrainConfig(
    method="cons", preset="recommended", sharing="cons", exploration="epsilon-squared", weights="shared",
    reward_of="team", set=["episode_limit=10"], record=np.arange(2), episodes=np.int64(400),
    share={"ask_gate": "always", "start_episode": 5}, learn={"target_memory": "whole-episode"}, discount=1,
)  # fmt: skip
IN_ENUMS = TrainConfig(
    method="cons", preset=Preset.RECOMMENDED, sharing="cons",
    exploration="epsilon-squared", weights=Weights.SHARED, reward_of=RewardOf.TEAM,
    set=("episode_limit=10",), record=(0, 1), episodes=400,
    share=ShareOptions(ask_gate=AskGate.ALWAYS, start_episode=5),
    learn=LearnOptions(target_memory=TargetMemory.WHOLE_EPISODE), discount=1.0,
)  # fmt: skip


def kinds_of(hint):
    return typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)


def fields_of(record, *kinds):
    """Yield the names of a record's fields that hold values of one of these kinds, each with its kind."""
    hints = typing.get_type_hints(record)
    if issubclass(record, Options):
        types_of = {name: each.bare_hint for name, each in record.known().items()}
    else:
        types_of = {each.name: hints[each.name] for each in dataclasses.fields(record)}
    for name, hint in types_of.items():
        for kind in kinds_of(hint):
            if isinstance(kind, type) and issubclass(kind, kinds):
                yield name, kind


def outcome(record, **settings):
    """Return the record, or the sentence that refuses settings which do not go together."""
    try:
        return record(**settings)
    except UsageError as error:
        return str(error)


def test_strings_enums_and_the_runs_own_file_give_the_same_run():
    assert IN_WORDS == IN_ENUMS
    assert IN_WORDS.to_json() == IN_ENUMS.to_json()
    written = IN_WORDS.resolved().to_json()
    assert TrainConfig.from_json(written) == IN_ENUMS.resolved()
    # the same environment, learner, exploration and sharing: the same program
    trainers = [config.trainer() for config in (IN_WORDS, IN_ENUMS, TrainConfig.from_json(written))]
    assert trainers[0] == trainers[1] == trainers[2]
    assert trainers[0].learner.weights is Weights.SHARED


@pytest.mark.parametrize("word", [each.value for each in Preset])
def test_a_preset_given_as_a_string_equals_the_enum(word):
    assert TrainConfig(preset=word).exploration_kind == TrainConfig(preset=Preset(word)).exploration_kind
    assert Cons.preset(word) == Cons.preset(Preset(word))
    assert AdHocTD.preset(word, start_episode=3) == AdHocTD.preset(Preset(word), start_episode=3)


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.__name__)
def test_every_choice_can_be_a_string_and_unknown_strings_are_refused(record):
    needed = RECORDS[record]
    for name, kind in fields_of(record, enum.Enum):
        for member in kind:
            assert outcome(record, **needed, **{name: member.value}) == outcome(record, **needed, **{name: member})
        for wrong in ("banana", 5, ["paper"], {}):
            with pytest.raises(UsageError, match=f"{name} has no value"):
                record(**needed, **{name: wrong})


@pytest.mark.parametrize("record", [each for each in RECORDS if each is not Cleanup], ids=lambda each: each.__name__)
def test_numbers_of_the_wrong_type_are_refused(record):
    needed = RECORDS[record]
    for name, kind in fields_of(record, int, float):
        for wrong in ("banana", [1], {}, 1 if kind is bool else True):
            with pytest.raises(UsageError, match=rf"{name} must be (a (whole )?number|true or false), not "):
                record(**needed, **{name: wrong})


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (dict(method="con"), "method has no value 'con': did you mean 'cons'"),
        (dict(preset="banana"), "preset has no value 'banana': choose from 'paper', 'release', 'recommended'"),
        (dict(share={"start_epsiode": 5}), r"no setting 'share\.start_epsiode': did you mean 'start_episode'"),
        (dict(share={"start_episode": "soon"}), r"share\.start_episode must be a whole number, not 'soon'"),
        (dict(share=5), "share must be of type ShareOptions, not 5"),
        (dict(learn={"expectile": [0.5]}), r"learn\.expectile must be a number, not \[0\.5\]"),
        (dict(set="grid=4,4"), "set must be a list, not 'grid=4,4'"),
        (dict(set=5), "set must be a list, not 5"),
        (dict(record=5), "record must be a list, not 5"),
        (dict(env=None), "env must be a string, not None"),
        (dict(by_default=["episodes"]), "by_default names a setting without a default"),
    ],
)
def test_invalid_settings_are_refused(settings, sentence):
    with pytest.raises(UsageError, match=sentence):
        TrainConfig(**settings)


def test_options_by_name_accept_strings_and_whole_groups():
    config = TrainConfig(method="cons", share={"temperature": 0.3})
    both = config.with_options({"share": {"ask_gate": "exploring"}, "share.update_rate": 0.5, "preset": "release"})
    assert both.share == ShareOptions(temperature=0.3, ask_gate=AskGate.EXPLORING, update_rate=0.5)
    assert both.preset is Preset.RELEASE


def test_an_optimiser_may_be_a_dict_of_changes_to_the_learners_own():
    assert IQL(SPEC, optimiser={"decay": 0.9}).optimiser == RMSprop(decay=0.9)
    assert GAComm(SPEC, optimiser={"decay": 0.9}).optimiser == RMSprop(learning_rate=1e-4, decay=0.9)
    with pytest.raises(UsageError, match="optimiser must be of type Optimiser, not 'adam'"):
        IQL(SPEC, optimiser="adam")
    with pytest.raises(UsageError, match="spec must be of type TeamSpec"):
        IQL("pgm-3ag")


def test_a_trainer_checks_its_parts():
    world = consmarl.make("pgm-3ag")
    learner = IQL(TeamSpec.of(world), weights="shared")
    assert learner.weights is Weights.SHARED
    with pytest.raises(UsageError, match="sharing must be of type Sharing, not 'cons'"):
        Trainer(world=world, learner=learner, sharing="cons")
    with pytest.raises(UsageError, match="num_envs must be a whole number"):
        Trainer(world=world, learner=learner, num_envs="4")


def test_environments_accept_strings_for_their_rules():
    assert consmarl.make("cleanup", waste_rule="per-step").waste_rule.value == "per-step"
    with pytest.raises(UsageError, match="waste_rule has no value 'per-stp': did you mean 'per-step'"):
        consmarl.make("cleanup", waste_rule="per-stp")
    with pytest.raises(UsageError, match=r"there is no world \['ft'\]"):
        consmarl.make(["ft"])


def test_train_accepts_a_dict_of_settings_and_refuses_other_types(monkeypatch, tmp_path):
    monkeypatch.setattr("consmarl.experiments.train._Session.finish", lambda *_, **__: None)
    monkeypatch.setattr(Trainer, "init", lambda *_, **__: None)
    out = consmarl.train({"method": "vdn", "episodes": 40, "learn.double_q": False}, tmp_path / "run")
    read = json.loads((out / "config.json").read_text())
    assert (read["method"], read["episodes"], read["learn"]["double_q"]) == ("vdn", 40, False)
    with pytest.raises(UsageError, match="config must be of type TrainConfig, not 'vdn'"):
        consmarl.train("vdn", tmp_path / "other")
