"""The effect of sharing or consulting on the team's return, in pairs of otherwise identical episodes.

Pairs are independent given the checkpoint they are played from, so pairs are resampled. The result holds for that
checkpoint, not for a method, which would require runs with several seeds.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from consmarl.experiments.exchanges import RecordedEpisode
from consmarl.reports.statistics import Interval, interval
from consmarl.reports.words import plural, with_bounds

FEWEST_PAIRS = 10  # many pairs do not differ at all, and if few do, bootstrap intervals are too narrow


class Words(NamedTuple):
    """The page's wording for one kind of comparison."""

    title: str
    told: str  # one side, as in "the return is higher …"
    silent: str  # the other side
    twin: str  # how the episodes of a pair differ
    option: str  # the option that plays more pairs
    gains: str  # starts the sentence on the pair that gained most


SHARING = Words(
    "With and without sharing", "with sharing", "without", "in one of them nobody asks", "--staged", "Sharing gained",
)  # fmt: skip
CONSULTING = Words(
    "Consulting and alone", "when agents consult each other", "alone", "in one of them each agent acts on its own",
    "--greedy", "Consulting gained",
)  # fmt: skip


class Pairs(NamedTuple):
    """The team's return with sharing minus without, for each pair and on average."""

    differences: NDArray[np.float64]  # [pair]
    mean: Interval  # with its 95 % interval, NaN for a single pair

    @property
    def is_established(self) -> bool:
        """Whether there are enough pairs and the interval excludes 0."""
        return len(self.differences) >= FEWEST_PAIRS and not self.mean.low <= 0 <= self.mean.high


class Turn(NamedTuple):
    """The first choice in which the two episodes of a pair differ: up to there, they are identical."""

    pair: int
    step: int
    agent: int


def paired_returns(told: Sequence[RecordedEpisode], silent: Sequence[RecordedEpisode]) -> Pairs:
    """Compare the returns of episodes with those of their copies without sharing or consulting."""
    ours, theirs = (np.array([_team_return(recorded) for recorded in each]) for each in (told, silent))
    # rewards are in single precision, so sums that should be equal may differ in the last digits
    is_same = np.isclose(ours, theirs, rtol=1e-5, atol=1e-6)
    differences = np.where(is_same, 0.0, ours - theirs)
    return Pairs(differences, interval(differences))


def most_gained(pairs: Pairs, told: Sequence[RecordedEpisode], silent: Sequence[RecordedEpisode]) -> Turn | None:
    """Return where the episodes of the pair that gained most begin to differ; None if no pair gained anything."""
    pair = int(np.argmax(pairs.differences))
    if pairs.differences[pair] <= 0:
        return None
    ours, theirs = (each[pair].steps["action"] for each in (told, silent))
    num_steps = min(len(ours), len(theirs))
    differing = np.argwhere(ours[:num_steps] != theirs[:num_steps])
    return Turn(pair, *map(int, differing[0])) if len(differing) else None


def _team_return(recorded: RecordedEpisode) -> float:
    return float(recorded.steps["rewards"].sum(dtype=np.float64))


def described(pairs: Pairs, words: Words = SHARING) -> dict[str, Any]:
    """Return the description of the pairs for the page's script."""
    has_interval = len(pairs.differences) > 1
    return {
        "differences": pairs.differences.tolist(),
        "mean": pairs.mean.estimate,
        "bounds": [pairs.mean.low, pairs.mean.high] if has_interval else None,
        "told": with_bounds(pairs.mean, 2, signed=True),
        "counts": _counts(pairs.differences, words),
        "verdict": verdict(pairs, words),
        "words": words._asdict(),
        "is_established": pairs.is_established,
    }


def verdict(pairs: Pairs, words: Words = SHARING) -> str:
    """Return a sentence on what the pairs establish."""
    count = len(pairs.differences)
    if pairs.is_established:
        better = "higher" if pairs.mean.estimate > 0 else "lower"
        return f"Established for this checkpoint: the return is {better} {words.told}, since the interval excludes 0."
    if count < FEWEST_PAIRS:
        return (
            f"Not established: {plural(count, 'pair')} cannot settle it. Play at least {FEWEST_PAIRS} ({words.option})."
        )
    return "Not established: the interval includes 0."


def _counts(differences: NDArray[np.float64], words: Words) -> str:
    better, worse = int((differences > 0).sum()), int((differences < 0).sum())
    same = len(differences) - better - worse
    return f"The return is higher {words.told} in {better}, lower in {worse} and the same in {same}."
