"""Environments by name, their parameters, and how invalid ones are refused."""

import pytest

import consmarl
from consmarl.errors import UsageError

BAD_PARAMETERS = [
    (
        "pgm-6ag",
        dict(num_agents=200),
        "200 agents \\+ 2 mines \\+ 3 piles need 205 distinct cells, and a 12×12 grid has 144",
    ),
    ("pgm-6ag", dict(view=(4, 5)), "odd sides.*\\(4, 5\\) could be \\(5, 5\\)"),
    ("pgm-6ag", dict(episode_limit=-1), "episode_limit must be a whole number of at least 1, not -1"),
    ("pgm-6ag", dict(episode_limit=2.5), "whole number"),
    ("pgm-6ag", dict(num_agents=True), "whole number"),
    ("pgm-6ag", dict(num_agents="six"), "whole number"),
    ("pgm-6ag", dict(num_agents=0), "at least 1"),
    ("pgm-6ag", dict(grid=16), "pair \\(rows, columns\\)"),
    ("pgm-6ag", dict(grid=(16,)), "pair \\(rows, columns\\)"),
    ("pgm-6ag", dict(grid=(16, -2)), "each side of grid"),
    ("pgm-6ag", dict(gold_reward=float("nan")), "finite"),
    ("pgm-6ag", dict(step_cost="free"), "finite"),
    ("pgm-6ag", dict(num_mines=-1), "num_mines"),
    ("pgm-6ag", dict(stones_per_pile=0), "at least 1"),
    ("pgm-6ag", dict(num_agents=2000, grid=(100, 100)), "at most 1023"),
    ("pgm-6ag", dict(episode_limit=70000), "at most 65535"),
    ("pgm-6ag", dict(num_agent=3), "no parameter 'num_agent': did you mean 'num_agents'"),
    ("ft", dict(num_mines=3), "ft has no parameter 'num_mines'"),
    ("ft", dict(num_red=60), "60 red boxes need"),
    ("ft", dict(openers_needed=0), "at least 1"),
    ("cleanup", dict(num_agents=1.0), "whole number"),
]


@pytest.mark.parametrize(("id", "parameters", "sentence"), BAD_PARAMETERS)
def test_invalid_parameters_are_refused_in_one_sentence(id, parameters, sentence):
    with pytest.raises(UsageError, match=sentence) as raised:
        consmarl.make(id, **parameters)
    assert "\n" not in str(raised.value)


def test_the_error_for_an_unknown_environment_suggests_names():
    with pytest.raises(UsageError, match="no world 'PGM-6': did you mean 'pgm-6ag'"):
        consmarl.make("PGM-6")
    with pytest.raises(UsageError, match=r"choose from .*'cleanup'"):
        consmarl.make("starcraft")


def test_parameters_change_what_they_name_and_nothing_else():
    world = consmarl.make("pgm-6ag", num_agents=8, grid=[16, 16])
    assert (world.num_agents, world.grid, world.num_mines) == (8, (16, 16), 2)
    assert world != consmarl.make("pgm-6ag")
    assert consmarl.make("pgm-6ag") == consmarl.make("pgm-6ag")
    assert hash(consmarl.make("pgm-6ag")) == hash(consmarl.make("pgm-6ag"))


# the sizes in the paper's table, and the observation lengths of the authors' environments
@pytest.mark.parametrize(
    ("id", "agents", "actions", "size", "limit"),
    [
        ("pgm-6ag", 6, 5, 78, 50),
        ("pgm-3ag", 3, 5, 48, 25),
        ("ft", 4, 7, 78, 50),
        ("ft-20", 20, 7, 78, 50),
        ("ft-multi", 4, 7, 78, 50),
        ("cleanup", 4, 6, 75, 50),
    ],
)
def test_sizes_match_the_published_ones(id, agents, actions, size, limit):
    world = consmarl.make(id)
    assert (world.num_agents, world.num_actions, world.observation_size, world.episode_limit) == (
        agents, actions, size, limit,
    )  # fmt: skip


BAD_LAYOUTS = [
    ("pgm-3ag", dict(agents=[[0, 0]] * 2), "agents.*3 cells"),
    ("pgm-3ag", dict(agents=[[0, 0], [1, 1], [8, 0]]), "\\(8, 0\\) outside the grid: rows go from 0 to 7"),
    ("pgm-3ag", dict(agents=[[0.5, 0]] * 3), "whole numbers"),
    ("pgm-3ag", dict(agents=[[0], [1, 2], [3, 3]]), "3 cells"),
    ("pgm-3ag", dict(stones=[[0, 3], [4, 4]]), "'stones' and 'golds' on one cell, \\(0, 3\\)"),
    ("pgm-3ag", dict(gold=[[0, 3]]), "no part 'gold': did you mean 'golds'"),
    ("ft", dict(treasure=6), "can be at most 5, not 6"),
    ("ft", dict(treasure=-1), "at least 0"),
    ("ft", dict(green=[[0, 0]]), "green.*0 cells"),
    ("cleanup", dict(agents=[[0, 0], [5, 4], [3, 6], [1, 6]]), "\\(0, 0\\) inside a wall"),
    ("cleanup", dict(agents=[[5, 4]] * 4), "'agent 1' and 'agent 0' on one cell"),
]
GOOD_LAYOUTS = {
    "pgm-3ag": dict(agents=[[0, 0], [1, 1], [2, 2]], golds=[[0, 3]], stones=[[0, 4], [5, 5]]),
    "ft": dict(agents=[[0, 0]] * 4, yellow=[[1, 1], [1, 2], [1, 3]], red=[[2, c] for c in range(6)], treasure=2),
    "cleanup": dict(agents=[[8, 3], [5, 4], [3, 6], [1, 6]]),
}


@pytest.mark.parametrize(("id", "change", "sentence"), BAD_LAYOUTS)
def test_invalid_layouts_are_refused_in_one_sentence(id, change, sentence):
    consmarl.make(id).layout_from(GOOD_LAYOUTS[id])
    with pytest.raises(UsageError, match=sentence) as raised:
        consmarl.make(id).layout_from(GOOD_LAYOUTS[id] | change)
    assert "\n" not in str(raised.value)


def test_a_missing_part_of_a_layout_is_named():
    with pytest.raises(UsageError, match="layout lacks 'stones'"):
        consmarl.make("pgm-3ag").layout_from({"agents": [[0, 0]] * 3, "golds": [[0, 1]]})
