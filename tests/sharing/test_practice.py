"""Students that ask in some episodes and practise on their own in the others."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from consmarl import Cons, UsageError
from consmarl.sharing.asking import asks_in
from consmarl.sharing.interface import Situation

NUM_AGENTS, NUM_EPISODES = 5, 2_000


@functools.cache
def who_asks(mechanism):
    return jax.jit(mechanism.wants_to_ask)


def wants(mechanism, episodes, step=0):
    """Which agents ask in these episodes, if all observations are new."""
    shape = (NUM_AGENTS, len(episodes))
    nothing, everywhere = jnp.zeros(shape, bool), jnp.ones(len(episodes), bool)
    situation = Situation(
        codes=jnp.zeros((*shape, 1), jnp.uint8), values=jnp.zeros((*shape, 2)), actions=jnp.zeros(shape, jnp.int32),
        is_exploring=nothing, is_starting=nothing, is_live=everywhere, epsilon=jnp.float32(0), episode=episodes,
        step=jnp.int32(step),
    )  # fmt: skip
    never_met, budget = jnp.zeros(shape, jnp.int32), jnp.full(NUM_AGENTS, 10**6)
    return np.asarray(who_asks(mechanism)(jax.random.key(step), situation, never_met, ~nothing, budget))


def test_an_agent_asks_in_all_steps_of_an_episode_or_in_none():
    mechanism, episodes = Cons(ask_share=0.5, start_episode=0), jnp.arange(1, NUM_EPISODES)
    first, later = (wants(mechanism, episodes, step) for step in (0, 7))
    np.testing.assert_array_equal(first, later)
    np.testing.assert_allclose(first.mean(axis=1), 0.5, atol=0.05)  # every agent in about half of its episodes
    assert len(np.unique(first, axis=0)) == NUM_AGENTS  # not the same episodes for any two agents


@pytest.mark.parametrize(("share", "expected"), [(0.0, False), (1.0, True)])
def test_shares_of_0_and_1_mean_nobody_and_everybody_asks(share, expected):
    mechanism = dataclasses.replace(Cons(start_episode=0), ask_share=share)
    assert (wants(mechanism, jnp.arange(1, 50)) == expected).all()


def test_who_practises_depends_only_on_the_episode():
    alone = np.concatenate([asks_in(jnp.array([episode]), NUM_AGENTS, 0.3) for episode in range(20)], axis=1)
    np.testing.assert_array_equal(alone, asks_in(jnp.arange(20), NUM_AGENTS, 0.3))


def test_an_invalid_share_is_refused():
    with pytest.raises(UsageError, match="ask_share must lie between 0 and 1, not 2"):
        Cons(ask_share=2)
