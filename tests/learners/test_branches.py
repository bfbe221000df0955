"""Q-learning with actions of several dimensions (branches), against a slow reference version."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from consmarl.learners import td
from consmarl.learners.interface import TeamSpec
from consmarl.learners.iql import IQL, TargetMemory
from consmarl.learners.rewards import RewardOf
from consmarl.learners.seql import SEQL
from consmarl.learners.team_networks import Weights
from consmarl.learners.temporal_difference import following_best, over_branches
from consmarl.learners.vdn import VDN
from consmarl.networks.drqn import Head
from tests.learners.slowly import ACTIONS, AGENTS, CODES, EPISODES, STEPS, hand_made_batch, network, network_slowly

BRANCHES = 2
SPEC = TeamSpec(AGENTS, ACTIONS, tuple(np.linspace(0.1, 1.0, CODES).tolist()), num_branches=BRANCHES)


def batch_of_branches(seed=0, masked=False):
    rng = np.random.default_rng(seed)
    batch = hand_made_batch(seed)
    actions = rng.integers(0, ACTIONS, (AGENTS, EPISODES, STEPS, BRANCHES))
    allowed = None
    if masked:  # the second dimension has one choice fewer, and agent 2 is absent at step 2
        actions[..., 1] %= ACTIONS - 1
        allowed = np.ones((AGENTS, EPISODES, STEPS + 1, BRANCHES, ACTIONS), bool)
        allowed[..., 1, ACTIONS - 1] = False
        allowed[2, :, 2] = False
    return batch._replace(
        actions=jnp.asarray(actions, jnp.uint8), allowed=None if allowed is None else jnp.asarray(allowed)
    )


def values_slowly(learner, outputs):
    """Action values [branch, action] from a network's outputs."""
    if learner.head is Head.PLAIN:
        return outputs.reshape(BRANCHES, ACTIONS)
    rows = [outputs[1 + branch * ACTIONS : 1 + (branch + 1) * ACTIONS] for branch in range(BRANCHES)]
    return np.stack([outputs[0] + row - row.mean() for row in rows])


def unrolled(learner, weights, inputs):
    hidden, found = np.zeros(learner.hidden_size), []
    for each in inputs:
        hidden, outputs = network_slowly(weights, hidden, each)
        found.append(values_slowly(learner, outputs))
    return np.stack(found)


def inputs_slowly(learner, batch, agent, episode, length):
    rows = []
    for step in range(length + 1):
        last = np.zeros((BRANCHES, ACTIONS))
        if step:
            last[np.arange(BRANCHES), np.asarray(batch.actions[agent, episode, step - 1])] = 1
        scaled = np.asarray(batch.codes[agent, episode, step]) * np.array(SPEC.observation_scale)
        identity = [np.eye(AGENTS)[agent]] if learner.weights is Weights.SHARED else []
        rows.append(np.concatenate([scaled, last.ravel(), *identity]))
    return rows


def errors_slowly(learner, online, target, batch, agent):
    """All squared errors; all dimensions share one target, which uses the mean of the best choices' values."""
    errors = []
    for episode, length in enumerate(batch.num_steps.tolist()):
        inputs = inputs_slowly(learner, batch, agent, episode, length)
        values, next_values = unrolled(learner, online, inputs), unrolled(learner, target, inputs)
        taken = np.asarray(batch.actions[agent, episode]).astype(int)
        goal = 0.0
        for step in reversed(range(length)):
            best = next_values[step + 1].argmax(axis=1)
            if learner.double_q:
                best = values[step + 1].argmax(axis=1)
            follows = np.mean([next_values[step + 1][branch, best[branch]] for branch in range(BRANCHES)])
            trace = 0.0
            if step < length - 1 and learner.target is not td.Target.ONE_STEP:
                was_greedy = all(taken[step + 1] == best)  # in every dimension
                keeps = 1.0 if was_greedy else 0.0
                if learner.target is td.Target.OPTIMISTIC and not was_greedy:
                    keeps = float(goal > follows)
                trace = learner.trace_decay * keeps
            follows = follows + trace * (goal - follows)
            goal = float(batch.rewards[agent, episode, step]) + (learner.discount * follows if step < length - 1 else 0)
            errors += [(values[step][branch, taken[step][branch]] - goal) ** 2 for branch in range(BRANCHES)]
    return errors


VARIANTS = {
    "one step": {},
    "watkins": dict(target=td.Target.WATKINS, trace_decay=0.7),
    "optimistic, dueling": dict(target=td.Target.OPTIMISTIC, head=Head.DUELING),
    "shared weights, double Q-learning": dict(weights=Weights.SHARED, double_q=True),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_loss_matches_the_slow_reference(variant):
    learner = IQL(SPEC, hidden_size=5, target_memory=TargetMemory.WHOLE_EPISODE, **VARIANTS[variant])
    state = jax.jit(learner.init)(jax.random.key(0))._replace(target=jax.jit(learner.networks.init)(jax.random.key(1)))
    batch = batch_of_branches()
    _, metrics = jax.jit(learner.update)(state, batch, jax.random.key(2))
    is_shared = learner.weights is Weights.SHARED
    slow = [
        np.mean(errors_slowly(learner, *(network(each, 0 if is_shared else agent) for each in state[:2]), batch, agent))
        for agent in range(AGENTS)
    ]
    np.testing.assert_allclose(metrics["loss"], [np.mean(slow)] if is_shared else slow, rtol=1e-4)


def test_an_actions_value_is_the_mean_over_its_dimensions():
    rng = np.random.default_rng(3)
    values, taken = rng.normal(size=(4, 2, BRANCHES, ACTIONS)), rng.integers(0, ACTIONS, (4, 2, BRANCHES))
    taken[2, 0] = values[1, 0].argmax(axis=-1)  # one action is the best in both dimensions
    taken[3, 1] = values[2, 1].argmax(axis=-1)  # and one in the first dimension only
    taken[3, 1, 1] = values[2, 1, 1].argmin()
    following = over_branches(following_best(jnp.asarray(values), jnp.asarray(taken)), BRANCHES)
    for step in range(3):
        for episode in range(2):
            rows, chosen = values[step, episode], taken[step + 1, episode]
            best = np.mean([max(row) for row in rows])
            mine = np.mean([row[choice] for row, choice in zip(rows, chosen, strict=True)])
            np.testing.assert_allclose(following.values[step, episode], best, rtol=1e-5)
            np.testing.assert_allclose(following.shortfall[step, episode], best - mine, rtol=1e-4, atol=1e-6)
            assert bool(following.is_best[step, episode]) == all(rows.argmax(axis=-1) == chosen)
    assert following.is_best[1, 0]
    assert not following.is_best[2, 1]


def test_forbidden_choices_and_absent_agents_carry_no_loss():
    learner = IQL(SPEC, hidden_size=5, target_memory=TargetMemory.WHOLE_EPISODE)
    state = jax.jit(learner.init)(jax.random.key(0))._replace(target=jax.jit(learner.networks.init)(jax.random.key(1)))
    batch = batch_of_branches(masked=True)
    update = jax.jit(learner.update)
    _, metrics = update(state, batch, jax.random.key(2))
    assert all(np.isfinite(each).all() for each in metrics.values())
    # while the agent is absent, its rewards do not matter
    elsewhere = batch._replace(rewards=batch.rewards.at[2, :, 2].add(100.0))
    np.testing.assert_array_equal(update(state, elsewhere, jax.random.key(2))[1]["loss"], metrics["loss"])
    # a target network with a very high value for the forbidden choice changes nothing
    head = state.target.head_bias.at[:, BRANCHES * ACTIONS - 1].add(100.0)
    sure = state._replace(target=state.target._replace(head_bias=head))
    np.testing.assert_allclose(update(sure, batch, jax.random.key(2))[1]["loss"], metrics["loss"], rtol=1e-6)


@pytest.mark.parametrize("learner", [SEQL(SPEC, hidden_size=5), VDN(SPEC, hidden_size=5)], ids=["seql", "vdn"])
def test_other_methods_learn_in_several_dimensions(learner):
    state = learner.init(jax.random.key(0))
    batch = batch_of_branches(masked=True)
    _, metrics = jax.jit(learner.update)(state, batch, jax.random.key(2))
    assert all(np.isfinite(each).all() for each in metrics.values())
    if isinstance(learner, SEQL):
        return
    # VDN: the sum over the agents that are present of the mean over dimensions
    weights = network(state.online.agents, 0)
    errors = []
    for episode, length in enumerate(batch.num_steps.tolist()):
        each = [unrolled(learner, weights, inputs_slowly(learner, batch, agent, episode, length))
                for agent in range(AGENTS)]  # fmt: skip
        for step in range(length):
            total, follows = 0.0, 0.0
            for agent in range(AGENTS):
                taken = np.asarray(batch.actions[agent, episode, step]).astype(int)
                allowed = np.asarray(batch.allowed[agent, episode])
                if allowed[step].any():
                    total += np.mean(each[agent][step][np.arange(BRANCHES), taken])
                if allowed[step + 1].any():
                    follows += np.mean(np.where(allowed[step + 1], each[agent][step + 1], -np.inf).max(axis=1))
            goal = float(batch.rewards[:, episode, step].sum()) + (learner.discount * follows) * (step < length - 1)
            errors.append((total - goal) ** 2)
    np.testing.assert_allclose(metrics["loss"], np.mean(errors), rtol=1e-4)


def test_a_dueling_head_has_one_state_value_for_all_dimensions():
    outputs = np.random.default_rng(4).normal(size=(3, 1 + BRANCHES * ACTIONS)).astype(np.float32)
    values = Head.DUELING.values(jnp.asarray(outputs), BRANCHES)
    slow = np.stack([values_slowly(IQL(SPEC, head=Head.DUELING), row) for row in outputs])
    np.testing.assert_allclose(values, slow, rtol=1e-6)
    np.testing.assert_allclose(values.mean(axis=-1), np.repeat(outputs[:, :1], BRANCHES, axis=1), rtol=1e-4, atol=1e-6)


def test_the_number_of_outputs_is_the_sum_of_choices_and_not_their_product():
    learner = IQL(SPEC, hidden_size=5, reward_of=RewardOf.TEAM)
    assert learner.networks.num_outputs == BRANCHES * ACTIONS
    assert learner.networks.input_size == CODES + BRANCHES * ACTIONS
