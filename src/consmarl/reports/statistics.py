"""Statistics for few seeds: 95 % bootstrap intervals, and comparisons that state their certainty.

Seeds are resampled, never evaluations or episodes, which are correlated within a run. With few seeds, bootstrap
percentile intervals are too narrow (with five normally distributed seeds, they cover the true value five times in
six), so `caution` provides a warning to show beside them. Axes: `[seed, point]`.
"""

import itertools
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from consmarl.reports.runs import Curve

Array = NDArray[np.float64]
Draws = NDArray[np.int64]  # [resample, seed]
Statistic = Callable[..., Array]  # (values, axis) → values without that axis

TAIL = 0.025  # on either side of a 95 % interval
MOST_COUNTED, NUM_DRAWN = 500, 2_000  # resamples: enumerated if there are at most 500 distinct ones, else drawn
FEW_SEEDS = 5
EVALUATIONS_HELD = 3  # a level counts as reached when the average of this many evaluations reaches it


class Interval(NamedTuple):
    """An estimate and its interval, which is NaN for a single seed."""

    estimate: float
    low: float
    high: float


class Band(NamedTuple):
    """An interval at each point of a curve."""

    estimate: Array  # [point]
    low: Array
    high: Array


def mean(values: ArrayLike, axis: int = 0) -> Array:
    """Return the mean along an axis."""
    return np.asarray(np.mean(np.asarray(values, np.float64), axis=axis))


def interquartile_mean(values: ArrayLike, axis: int = 0) -> Array:
    """Return the mean of the middle half (IQM): a quarter of the values, rounded down, is dropped at each end."""
    ordered = np.sort(np.asarray(values, np.float64), axis=axis)
    num_values = ordered.shape[axis]
    num_left_out = num_values // 4
    return mean(np.take(ordered, range(num_left_out, num_values - num_left_out), axis=axis), axis)


def interval(values: ArrayLike, statistic: Statistic = mean) -> Interval:
    """Return a statistic of one value per seed, with its 95 % interval."""
    estimate, low, high = band(np.asarray(values, np.float64)[:, None], statistic)
    return Interval(float(estimate[0]), float(low[0]), float(high[0]))


def band(values: ArrayLike, statistic: Statistic = mean) -> Band:
    """Return a statistic of each point's values `[seed, point]`, with its 95 % interval."""
    values = np.asarray(values, np.float64)
    num_seeds, num_points = values.shape
    unknown = np.full(num_points, np.nan)
    if num_seeds < 2:
        return Band(values[0] if num_seeds else unknown, unknown, unknown)
    estimate = statistic(values, axis=0)
    draws, chances = _resamples(num_seeds)
    points_at_once = max(1, 2_000_000 // draws.size)
    parts = [values[:, start : start + points_at_once] for start in range(0, num_points, points_at_once)]
    bounds = [_bounds(statistic(part[draws], axis=1), chances) for part in parts]
    low, high = np.concatenate([np.empty((2, 0)), *bounds], axis=1)
    return Band(estimate, np.minimum(low, estimate), np.maximum(high, estimate))  # undo rounding past the estimate


def on_common_episodes(curves: Sequence[Curve]) -> tuple[NDArray[np.int64], Array]:
    """Return the episodes that all curves share, and their values there, `[seed, point]`."""
    known = [dict(zip(episodes.tolist(), values.tolist(), strict=True)) for episodes, values in curves]
    common = sorted(set.intersection(*(set(each) for each in known))) if known else []
    values = [[each[episode] for episode in common] for each in known]
    return np.array(common, np.int64), np.array(values, np.float64).reshape(len(known), len(common))


def area_under_curve(episodes: ArrayLike, values: ArrayLike) -> float:
    """Return the area under a curve (trapezoids) divided by its span, i.e. its mean height; NaN if it is empty."""
    episodes, values = np.asarray(episodes, np.float64), np.asarray(values, np.float64)
    if len(values) < 2:
        return float(values[0]) if len(values) else math.nan
    return float(np.trapezoid(values, episodes) / (episodes[-1] - episodes[0]))


def episodes_to_reach(episodes: ArrayLike, values: ArrayLike, level: float) -> float | None:
    """Return the episode of the first evaluation whose average with the two before it reaches the level, or None.

    So a single lucky evaluation is not enough. The first two evaluations are averaged with fewer.
    """
    values = np.asarray(values, np.float64)
    for index, episode in enumerate(np.asarray(episodes, np.float64)):
        if np.mean(values[max(0, index + 1 - EVALUATIONS_HELD) : index + 1]) >= level:
            return float(episode)
    return None


def probability_of_improvement(left: ArrayLike, right: ArrayLike) -> Interval:
    """Return the fraction of all pairs in which the run on the left beats that on the right; ties count half."""
    left, right = np.asarray(left, np.float64), np.asarray(right, np.float64)
    if not (len(left) and len(right)):
        return Interval(math.nan, math.nan, math.nan)
    wins = np.where(left[:, None] == right, 0.5, left[:, None] > right)  # [left, right]
    estimate = float(np.mean(wins))
    if min(len(left), len(right)) < 2:
        return Interval(estimate, math.nan, math.nan)
    left_draws, right_draws, chances = _paired_resamples(len(left), len(right))
    resampled = np.mean(wins[left_draws[:, :, None], right_draws[:, None, :]], axis=(1, 2))
    low, high = _bounds(resampled[:, None], chances)
    return Interval(estimate, min(float(low[0]), estimate), max(float(high[0]), estimate))


def paired_difference(left: Mapping[Hashable, float], right: Mapping[Hashable, float]) -> Interval | None:
    """Return the mean of left − right over paired seeds, or None if the two have different seeds."""
    if not left or left.keys() != right.keys():
        return None
    return interval([left[seed] - right[seed] for seed in left])


def caution(num_seeds: int) -> str | None:
    """Return a warning if there are too few seeds for reliable intervals; None otherwise."""
    if num_seeds >= FEW_SEEDS:
        return None
    if num_seeds < 2:
        return f"{'one seed' if num_seeds else 'no seed'}: nothing can be said about differences."
    return f"{num_seeds} seeds: intervals are rough, and no difference here is established."


@lru_cache(maxsize=32)
def _resamples(num_seeds: int) -> tuple[Draws, Array]:
    """Return resamples of the seeds, `[resample, seed]`, and the probability of each.

    For up to six seeds, all distinct resamples are enumerated, so nothing is random.
    """
    if not _can_be_counted(num_seeds):
        return _drawn(np.random.default_rng(0), num_seeds), np.full(NUM_DRAWN, 1 / NUM_DRAWN)
    resamples = list(itertools.combinations_with_replacement(range(num_seeds), num_seeds))
    num_same = [[math.factorial(resample.count(seed)) for seed in range(num_seeds)] for resample in resamples]
    orders = np.array([math.factorial(num_seeds) / math.prod(each) for each in num_same])
    return np.array(resamples), orders / num_seeds**num_seeds


def _paired_resamples(num_left: int, num_right: int) -> tuple[Draws, Draws, Array]:
    """Return independent resamples of two groups, and the probability of each pair."""
    if not (_can_be_counted(num_left) and _can_be_counted(num_right)):
        rng = np.random.default_rng(0)
        return _drawn(rng, num_left), _drawn(rng, num_right), np.full(NUM_DRAWN, 1 / NUM_DRAWN)
    (left, left_chances), (right, right_chances) = _resamples(num_left), _resamples(num_right)
    which_left, which_right = np.indices((len(left), len(right))).reshape(2, -1)
    return left[which_left], right[which_right], np.outer(left_chances, right_chances).ravel()


def _can_be_counted(num_seeds: int) -> bool:
    return math.comb(2 * num_seeds - 1, num_seeds) <= MOST_COUNTED


def _drawn(rng: np.random.Generator, num_seeds: int) -> Draws:
    return rng.integers(num_seeds, size=(NUM_DRAWN, num_seeds))


def _bounds(resampled: Array, chances: Array) -> tuple[Array, Array]:
    """Return the bounds of the middle 95 % of each point's resampled values, `[resample, point]`."""
    resampled = np.ascontiguousarray(resampled.T)
    order = np.argsort(resampled, axis=1)
    chances = chances[order]
    points, last = np.arange(len(resampled)), resampled.shape[1] - 1
    low, high = order[points, _reached(chances)], order[points, last - _reached(chances[:, ::-1])]
    return resampled[points, low], resampled[points, high]


def _reached(chances: Array) -> NDArray[np.intp]:
    return np.argmax(np.cumsum(chances, axis=1) >= TAIL - 1e-12, axis=1)  # cumulative sums are rounded
