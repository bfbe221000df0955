"""Recorded episodes of environments in Python: the environment draws itself, but only if the user allows it."""

import base64
import io
import re

import numpy as np
import pytest
from PIL import Image

from consmarl.experiments.configuration.config import TrainConfig
from consmarl.experiments.directory import read_config
from consmarl.experiments.exchanges import episode_path, read_episode
from consmarl.experiments.train import train
from consmarl.viewer.packing import unpacked
from consmarl.viewer.replayed import pictures_of
from consmarl.viewer.view import view
from tests.training.moody import Moody

ENV = "pettingzoo:tests.training.moody:Moody"
RECORDED = (1, 2)  # one episode from each of the first two rounds


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    config = TrainConfig(
        env=ENV, method="iql", episodes=4, num_envs=2, hidden_size=4, batch_episodes=2, replay_episodes=4,
        warmup_steps=0, record=RECORDED, evaluation_episodes=1, final_episodes=1, tensorboard=False, seed=5,
    )  # fmt: skip
    return train(config, tmp_path_factory.mktemp("moody") / "run")


def pictures_on(page):
    blocks = re.findall(r"<script[^>]*>\s*([A-Za-z0-9+/=]{200,})\s*</script>", page.read_text(encoding="utf-8"))
    return [unpacked(block)[0].get("pictures") for block in blocks]


def test_an_environment_draws_recorded_episodes_only_with_permission(run, tmp_path):
    assert pictures_on(view(run, tmp_path / "ring.html")) == [None, None]
    shown = pictures_on(view(run, tmp_path / "own.html", trust=True))
    for number, pictures in zip(RECORDED, shown, strict=True):
        assert len(pictures) == read_episode(episode_path(run, number)).num_steps + 1
        kind, _, content = pictures[3].partition(",")
        assert kind == "data:image/png;base64"
        drawn = np.asarray(Image.open(io.BytesIO(base64.b64decode(content))).convert("RGB"), np.int16)
        assert drawn.shape == (40, 40, 3)
        assert (np.abs(drawn[20, 19] - (200, 30, 30)) < 10).all()  # half of the picture is red after 3 of 6 steps
        assert (drawn[20, 21] < 10).all()


def test_no_pictures_are_shown_if_replaying_gives_another_episode(run, monkeypatch, capsys):
    monkeypatch.setattr(Moody, "max_cycles", 9)
    played = Moody.step
    monkeypatch.setattr(Moody, "step", lambda self, actions: played(self, dict.fromkeys(actions, 0)))
    recorded = [read_episode(episode_path(run, number)) for number in RECORDED]
    assert pictures_of(read_config(run, trust=True), recorded) == [[], []]
    assert "does not play episode 1 as it was recorded" in capsys.readouterr().err


def test_the_page_shows_the_picture_inside_the_ring(run, tmp_path, open_page):
    page = open_page(view(run, tmp_path / "own.html", trust=True).as_uri())
    page.wait_for_selector("image.own", state="visible")
    assert page.locator("image.own").count() == 1
    assert page.locator("image.own").bounding_box()["width"] > 100
