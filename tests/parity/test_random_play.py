"""Random play gets the same returns as in the authors' environments."""

import functools

import jax
import numpy as np
import pytest

import consmarl
from consmarl.environments.playback import play, random_actions

NUM_EPISODES = 2000
# Team returns of uniform random play, measured in the authors' environments, to one decimal place.
RECORDED = {"pgm-6ag": -61.8, "pgm-3ag": -15.5, "ft": -2.0, "ft-20": -10.4, "cleanup": 0.7}


@functools.partial(jax.jit, static_argnums=0)
def team_return(world, key):
    key_actions, key_play = jax.random.split(key)
    outcomes = play(world, key_play, random_actions(world, key_actions)).outcomes
    came_before = jax.numpy.cumsum(outcomes.done) - outcomes.done
    return jax.numpy.where(came_before == 0, outcomes.team_reward, 0).sum()


@pytest.mark.parametrize("id", RECORDED)
def test_random_play_gets_the_same_return_as_in_the_authors_environments(id):
    keys = jax.random.split(jax.random.key(7), NUM_EPISODES)
    returns = np.asarray(jax.vmap(functools.partial(team_return, consmarl.make(id)))(keys))
    standard_error = returns.std() / np.sqrt(NUM_EPISODES)
    # the recorded mean has its own error: at least its rounding
    assert abs(returns.mean() - RECORDED[id]) < 4 * standard_error + 0.25
