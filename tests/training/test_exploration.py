"""Exploration: frequencies of actions, and hand-made states."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from consmarl.training.exploration import (
    EpsilonGreedy,
    EpsilonGreedyTogether,
    EpsilonSquared,
    EpsilonZGreedy,
    Greedy,
    LinearSchedule,
    Run,
    SampledPolicy,
)

SCORES = jnp.broadcast_to(jnp.array([0.0, 3.0, 1.0, 2.0]), (3, 4000, 4))  # the best action is 1


@functools.cache
def choose_with(exploration):
    return jax.jit(exploration.choose)


def chosen(exploration, epsilon, seed=0, state=None):
    state = exploration.begin(3, 4000) if state is None else state
    return choose_with(exploration)(jax.random.key(seed), SCORES, jnp.asarray(epsilon), state)


@pytest.mark.parametrize(
    ("exploration", "rate"),
    [
        (EpsilonGreedy(), 0.3),
        (EpsilonGreedyTogether(), 0.3),
        (EpsilonGreedyTogether(share=1.0), 0.3),
        (EpsilonSquared(), 0.09),
        (EpsilonZGreedy(), 0.3),
        (Greedy(), 0),
    ],
)
def test_the_first_step_explores_at_the_expected_rate(exploration, rate):
    choice = chosen(exploration, 0.3)
    assert float(choice.is_exploring.mean()) == pytest.approx(rate, abs=0.02)
    assert (choice.actions[~choice.is_exploring] == 1).all()
    if rate:
        shares = np.bincount(np.asarray(choice.actions[choice.is_exploring]), minlength=4) / choice.is_exploring.sum()
        np.testing.assert_allclose(shares, 0.25, atol=0.04)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_team_with_a_common_draw_explores_together_with_one_action(share):
    choice = chosen(EpsilonGreedyTogether(share), 0.3)
    first, second = choice.is_exploring[:2]
    # with a common draw, both explore with probability 0.3; with separate draws, 0.09
    assert float((first & second).mean()) == pytest.approx(share * 0.3 + (1 - share) * 0.09, abs=0.025)
    is_same = (choice.actions[0] == choice.actions[1])[first & second]
    expected = (share * 0.3 + (1 - share) * 0.09 / 4) / (share * 0.3 + (1 - share) * 0.09)
    assert float(is_same.mean()) == pytest.approx(expected, abs=0.05)


def test_lengths_of_repeated_actions_follow_their_distribution():
    num_left = np.asarray(chosen(EpsilonZGreedy(), 1.0).state.num_left) + 1
    for length in (1, 2, 3, 5, 10):
        assert (num_left >= length).mean() == pytest.approx(1 / length, abs=0.03)


def test_an_action_is_repeated_until_its_run_is_over():
    exploration = EpsilonZGreedy()
    state = Run(action=jnp.full((3, 4000), 2), num_left=jnp.full((3, 4000), 2))
    for step in (0, 1):
        choice = chosen(exploration, 0.0, seed=step, state=state)
        assert choice.is_exploring.all()
        assert (choice.actions == 2).all()
        state = choice.state
    after = chosen(exploration, 0.0, state=state)
    assert not after.is_exploring.any()
    assert (after.actions == 1).all()


def test_a_new_episode_starts_without_a_repeated_action():
    assert not EpsilonZGreedy().begin(2, 3).num_left.any()


def test_epsilon_decays_linearly_with_environment_steps():
    schedule = LinearSchedule()
    values = schedule(jnp.array([0, 1, 25_000, 50_000, 10**7]))
    np.testing.assert_allclose(values, [1, 1 - 0.95 / 50_000, 0.525, 0.05, 0.05], atol=1e-6)


def test_epsilon_can_keep_decaying_to_the_end_of_a_run():
    schedule = LinearSchedule(1.0, 0.1, 100, final=0.02, final_steps=500)
    values = schedule(jnp.array([0, 50, 100, 300, 500, 10**7]))
    np.testing.assert_allclose(values, [1, 0.55, 0.1, 0.06, 0.02, 0.02], atol=1e-6)


def test_greedy_takes_the_first_of_equally_good_actions():
    scores = jnp.zeros((1, 2, 3))
    assert Greedy().choose(jax.random.key(0), scores, jnp.zeros(()), ()).actions.tolist() == [[0, 0]]


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
def test_actions_are_sampled_from_the_policy_mixed_with_epsilon(epsilon):
    choice = chosen(SampledPolicy(), epsilon)
    logits = np.array([0.0, 3.0, 1.0, 2.0])
    expected = (1 - epsilon) * np.exp(logits) / np.exp(logits).sum() + epsilon / 4
    shares = np.bincount(np.asarray(choice.actions).ravel(), minlength=4) / choice.actions.size
    np.testing.assert_allclose(shares, expected, atol=0.02)  # at least four standard errors of 12,000 draws
    assert not choice.is_exploring.any()
