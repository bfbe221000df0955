"""Help shows the options of the chosen method, with the values that the run would use."""

import re

import pytest

from consmarl.cli import main
from consmarl.cli.options import options_of_command
from consmarl.cli.values import real_values
from consmarl.experiments.configuration.config import TrainConfig
from consmarl.experiments.configuration.methods import METHODS


def options_in(words, capsys):
    """Return the options that help shows, each with its value, and the whole text."""
    assert main(words.split()) == 0
    text = capsys.readouterr().out
    return dict(re.findall(r"^  (--[a-z][a-z.0-9-]*)\s+(\S+)", text, flags=re.MULTILINE)), text


def test_help_shows_the_methods_own_options_with_the_presets_values(capsys):
    shown, text = options_in("train --method cons --preset release --help", capsys)
    assert shown["--share.temperature"] == "0.3"
    assert shown["--share.ask-when"] == "first-step"
    assert shown["--learning-rate"] == "0.0005"
    assert shown["--epsilon-anneal-steps"] == "50000"
    assert shown["--share.budget-answers"] == "100000"  # 50,000 for each of the two teammates
    assert shown["--weights"] == "separate"
    assert "--learn.expectile" not in shown
    assert "--share.give-scale" not in shown
    assert "None" not in text
    assert len(text.splitlines()) <= 3 * len(shown)  # short enough to scan


@pytest.mark.parametrize(
    ("words", "there", "missing"),
    [
        ("--method iql", {"--episodes": "40000", "--sharing": "none"}, ["--share.temperature", "--learn.mixer-size"]),
        ("--method i2q", {"--learn.expectile": "0.52"}, ["--learn.mixer-size", "--weights"]),
        (
            "--method ga-comm --preset paper",
            {"--learning-rate": "0.0001", "--epsilon-anneal-steps": "18750"},
            ["--replay-episodes"],
        ),
        ("--preset paper", {"--exploration": "epsilon-greedy", "--optimiser": "rmsprop"}, []),
        ("--preset paper --learn.double-q", {"--learn.double-q": "(yes)", "--learn.averages-weights": "(no)"}, []),
        ("--env ft --method cons --preset paper", {"--weights": "shared", "--share.weight-shape": "0.3"}, []),
        (
            "--episodes 1e3 --num-envs 4 --hidden-size 8",
            {"--episodes": "1000", "--hidden-size": "8", "--report-every": "20"},
            [],
        ),
        ("--env pettingzoo:nowhere.at_all --preset paper", {"--num-envs": "1", "--weights": "separate"}, []),
        ("--no-tensorboard", {"--tensorboard": "(no)"}, []),
    ],
)
def test_help_shows_the_values_that_the_run_would_use(words, there, missing, capsys):
    shown, _ = options_in(f"train {words} --help", capsys)
    assert there.items() <= shown.items()
    assert not set(missing) & set(shown)


def test_help_is_shown_even_if_an_option_is_invalid(capsys):
    assert main(["train", "--method", "con", "--help"]) == 0
    said = capsys.readouterr()
    assert "--episodes 40000" in said.out
    assert said.err == "consmarl: --method has no value 'con': did you mean 'cons'?\n"


@pytest.mark.parametrize("method", METHODS)
def test_every_setting_has_a_value_to_show(method):
    values = real_values(TrainConfig(method=method))
    assert {each.setting for each in options_of_command(TrainConfig)} == set(values)
    left_open = {name for name, value in values.items() if value is None and "." not in name}
    assert left_open <= {"weights", "reward_of"}
