"""Every method in every world: it trains, is saved and goes on to the same bits, and its policy can be played."""

import functools

import jax
import numpy as np
import pytest

from consmarl.environments.registry import world_ids
from consmarl.experiments.config import TrainConfig
from consmarl.experiments.methods import METHODS
from consmarl.training import checkpoints
from tests.training.test_loop import equal

pytestmark = pytest.mark.usefixtures("compile_quickly")
ROUNDS = 2  # compiled once for all


@functools.cache
def small_run(method, env, **settings):
    config = TrainConfig(
        method=method, env=env, set=("episode_limit=4",), episodes=2 * ROUNDS, num_envs=1, hidden_size=4,
        batch_episodes=2, replay_episodes=4, warmup_steps=0, target_every_updates=1,
    ).with_options(settings)  # fmt: skip
    return config.trainer()


@pytest.mark.parametrize("env", world_ids())
@pytest.mark.parametrize("method", METHODS)
def test_it_trains_resumes_exactly_and_is_evaluated(method, env, tmp_path):
    run = small_run(method, env)
    state, _ = run.run(run.init(0), ROUNDS)
    checkpoints.save(tmp_path, ROUNDS, state, run.sharing.facts(state.sharing), keep=1)
    whole, report = run.run(state, ROUNDS)
    resumed = checkpoints.restore(tmp_path, functools.partial(run.init, 1)).state
    resumed, _ = run.run(resumed, ROUNDS)
    assert equal(whole, resumed)
    assert report.has_learned.all()
    assert all(np.isfinite(values).all() for values in report.learning.values())
    first, learned = (run.learner.parameters(each) for each in (run.init(0).learner, whole.learner))
    assert not equal(first, learned)
    episodes = run.evaluate(learned, jax.random.key(0), 3)
    assert episodes.batch.num_steps.tolist() == [4, 4, 4]
    assert np.isfinite(episodes.batch.rewards).all()
