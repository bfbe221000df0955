"""With and without sharing: the differences of the pairs, their mean with its interval, and the verdict."""

import numpy as np
import pytest

from consmarl.experiments.exchanges import RecordedEpisode
from consmarl.reports.statistics import interval
from consmarl.viewer.pairs import FEWEST_PAIRS, Turn, described, most_gained, paired_returns, verdict


def episodes(returns):
    """Episodes of two steps and two agents, whose rewards add up to these returns."""
    shares = np.array([[0.5, 0.25], [0.25, 0.0]], np.float32)
    return [RecordedEpisode({}, {"rewards": np.float32(total) * shares}, {}, {}, {}) for total in returns]


def pairs_of(differences):
    return paired_returns(episodes(np.array(differences) + 8.0), episodes([8.0] * len(differences)))


def test_differences_are_with_minus_without_sharing_and_have_a_bootstrap_interval():
    differences = [3.0, -1.0, 0.0, 2.0, 0.0, 5.0, 1.0, -2.0, 4.0, 0.5, 0.0, 7.0]
    pairs = pairs_of(differences)
    np.testing.assert_allclose(pairs.differences, differences, atol=1e-5)
    assert pairs.mean == pytest.approx(interval(differences), abs=1e-5)
    told = described(pairs)
    assert told["bounds"] == [pairs.mean.low, pairs.mean.high]
    assert told["counts"] == "The return is higher with sharing in 7, lower in 2 and the same in 3."
    assert told["told"].startswith("+1.62 [+0.")


@pytest.mark.parametrize(
    ("differences", "sentence"),
    [
        ([1.0, 2.0] * 10, "Established for this checkpoint: the return is higher with sharing"),
        ([-1.0, -2.0] * 10, "Established for this checkpoint: the return is lower with sharing"),
        ([1.0, -1.0] * 10, "Not established: the interval includes 0."),
        ([0.0] * 20, "Not established: the interval includes 0."),
        ([5.0] * (FEWEST_PAIRS - 1), "Not established: 9 pairs cannot settle it. Play at least 10"),
        ([5.0], "Not established: 1 pair cannot settle it."),
    ],
)
def test_a_difference_needs_enough_pairs_and_an_interval_without_0(differences, sentence):
    assert verdict(pairs_of(differences)).startswith(sentence)


def test_one_pair_has_no_interval():
    told = described(pairs_of([2.0]))
    assert (told["bounds"], told["told"]) == (None, "+2.00")


def test_rounding_in_single_precision_does_not_count_as_a_difference():
    ours = RecordedEpisode({}, {"rewards": np.full((10, 1), 0.1, np.float32)}, {}, {}, {})
    theirs = RecordedEpisode({}, {"rewards": np.array([[1.0]], np.float32)}, {}, {}, {})
    assert ours.steps["rewards"].sum(dtype=np.float64) != 1.0
    assert paired_returns([ours], [theirs]).differences.tolist() == [0.0]


def acting(returns, actions):
    """Episodes with these returns, in which agents take these actions, [step][agent]."""
    return [
        RecordedEpisode({}, played.steps | {"action": np.array(rows, np.uint8)}, {}, {}, {})
        for played, rows in zip(episodes(returns), actions, strict=True)
    ]


def test_the_pair_with_the_largest_gain_diverges_at_its_first_different_action():
    silent = acting([8.0, 8.0, 8.0], [[[0, 0], [0, 0]]] * 3)
    told = acting([7.0, 12.0, 9.0], [[[1, 0], [0, 0]], [[0, 0], [0, 3]], [[2, 0], [0, 0]]])
    assert most_gained(paired_returns(told, silent), told, silent) == Turn(pair=1, step=1, agent=1)


def test_an_episode_that_ends_earlier_is_compared_up_to_its_end():
    silent, told = acting([8.0], [[[0, 0], [0, 0]]]), acting([9.0], [[[0, 2]]])
    assert most_gained(paired_returns(told, silent), told, silent) == Turn(pair=0, step=0, agent=1)


def test_there_is_no_largest_gain_if_no_return_is_higher():
    silent, told = acting([8.0, 8.0], [[[0, 0]]] * 2), acting([8.0, 7.0], [[[1, 0]]] * 2)
    assert most_gained(paired_returns(told, silent), told, silent) is None
