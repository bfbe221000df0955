"""Policy files say which weights they hold."""

import jax
import pytest
from safetensors import safe_open
from tests.experiments.small import SMALL

from consmarl.cli import main
from consmarl.experiments.configuration.config import TrainConfig
from consmarl.experiments.policies import export_policy

AVERAGED, NEWEST = "averaged over the last updates", "those of the last update"


def exported(config, directory):
    learner = config.trainer().learner
    parameters = learner.parameters(jax.jit(learner.init)(jax.random.key(0)))
    return export_policy(directory / "policy.safetensors", parameters, config.resolved(), episode=8)


@pytest.mark.parametrize(
    ("changes", "weights"),
    [
        ({"learn.averages_weights": True}, AVERAGED),
        ({"learn.averages_weights": False}, NEWEST),
        ({"preset": "paper"}, NEWEST),
        ({"preset": "paper", "method": "ga-comm", "exploration": None}, NEWEST),  # GA-Comm never averages weights
    ],
)
def test_a_policy_file_says_which_weights_it_holds(changes, weights, tmp_path):
    path = exported(TrainConfig(**SMALL).with_options(changes), tmp_path)
    with safe_open(path, framework="numpy") as file:
        assert file.metadata()["weights"] == weights


def test_an_evaluation_says_which_weights_it_used(tmp_path, capsys):
    path = exported(TrainConfig(**SMALL, learn={"averages_weights": True}), tmp_path)
    assert main(["evaluate", str(path), "--episodes", "2"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"weights: {AVERAGED}"
