"""Numbers that are too large for a run, and how they are refused."""

import hypothesis
import pytest
from hypothesis import strategies as st
from tests.experiments.small import SMALL

import consmarl
from consmarl.environments import validation
from consmarl.environments.registry import make
from consmarl.errors import UsageError
from consmarl.experiments.configuration.config import TrainConfig
from consmarl.experiments.configuration.limits import check_steps
from consmarl.experiments.sweeps.plan import Sweep, Variant

RANGE = "from 0 to 2,147,483,647"


def chunk_by_trying_all(config):
    """Return the period between rows by brute force, as first implemented: try every number up to that of rounds."""
    wished = min(200, max(20, config.episodes // 200))
    rounds = config.episodes // config.round_episodes
    fitting = [each for each in range(1, rounds + 1) if rounds % each == 0 and each * config.round_episodes <= wished]
    return max(fitting, default=1) * config.round_episodes


@hypothesis.given(episodes=st.integers(1, 300_000), num_envs=st.sampled_from([None, None, 1, 2, 3, 5, 64, 300]))
@hypothesis.example(episodes=1, num_envs=None)
@hypothesis.example(episodes=40_000, num_envs=None)
@hypothesis.settings(max_examples=150)
def test_the_period_between_rows_matches_a_brute_force_search(episodes, num_envs):
    if num_envs is not None:
        episodes = max(episodes // num_envs, 1) * num_envs
    config = TrainConfig(episodes=episodes, num_envs=num_envs)
    assert config.chunk_episodes == chunk_by_trying_all(config)


def test_the_period_of_a_run_of_a_billion_episodes_is_computed_at_once():
    assert TrainConfig(episodes=10**9).chunk_episodes == 200
    assert TrainConfig(episodes=2**31 - 1, method="ga-comm").chunk_episodes == 1  # a prime


@pytest.mark.parametrize("seed", [2**31, 2**32, 2**63, 10**20])
def test_seeds_too_large_for_jax_are_refused_everywhere(seed, tmp_path):
    for taking in (
        lambda: TrainConfig(seed=seed),
        lambda: consmarl.watch("pgm-3ag", tmp_path / "x.gif", seed=seed),
        lambda: consmarl.evaluate(tmp_path, seed=seed),
        lambda: consmarl.Advisor(3, 5, seed=seed, episodes=8),
        lambda: consmarl.view(tmp_path, seed=seed),
        lambda: Sweep(("ft",), (Variant("iql"),), (seed,)),
    ):
        with pytest.raises(UsageError, match=RANGE):
            taking()


def test_a_parallel_env_takes_seeds_of_any_size():
    env = consmarl.parallel_env("pgm-3ag")
    first, _ = env.reset(seed=10**20)
    again, _ = env.reset(seed=10**20)
    assert (first["agent_0"] == again["agent_0"]).all()
    with pytest.raises(UsageError, match="seed must be a whole number of at least 0"):
        env.reset(seed=-1)


def test_runs_with_too_many_steps_to_count_are_refused():
    world = make("pgm-3ag")  # 25 steps an episode
    check_steps(85_899_340, 4, world)
    with pytest.raises(UsageError, match=r"at most 85,899,340 episodes, not 85,899,344: its steps, 25 per episode"):
        check_steps(85_899_344, 4, world)
    assert (85_899_340 + 4) * 25 <= 2**31 - 1 < (85_899_344 + 4) * 25


@pytest.mark.parametrize("value", [1e39, -1e39, 10**400, float("nan"), float("inf"), "1", None, True])
def test_numbers_that_are_not_finite_in_single_precision_are_refused(value):
    with pytest.raises(UsageError, match="must be a finite number"):
        validation.finite_number("odd", value)


def test_the_error_for_a_discount_does_not_call_it_a_probability():
    with pytest.raises(UsageError, match=r"^discount must lie between 0 and 1, not 1.5\.$"):
        TrainConfig(discount=1.5)
    with pytest.raises(UsageError, match="epsilon_start is a probability"):
        TrainConfig(epsilon_start=1.5)


def test_whole_numbers_may_be_written_in_scientific_notation():
    read = TrainConfig.from_json('{"episodes": 1e4, "record": [1e3]}')
    assert (read.episodes, read.record) == (10_000, (1_000,))
    assert type(read.episodes) is type(read.record[0]) is int
    with pytest.raises(UsageError, match="whole number"):
        TrainConfig.from_json('{"episodes": 10000.5}')


def test_an_empty_name_is_refused_as_a_directory():
    with pytest.raises(UsageError, match="must name a directory, not ''"):
        consmarl.train(TrainConfig(**SMALL), "")
