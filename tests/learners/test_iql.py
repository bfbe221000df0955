"""IQL's update against a slow reference version that goes step by step."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from consmarl.learners import td
from consmarl.learners.interface import TeamSpec
from consmarl.learners.iql import IQL, TargetMemory
from consmarl.learners.optimiser import RMSprop
from consmarl.learners.rewards import RewardOf
from consmarl.learners.team_networks import Weights
from tests.learners.slowly import ACTIONS, AGENTS, SPEC, hand_made_batch, network, network_slowly, with_padding_of


def loss_slowly(learner, online, target, batch, agent):
    """Eq. 3 for one agent, one episode and one step at a time."""
    spec, hidden_size = learner.spec, learner.hidden_size
    rewards = batch.rewards.sum(axis=0) if learner.reward_of is RewardOf.TEAM else batch.rewards[agent]
    errors = []
    for episode, length in enumerate(batch.num_steps.tolist()):
        inputs = []
        for step in range(length + 1):
            last = np.zeros(spec.num_actions)
            if step:
                last[int(batch.actions[agent, episode, step - 1])] = 1
            parts = [np.asarray(batch.codes[agent, episode, step]) * np.array(spec.observation_scale), last]
            if learner.weights is Weights.SHARED:
                parts.append(np.eye(spec.num_agents)[agent])
            inputs.append(np.concatenate(parts))
        hidden, target_hidden = np.zeros(hidden_size), np.zeros(hidden_size)
        if learner.target_memory is TargetMemory.WHOLE_EPISODE:
            target_hidden, _ = network_slowly(target, target_hidden, inputs[0])
        for step in range(length):
            hidden, values = network_slowly(online, hidden, inputs[step])
            target_hidden, next_values = network_slowly(target, target_hidden, inputs[step + 1])
            is_last = step == length - 1
            ends = is_last and (bool(batch.terminated[episode]) or not learner.bootstrap_time_limit)
            choosing = network_slowly(online, hidden, inputs[step + 1])[1] if learner.double_q else next_values
            follows = 0 if ends else learner.discount * next_values[choosing.argmax()]
            goal = float(rewards[episode, step]) + follows
            errors.append((goal - values[int(batch.actions[agent, episode, step])]) ** 2)
    return np.mean(errors)


VARIANTS = {
    "paper": {},
    "team reward": dict(reward_of=RewardOf.TEAM),
    "shared weights": dict(weights=Weights.SHARED, reward_of=RewardOf.TEAM),
    "bootstrapped limits": dict(bootstrap_time_limit=True),
    "targets that saw everything": dict(target_memory=TargetMemory.WHOLE_EPISODE),
    "double Q-learning": dict(double_q=True),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_loss_matches_the_slow_reference(variant):
    learner = IQL(SPEC, hidden_size=7, **VARIANTS[variant])
    state = jax.jit(learner.init)(jax.random.key(0))
    state = state._replace(target=jax.jit(learner.networks.init)(jax.random.key(1)))
    batch = hand_made_batch()
    _, metrics = jax.jit(learner.update)(state, batch, jax.random.key(2))
    shared = learner.weights is Weights.SHARED
    slow = [
        loss_slowly(
            learner, network(state.online, 0 if shared else agent), network(state.target, 0 if shared else agent),
            batch, agent,
        )
        for agent in range(AGENTS)
    ]  # fmt: skip
    np.testing.assert_allclose(metrics["loss"], [np.mean(slow)] if shared else slow, rtol=1e-4)


def test_a_step_follows_the_slow_gradient_with_pytorchs_rmsprop():
    # ε is this large because otherwise clipping would not change the first step
    learner = IQL(SPEC, hidden_size=4, optimiser=RMSprop(learning_rate=0.01, epsilon=1e-3, max_gradient_norm=0.05))
    state = jax.jit(learner.init)(jax.random.key(3))
    batch = hand_made_batch(1)
    after, metrics = jax.jit(learner.update)(state, batch, jax.random.key(0))
    online, target = network(state.online, 1), network(state.target, 1)
    assert float(metrics["gradient_norm"][1]) > 0.05  # so that gradients are clipped

    def difference(field, index, by=1e-5):
        losses = []
        for sign in (1, -1):
            moved = np.array(getattr(online, field))
            moved[index] += sign * by
            losses.append(loss_slowly(learner, online._replace(**{field: moved}), target, batch, 1))
        return (losses[0] - losses[1]) / (2 * by)

    for field, index in (("encoder_weights", (2, 1)), ("head_weights", (0, 2)), ("head_bias", (1,))):
        gradient = difference(field, index) * 0.05 / float(metrics["gradient_norm"][1])
        expected = -0.01 * gradient / (np.sqrt(0.01 * gradient**2) + 1e-3)
        moved = getattr(after.online, field)[1][index] - getattr(state.online, field)[1][index]
        np.testing.assert_allclose(moved, expected, rtol=2e-2)


def test_padding_has_no_effect():
    learner = IQL(SPEC, hidden_size=8)
    state = jax.jit(learner.init)(jax.random.key(0))
    batch = hand_made_batch(0)
    mixed = with_padding_of(batch, hand_made_batch(7))
    update = jax.jit(learner.update)
    ours, theirs = (update(state, each, jax.random.key(0))[0].online for each in (batch, mixed))
    for left, right in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_array_equal(left, right)


def test_separate_agents_learn_only_from_their_own_episodes():
    learner = IQL(SPEC, hidden_size=8)
    state = jax.jit(learner.init)(jax.random.key(0))
    batch, other = hand_made_batch(0), hand_made_batch(7)
    changed = batch._replace(rewards=batch.rewards.at[1].set(other.rewards[1]))
    update = jax.jit(learner.update)
    ours, theirs = (update(state, each, jax.random.key(0))[0].online.head_bias for each in (batch, changed))
    assert [bool((ours[agent] == theirs[agent]).all()) for agent in range(AGENTS)] == [True, False, True]


def test_targets_are_first_copied_after_the_201st_update():
    learner = IQL(SPEC, hidden_size=3)
    batch = hand_made_batch()

    def targets_of(state, _):
        state, _ = learner.update(state, batch, jax.random.key(0))
        return state, (state.target.head_bias[0, 0], state.online.head_bias[0, 0])

    first = jax.jit(learner.init)(jax.random.key(0))
    _, (target, online) = jax.lax.scan(targets_of, first, length=402)
    before = float(first.target.head_bias[0, 0])
    changes = np.flatnonzero(np.diff(np.asarray(target), prepend=before)) + 1  # the number of the update, from 1
    assert changes.tolist() == [201, 401]
    assert target[200] == online[200]


def test_a_team_of_one_agent_can_learn():
    spec = TeamSpec(1, ACTIONS, SPEC.observation_scale)
    learner = IQL(spec, hidden_size=5)
    state = jax.jit(learner.init)(jax.random.key(0))
    state, metrics = jax.jit(learner.update)(state, hand_made_batch(agents=1), jax.random.key(0))
    assert np.isfinite(metrics["loss"]).all()
    assert int(state.num_updates) == 1


def test_the_equations_match_values_worked_out_by_hand():
    assert td.step_mask(jnp.array([1, 3]), 3).T.tolist() == [[1, 0, 0], [1, 1, 1]]
    num_steps, terminated = jnp.array([2, 3]), jnp.array([True, False])
    as_paper = td.continues(num_steps, terminated, 3, bootstrap_time_limit=False)
    bootstrapped = td.continues(num_steps, terminated, 3, bootstrap_time_limit=True)
    assert as_paper.T.tolist() == [[1, 0, 1], [1, 1, 0]]
    assert bootstrapped.T.tolist() == [[1, 0, 1], [1, 1, 1]]
    values = jnp.array([[[1.0, 5.0]], [[2.0, 4.0]]])
    assert td.chosen_values(values, jnp.array([[0], [1]])).tolist() == [[1.0], [4.0]]
    targets = td.td_targets(jnp.array([[1.0], [1.0]]), jnp.array([[1.0], [0.0]]), values.max(axis=-1), 0.5)
    assert targets.tolist() == [[3.5], [1.0]]
    error = td.masked_squared_error(jnp.array([1.0, 9.0]), jnp.array([3.0, 0.0]), jnp.array([1.0, 0.0]))
    assert float(error) == 4.0
