"""The scripted teams play as well as their files claim; the thresholds here are well below those figures."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

import consmarl

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(autouse=True)
def _examples_import_each_other(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    yield
    for name in ("playing", "searching", "scripted_miner", "scripted_treasure", "scripted_cleanup"):
        sys.modules.pop(name, None)


def measure(env_id, new_player, num_episodes):
    return importlib.import_module("playing").measure(env_id, new_player, num_episodes, seed=2)


def test_scripted_miners_find_nearly_all_gold():
    miner = importlib.import_module("scripted_miner").Miner
    returns, achieved = measure("pgm-3ag", miner, 10)
    assert returns.mean() > 18
    assert achieved["gold_mined"] > 2.3  # of 3

    returns, achieved = measure("pgm-6ag", miner, 2)
    assert returns.mean() > 110
    assert achieved["gold_mined"] > 8.5  # of 12


def test_scripted_seekers_find_treasures_and_coins():
    seeker = importlib.import_module("scripted_treasure").Seeker
    returns, achieved = measure("ft", seeker, 8)
    assert returns.mean() > 3  # an episode's standard deviation is about 5
    assert achieved["treasures_taken"] > 0.7
    assert achieved["coins_taken"] > 2.5  # of 3


def test_scripted_cleanup_team_keeps_apples_growing():
    returns, achieved = measure("cleanup", importlib.import_module("scripted_cleanup").new_player, 6)
    assert returns.mean() > 95
    assert achieved["waste_cleaned"] > 40


def test_scripted_cleanup_agents_track_their_position():
    new_player = importlib.import_module("scripted_cleanup").new_player
    env = consmarl.parallel_env("cleanup")
    players = [new_player(env.world, index) for index in range(4)]
    importlib.import_module("playing").play(env, players, seed=2)
    np.testing.assert_array_equal([player.here for player in players], env._moment.state.agents)


def test_search_explores_a_whole_corridor_and_stops_there():
    best_path, as_bits = (getattr(importlib.import_module("searching"), name) for name in ("best_path", "as_bits"))
    seen = as_bits([(0, 0), (0, 1), (0, 2)], (1, 7))
    assert best_path((0, 1), seen, 12, (1, 7), (1, 3)) == tuple((0, column) for column in range(2, 6))
    # with two steps, cell 3 comes into view at cell 2 and can still be reached; cell 4 cannot
    assert best_path((0, 1), seen, 2, (1, 7), (1, 3)) == ((0, 2),)


def test_the_script_prints_the_mean_with_its_standard_error(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["scripted_cleanup.py", "--episodes", "2", "--seed", "3"])
    script = importlib.import_module("scripted_cleanup")
    importlib.import_module("playing").main(script.new_player, "cleanup")
    said = capsys.readouterr().out
    assert "cleanup: team return" in said
    assert "(s.e., 2 episodes)" in said
    assert "apples_eaten" in said
