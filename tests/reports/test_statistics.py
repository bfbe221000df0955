import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consmarl.reports.statistics import (
    area_under_curve,
    band,
    caution,
    episodes_to_reach,
    interquartile_mean,
    interval,
    mean,
    on_common_episodes,
    paired_difference,
    probability_of_improvement,
)

numbers = st.floats(-1e6, 1e6, allow_subnormal=False)
samples = st.lists(numbers, min_size=2, max_size=9)


def middle_of_all_resamples(values, statistic):
    """The bootstrap by brute force: each of the nⁿ ways of drawing n values counts once."""
    resampled = sorted(float(statistic(draw)) for draw in itertools.product(values, repeat=len(values)))
    cut = math.ceil(0.025 * len(resampled)) - 1
    return resampled[cut], resampled[-1 - cut]


def test_the_interquartile_mean_leaves_out_a_quarter_at_each_end():
    assert interquartile_mean([100.0, 1.0, 3.0, -50.0]) == 2.0  # of 1 and 3
    assert interquartile_mean([3.0, 0.0, 0.0]) == 1.0  # a quarter of three values is none


@pytest.mark.parametrize("num_values", [1, 2, 4, 5, 7, 8, 20])
def test_the_interquartile_mean_equals_scipys_trimmed_mean_along_any_axis(num_values):
    from scipy import stats  # takes more than a second, which only these tests should pay

    values = np.random.default_rng(0).normal(size=(num_values, 3, num_values))
    for axis in (0, 2):
        np.testing.assert_allclose(interquartile_mean(values, axis), stats.trim_mean(values, 0.25, axis=axis))


@pytest.mark.parametrize("statistic", [mean, interquartile_mean])
@pytest.mark.parametrize("values", [[1.0, 2.0, 4.0, 8.0], [0.3, -0.1, 0.3, 5.0], [2.0, 7.0], [1.0, 1.5, 9.0]])
def test_the_interval_is_the_middle_of_all_resamples(values, statistic):
    estimate, low, high = interval(values, statistic)
    assert estimate == pytest.approx(float(statistic(values)))
    assert (low, high) == pytest.approx(middle_of_all_resamples(values, statistic))


def test_the_interval_of_four_seeds_matches_one_worked_out_by_hand():
    # The mean of a resample of 0, 0, 0, 4 is the number of fours drawn. Of the 256 resamples, 81 have none, 12 have
    # three and one has four. So 13 (5.1 %) have three or four, and one (0.4 %) has four: 2.5 % are cut off at three.
    assert interval([0.0, 0.0, 0.0, 4.0]) == (1.0, 0.0, 3.0)


@pytest.mark.parametrize("num_values", [7, 12, 25])
def test_intervals_of_many_seeds_are_close_to_scipys(num_values):
    from scipy import stats

    values = np.random.default_rng(num_values).normal(3.0, 2.0, num_values)
    expected = stats.bootstrap([values], np.mean, method="percentile", n_resamples=20_000, rng=1).confidence_interval
    ours, width = interval(values), expected.high - expected.low
    assert ours.low == pytest.approx(expected.low, abs=0.08 * width)
    assert ours.high == pytest.approx(expected.high, abs=0.08 * width)


@pytest.mark.parametrize(("num_values", "least", "most"), [(20, 0.88, 0.98), (5, 0.77, 0.90)])
def test_intervals_contain_the_true_mean_as_often_as_expected(num_values, least, most):
    trials = np.random.default_rng(0).normal(1.0, 3.0, size=(num_values, 300))
    bounds = band(trials)  # each point is a trial
    share = np.mean((bounds.low <= 1.0) & (bounds.high >= 1.0))
    assert least < share < most


@given(samples)
def test_the_mean_lies_within_its_bounds_and_the_bounds_within_the_values(values):
    estimate, low, high = interval(values)
    assert low <= estimate <= high
    rounding = 1e-9 * max(map(abs, values))
    assert min(values) - rounding <= low
    assert high <= max(values) + rounding


@given(samples)
def test_the_interquartile_mean_lies_between_the_values(values):
    estimate = interval(values, interquartile_mean).estimate
    rounding = 1e-9 * max(map(abs, values))
    assert min(values) - rounding <= estimate <= max(values) + rounding


@given(st.lists(numbers, min_size=2, max_size=6), st.randoms())
def test_the_order_of_seeds_does_not_matter(values, random):
    shuffled = random.sample(values, len(values))
    assert interval(shuffled) == pytest.approx(interval(values), rel=1e-9, abs=1e-6)


@given(st.lists(numbers, min_size=2, max_size=6))
def test_negating_the_values_mirrors_the_interval(values):
    estimate, low, high = interval([-value for value in values])
    assert (-estimate, -high, -low) == pytest.approx(interval(values), rel=1e-9, abs=1e-6)


def test_the_same_values_always_give_the_same_interval():
    values = np.random.default_rng(0).normal(size=15)
    assert interval(values) == interval(values)


@pytest.mark.parametrize("num_seeds", [2, 3, 5, 8, 30])
def test_identical_values_have_an_interval_of_width_zero(num_seeds):
    for statistic in (mean, interquartile_mean):
        assert interval([0.1] * num_seeds, statistic) == pytest.approx((0.1, 0.1, 0.1))


def test_one_seed_has_no_interval():
    estimate, low, high = interval([2.5])
    assert estimate == 2.5
    assert math.isnan(low)
    assert math.isnan(high)
    assert all(math.isnan(each) for each in interval([]))


@pytest.mark.parametrize("num_seeds", [3, 8])
def test_a_band_is_an_interval_at_each_point(num_seeds):
    values = np.random.default_rng(0).normal(size=(num_seeds, 300))  # more points than are processed at once
    bounds = band(values)
    for point in (0, 1, 150, 299):
        assert interval(values[:, point]) == pytest.approx([each[point] for each in bounds])


def test_a_band_of_no_points_is_empty():
    for num_seeds in (0, 1, 3):
        assert [len(each) for each in band(np.empty((num_seeds, 0)))] == [0, 0, 0]


def test_a_nan_in_one_seed_affects_only_its_point():
    estimate, _, high = band([[1.0, math.nan], [2.0, 1.0]])
    assert estimate[0] == 1.5
    assert high[0] == 2.0
    assert math.isnan(estimate[1])


def curve(episodes, values):
    return np.array(episodes, np.int64), np.array(values, np.float64)


def test_curves_are_compared_where_all_have_been_evaluated():
    episodes, values = on_common_episodes([curve([0, 10, 20], [1, 2, 3]), curve([0, 5, 20, 30], [4, 5, 6, 7])])
    assert episodes.tolist() == [0, 20]
    assert values.tolist() == [[1, 3], [4, 6]]


def test_curves_with_nothing_in_common_have_no_points():
    assert on_common_episodes([curve([0], [1]), curve([5], [1])])[1].shape == (2, 0)
    assert on_common_episodes([curve([0], [1]), curve([], [])])[1].shape == (2, 0)
    assert on_common_episodes([])[1].shape == (0, 0)


def test_the_later_of_two_rows_of_the_same_episode_counts():
    _, values = on_common_episodes([curve([0, 10, 10], [1, 2, 3])])
    assert values.tolist() == [[1, 3]]


def test_the_area_under_a_curve_matches_one_worked_out_by_hand():
    # trapezoids of 10·(0 + 2)/2 and 30·(2 + 6)/2 over a span of 40
    assert area_under_curve([0, 10, 40], [0.0, 2.0, 6.0]) == pytest.approx((10 + 120) / 40)


@given(numbers, st.lists(st.integers(0, 10**6), min_size=1, max_size=10, unique=True))
def test_the_area_under_a_constant_is_the_constant(height, episodes):
    episodes = sorted(episodes)
    assert area_under_curve(episodes, [height] * len(episodes)) == pytest.approx(height, rel=1e-9, abs=1e-9)


def test_an_empty_curve_has_no_area():
    assert math.isnan(area_under_curve([], []))


def test_a_level_is_reached_when_the_mean_of_three_evaluations_reaches_it():
    episodes = [0, 10, 20, 30, 40, 50]
    assert episodes_to_reach(episodes, [0, 0, 9, 0, 0, 0], 5) is None  # one lucky evaluation
    assert episodes_to_reach(episodes, [0, 0, 6, 3, 6, 6], 5) == 40  # (6 + 3 + 6)/3
    assert episodes_to_reach(episodes, [5, 5, 5, 5, 5, 5], 5) == 0
    assert episodes_to_reach(episodes, [0, 12, 0, 0, 0, 0], 5) == 10  # only two evaluations so far
    assert episodes_to_reach([], [], 5) is None


def test_the_probability_of_improvement_matches_values_worked_out_by_hand():
    assert probability_of_improvement([3.0, 4.0], [1.0, 2.0]) == (1.0, 1.0, 1.0)
    assert probability_of_improvement([1.0, 2.0], [1.0, 2.0]).estimate == 0.5
    assert probability_of_improvement([1.0, 3.0], [2.0, 2.0, 3.0]).estimate == pytest.approx((0 + 2.5) / 6)


def test_the_interval_of_a_probability_is_the_middle_of_all_resamples():
    left, right = [1.0, 4.0, 6.0], [0.0, 5.0, 4.0]
    resampled = sorted(
        np.mean([(a > b) + (a == b) / 2 for a in some for b in others])
        for some in itertools.product(left, repeat=3) for others in itertools.product(right, repeat=3)
    )  # fmt: skip
    cut = math.ceil(0.025 * len(resampled)) - 1
    _, low, high = probability_of_improvement(left, right)
    assert (low, high) == pytest.approx((resampled[cut], resampled[-1 - cut]))


@given(samples, samples)
@settings(max_examples=40)
def test_probabilities_of_improvement_in_both_directions_add_up_to_one(left, right):
    forth, back = probability_of_improvement(left, right), probability_of_improvement(right, left)
    assert forth.estimate + back.estimate == pytest.approx(1.0)
    assert 0.0 <= forth.low <= forth.estimate <= forth.high <= 1.0
    if max(len(left), len(right)) <= 5:
        assert forth.low + back.high == pytest.approx(1.0)


def test_many_seeds_leave_little_doubt_about_an_improvement():
    rng = np.random.default_rng(0)
    estimate, low, high = probability_of_improvement(rng.normal(1.0, 1.0, 30), rng.normal(0.0, 1.0, 30))
    assert low < 0.760 < high  # the true value, Φ(1/√2)
    assert 0.5 < low < estimate < high < 0.95


def test_the_probability_of_improvement_has_no_bounds_with_one_seed():
    estimate, low, high = probability_of_improvement([1.0], [0.0, 2.0])
    assert estimate == 0.5
    assert math.isnan(low)
    assert math.isnan(high)
    assert all(math.isnan(each) for each in probability_of_improvement([], [1.0]))


def test_differences_are_paired_by_seed():
    left, right = {0: 1.0, 1: 11.0, 2: 21.0}, {2: 20.0, 1: 10.0, 0: 0.0}
    assert paired_difference(left, right) == (1.0, 1.0, 1.0)


def test_different_seeds_have_no_paired_difference():
    assert paired_difference({0: 1.0, 1: 2.0}, {0: 1.0, 2: 2.0}) is None
    assert paired_difference({0: 1.0, 1: 2.0}, {0: 1.0}) is None
    assert paired_difference({}, {}) is None


def test_few_seeds_come_with_a_caution():
    assert caution(5) is None
    assert caution(3) == "3 seeds: intervals are rough, and no difference here is established."
    assert caution(1) == "one seed: nothing can be said about differences."
    assert caution(0) == "no seed: nothing can be said about differences."
