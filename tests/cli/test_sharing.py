"""Sharing options on the command line."""

import pytest

from consmarl.cli import main
from consmarl.experiments.configuration.config import TrainConfig
from consmarl.experiments.configuration.sharings import ShareOptions
from consmarl.sharing.options import AskGate, Preset


@pytest.fixture
def trained(monkeypatch):
    """Collect the configurations that would be trained; nothing is trained."""
    configs = []

    def train(config, out):
        configs.append(config)
        return out

    monkeypatch.setattr("consmarl.experiments.train.train", train)
    monkeypatch.setattr("consmarl.experiments.ending.ending", str)
    return configs


def test_choosing_cons_switches_sharing_on(trained):
    assert main(["train", "--method", "cons"]) == 0
    assert trained == [TrainConfig(method="cons")]
    assert trained[0].name.startswith("pgm-3ag-cons-recommended-")


def test_presets_and_single_options_reach_the_run(trained):
    main(["train", "--method", "cons", "--preset", "release", "--share.ask-gate", "always", "--share.temperature",
          "0.5", "--share.requires-seen", "False", "--record", "3", "7"])  # fmt: skip
    share = ShareOptions(ask_gate=AskGate.ALWAYS, temperature=0.5, requires_seen=False)
    assert trained == [TrainConfig(method="cons", preset=Preset.RELEASE, share=share, record=(3, 7))]


def test_options_of_another_method_are_refused(tmp_path, capsys):
    out = str(tmp_path / "run")
    assert main(["train", "--method", "cons", "--share.give-scale", "2", "--out", out]) == 2
    assert "share.give_scale is an option of adhoc-td" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_help_shows_every_option_with_its_source(capsys):
    assert main(["train", "--help-all"]) == 0
    text = capsys.readouterr().out
    for name in ShareOptions.known():
        assert f"--share.{name.replace('_', '-')}" in text
    assert "[P: 50,000]" in " ".join(text.split())
