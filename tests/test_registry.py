"""Registering your own environments, methods, sharing mechanisms and explorations, and what is refused."""

import copy
import dataclasses
import enum
import pickle
from dataclasses import dataclass
from typing import Any

import pytest

import consmarl
from consmarl import ExploreOptions, LearnOptions, ShareOptions, TrainConfig, UsageError
from consmarl.cli import main
from consmarl.environments.gold_miner import GoldMiner
from consmarl.environments.registry import WORLDS
from consmarl.environments.validation import Fraction, Size
from consmarl.experiments.configuration.explorations import EXPLORATIONS
from consmarl.experiments.configuration.methods import METHODS
from consmarl.experiments.configuration.presets import settings_of
from consmarl.experiments.configuration.sharings import SHARINGS
from consmarl.learners.interface import Learner
from consmarl.learners.iql import IQL
from consmarl.records import internal
from consmarl.sharing.cons import Cons
from consmarl.sharing.options import Preset
from consmarl.training.exploration import EpsilonGreedy

pytestmark = pytest.mark.usefixtures("unregistered")


class Mood(enum.Enum):
    """An enum that only this learner uses."""

    CALM = "calm"
    WILD = "wild"


@dataclass(frozen=True)
class Moody(IQL):
    """IQL with options of its own."""

    mood: Mood = Mood.CALM
    """How it feels."""
    patience: Fraction = 0.5
    """How long it waits."""
    num_naps: Size = 1
    secret: int = internal(0)


@dataclass(frozen=True, kw_only=True)
class Shouting(Cons):
    """CONS with an option of its own."""

    loudness: float = 1.0
    """How far it is heard."""


@dataclass(frozen=True)
class Restless(EpsilonGreedy):
    """ε-greedy with an option of its own."""

    pace: float = 2.0
    """Steps at a time."""


@dataclass(frozen=True, kw_only=True)
class Quarry(GoldMiner):
    """Gold Miner with its own family and presets."""

    family = "Quarries"
    acts_as_one = True
    presets = {"recommended": {"hidden_size": 16, "exploration": "epsilon-squared"}}  # noqa: RUF012


def test_a_registered_learner_adds_its_options():
    consmarl.register_method("moody", Moody, "moody IQL")
    config = TrainConfig(method="moody", learn={"mood": "wild", "patience": 1})
    learner = config.trainer().learner
    assert (type(learner), learner.mood, learner.patience, learner.num_naps) == (Moody, Mood.WILD, 1.0, 1)
    assert config.resolved().learn.num_naps == 1
    assert TrainConfig.from_json(config.resolved().to_json()) == config.resolved()
    assert "secret" not in LearnOptions.known()
    assert LearnOptions.known()["mood"].description == "How it feels."
    assert LearnOptions.known()["mood"].owners == ("moody",)


def test_registered_names_and_options_are_on_the_command_line(capsys, tmp_path):
    consmarl.register_method("moody", Moody, "moody IQL")
    consmarl.register_sharing("shouting", Shouting, "CONS, aloud")
    consmarl.register_exploration("restless", Restless)
    consmarl.register_world("quarry", Quarry, "a quarry", num_agents=2)
    assert main(["list"]) == 0
    listed = capsys.readouterr().out
    assert "moody IQL" in listed
    assert "a quarry" in listed
    words = ["--method", "moody", "--learn.mood", "wild", "--sharing", "shouting", "--share.loudness", "3",
             "--exploration", "restless", "--explore.pace", "4", "--env", "quarry"]  # fmt: skip
    assert main(["train", *words, "--help"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    for text in ("--learn.mood wild", "How it feels.", "One of calm, wild.", "--share.loudness 3", "--explore.pace 4"):
        assert text in shown
    assert main(["train", *words, "--write-config", str(tmp_path / "mine.json")]) == 0
    config = TrainConfig.from_file(tmp_path / "mine.json")
    trainer = config.trainer()
    assert (trainer.sharing.loudness, trainer.exploration.pace, trainer.world.num_agents) == (3.0, 4.0, 2)


def test_a_registered_sharing_mechanism_inherits_presets_and_takes_options():
    consmarl.register_sharing("shouting", Shouting)
    mechanism = TrainConfig(method="vdn", sharing="shouting", share={"loudness": 2}).mechanism
    assert isinstance(mechanism, Shouting)
    assert (mechanism.loudness, mechanism.temperature) == (2.0, Cons.PRESETS[Preset.RECOMMENDED]["temperature"])


def test_an_environment_determines_how_it_is_learned():
    consmarl.register_world("quarry", Quarry)
    there = TrainConfig(env="quarry").resolved()
    assert (there.hidden_size, there.exploration, there.weights.value) == (16, "epsilon-squared", "shared")
    assert there.reward_of.value == "team"
    assert TrainConfig(env="quarry", preset="paper").resolved().hidden_size == 64
    assert settings_of(Preset.PAPER, "iql", "none", "quarry") == {}


def test_registering_a_class_again_replaces_its_entry():
    consmarl.register_method("moody", Moody, "before")
    consmarl.register_method("moody", Moody, "after")
    assert METHODS["moody"].summary == "after"


@dataclass
class Melting(Learner[Any, Any, Any]):
    """Not frozen."""


@dataclass(frozen=True)
class Untyped(IQL):
    """An option of a type that no command line can read."""

    anything: Any = None


@dataclass(frozen=True)
class Clashing(IQL):
    """An option that another method has with a different type."""

    expectile: int = 1


@pytest.mark.parametrize(
    ("register", "sentence"),
    [
        (lambda: consmarl.register_method("iql", Moody), r"there is a method 'iql' already, from consmarl\.learners\."),
        (
            lambda: consmarl.register_method("My Method", Moody),
            "'My Method' cannot be the name of a method: use lower-case",
        ),
        (lambda: consmarl.register_method("x", Untyped), "has an option anything whose type cannot be read from a"),
        (lambda: consmarl.register_method("x", Clashing), "x has an option expectile of another type than that of i2q"),
        (
            lambda: consmarl.register_method("x", Moody, sharing="con"),
            "no sharing mechanism 'con': did you mean 'cons'",
        ),
        (lambda: consmarl.register_method("x", Restless), "must be a class derived from Learner, not"),
        (lambda: consmarl.register_method("x", 5), "the learner of method 'x' must be a class derived from Learner"),
        (lambda: consmarl.register_method("x", Melting), "must be a frozen dataclass: write @dataclass.frozen=True. "),
        (lambda: consmarl.register_sharing("x", IQL), "must be a class derived from Sharing"),
        (lambda: consmarl.register_exploration("x", Mood), "must be a class derived from Exploration"),
        (lambda: consmarl.register_world("pgm-3ag", Quarry), "there is a world 'pgm-3ag' already, from consmarl"),
        (lambda: consmarl.register_world("x", Quarry, num_agens=2), "no parameter 'num_agens': did you mean 'num_age"),
    ],
)
def test_invalid_registrations_are_refused(register, sentence):
    with pytest.raises(UsageError, match=sentence):
        register()
    assert "x" not in (*METHODS, *SHARINGS, *EXPLORATIONS, *WORLDS)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (dict(learn={"patience": 2}), r"learn\.patience must lie between 0 and 1, not 2\.0"),
        (dict(learn={"mood": "sad"}), r"learn\.mood has no value 'sad': choose from 'calm', 'wild'"),
        (dict(learn={"num_naps": 0}), r"learn\.num_naps must be a whole number of at least 1"),
        (dict(learn={"patiense": 1}), r"no setting 'learn\.patiense': did you mean 'patience'"),
        (dict(method="iql", learn={"mood": "calm"}), r"learn\.mood is an option of moody, not of iql"),
        (
            dict(explore={"share": 0.5}),
            r"explore\.share is an option of epsilon-greedy-together, not of epsilon-z-greedy",
        ),
        (
            dict(exploration="epsilon-greedy-together", explore={"share": 1.5}),
            r"explore\.share must lie between 0 and 1",
        ),
        (dict(exploration="epsilon-greed"), "exploration has no value 'epsilon-greed': did you mean 'epsilon-greedy'"),
    ],
)
def test_registered_options_are_checked(settings, sentence):
    consmarl.register_method("moody", Moody)
    with pytest.raises(UsageError, match=sentence):
        TrainConfig(**{"method": "moody", **settings})


@pytest.mark.parametrize("kind", [ShareOptions, LearnOptions, ExploreOptions])
def test_options_compare_and_copy_by_value(kind):
    name = {"share": "hope_margin", "learn": "trace_decay", "explore": "share"}[kind.group]
    some, same, other = kind(**{name: 0.5}), kind(**{name: 0.5}), kind(**{name: 0.75})
    assert (some, hash(some)) == (same, hash(same))
    assert some != other
    assert kind() != some
    assert (getattr(kind(), name), getattr(some, name)) == (None, 0.5)
    assert some.given() == {name: 0.5}
    assert list(some.every()) == list(kind.known())
    assert some.changed({name: 0.75}) == other
    assert some.changed({name: None}) == kind()
    assert copy.deepcopy(some) == pickle.loads(pickle.dumps(some)) == some
    assert repr(some) == f"{kind.__name__}({name}=0.5)"
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(some, name, 0.75)
    with pytest.raises(AttributeError, match="has no option 'colour'"):
        _ = some.colour


def test_every_built_in_option_has_a_description():
    for group in (ShareOptions, LearnOptions, ExploreOptions):
        for option in group.known().values():
            assert option.description.endswith("."), option.name
