"""SEQL's update against a slow reference version, which is built on IQL's slow loss."""

import dataclasses
import functools

import jax
import numpy as np
import pytest

from consmarl.errors import UsageError
from consmarl.learners.interface import BY_AGENT, TeamSpec
from consmarl.learners.iql import IQL
from consmarl.learners.optimiser import RMSprop
from consmarl.learners.rewards import RewardOf
from consmarl.learners.seql import SEQL
from consmarl.learners.team_networks import Weights
from tests.learners.slowly import ACTIONS, AGENTS, SPEC, hand_made_batch, network, with_padding_of
from tests.learners.test_iql import loss_slowly

ALONE = TeamSpec(1, ACTIONS, SPEC.observation_scale)

# an ε as large as the root it is added to, so that a step depends on the gradient's size and not only on its sign
OPTIMISER = RMSprop(learning_rate=0.01, epsilon=1e-3, max_gradient_norm=0.05)
# shared by most tests, because compiling takes longer than anything else here
SETTINGS = dict(hidden_size=3, optimiser=OPTIMISER, target_every_updates=2)


def in_numpy(tree):
    """The same arrays in NumPy, where reading single elements is fast."""
    return jax.tree.map(np.asarray, tree)


@functools.cache
def compiled(learner):
    """A learner's compiled update as a function of state and batch; it uses no random numbers."""
    update = jax.jit(learner.update)
    return lambda state, batch: in_numpy(update(state, batch, jax.random.key(0)))


def begun(learner, seed=0):
    """A state whose targets differ from its online networks, drawn with NumPy to avoid compiling `init`."""
    rng = np.random.default_rng(seed)
    shapes = jax.eval_shape(learner.init, jax.random.key(0))
    state = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), shapes)
    online, target = jax.tree.map(lambda leaf: rng.uniform(-0.7, 0.7, leaf.shape).astype(leaf.dtype), state[:2])
    return state._replace(online=online, target=target)


def played(seed=0, agents=AGENTS):
    return in_numpy(hand_made_batch(seed, agents))


def with_episodes_of(batch, other, agent):
    """The batch, with one agent's observations, actions and rewards taken from another batch."""

    def mixed(mine, new):
        is_agents = np.arange(len(mine)) == agent
        return np.where(is_agents.reshape(-1, *[1] * (mine.ndim - 1)), new, mine)

    by_agent = {name: jax.tree.map(mixed, getattr(batch, name), getattr(other, name)) for name in BY_AGENT}
    return batch._replace(**by_agent)


def is_same(left, right):
    return all(np.array_equal(*pair) for pair in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True))


def gradient_slowly(loss, weights, by=1e-5):
    """The gradient of a loss by central differences, one weight at a time."""
    weights = jax.tree.map(np.array, weights)

    def slope(leaf, index):
        kept, losses = leaf[index], []
        for moved in (kept + by, kept - by):
            leaf[index] = moved
            losses.append(loss(weights))
        leaf[index] = kept
        return (losses[0] - losses[1]) / (2 * by)

    def slopes(leaf):
        return np.array([slope(leaf, index) for index in np.ndindex(leaf.shape)]).reshape(leaf.shape)

    return jax.tree.map(slopes, weights)


def first_step_slowly(optimiser, gradient):
    """RMSprop's first step for a gradient that is clipped by its norm, and that norm."""
    norm = np.sqrt(sum(np.sum(leaf**2) for leaf in jax.tree.leaves(gradient)))

    def step(slope):
        clipped = slope * min(1, optimiser.max_gradient_norm / norm)
        mean_square = (1 - optimiser.decay) * clipped**2
        return -optimiser.learning_rate * clipped / (np.sqrt(mean_square) + optimiser.epsilon)

    return jax.tree.map(step, gradient), norm


def assert_moved(before, after, steps):
    for old, new, step in zip(*(jax.tree.leaves(tree) for tree in (before, after, steps)), strict=True):
        np.testing.assert_allclose(np.asarray(new, np.float64) - np.asarray(old), step, rtol=5e-3, atol=1e-6)


def loss_of_all_slowly(learner, online, target, batch, student):
    """One agent's loss, and the part of it from the other agents' episodes, pooled as if one agent had played them."""
    if learner.reward_of is RewardOf.TEAM:
        batch = batch._replace(rewards=np.tile(batch.rewards.sum(axis=0), (len(batch.rewards), 1, 1)))
    individual = dataclasses.replace(learner, reward_of=RewardOf.INDIVIDUAL)
    own = loss_slowly(individual, online, target, batch, student)
    others = [agent for agent in range(len(batch.codes)) if agent != student]
    if not others:
        return own, 0
    pooled = batch._replace(
        codes=np.concatenate(batch.codes[others])[None],
        actions=np.concatenate(batch.actions[others])[None],
        rewards=np.concatenate(batch.rewards[others])[None],
        num_steps=np.tile(batch.num_steps, len(others)),
        terminated=np.tile(batch.terminated, len(others)),
    )
    of_others = learner.others_weight * loss_slowly(individual, online, target, pooled, 0)
    return own + of_others, of_others


VARIANTS = {
    "paper": (SPEC, {}),
    "team reward": (SPEC, dict(reward_of=RewardOf.TEAM)),
    "bootstrapped limits": (SPEC, dict(bootstrap_time_limit=True)),
    "others count less": (SPEC, dict(others_weight=0.3)),
    "one agent": (ALONE, {}),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_losses_match_the_slow_reference(variant):
    spec, settings = VARIANTS[variant]
    learner = SEQL(spec, **SETTINGS, **settings)
    state, batch = begun(learner), played(agents=spec.num_agents)
    _, metrics = compiled(learner)(state, batch)
    slow = [
        loss_of_all_slowly(learner, network(state.online, agent), network(state.target, agent), batch, agent)
        for agent in range(spec.num_agents)
    ]
    np.testing.assert_allclose(metrics["loss"], [loss for loss, _ in slow], rtol=1e-4)
    np.testing.assert_allclose(metrics["others_loss"], [of_others for _, of_others in slow], rtol=1e-4)


def test_a_step_follows_the_slow_gradient_clipped_by_the_agents_own_norm():
    learner = SEQL(SPEC, **SETTINGS, **VARIANTS["others count less"][1])
    state, batch, agent = begun(learner, 3), played(1), 1
    after, metrics = compiled(learner)(state, batch)
    before, target = network(state.online, agent), network(state.target, agent)

    def loss(online):
        return loss_of_all_slowly(learner, online, target, batch, agent)[0]

    steps, norm = first_step_slowly(OPTIMISER, gradient_slowly(loss, before))
    assert norm > 0.05  # so that gradients are clipped
    np.testing.assert_allclose(metrics["gradient_norm"][agent], norm, rtol=1e-3)
    assert_moved(before, network(after.online, agent), steps)


@pytest.mark.parametrize("others_weight", [1.0, 0.0])
def test_all_agents_learn_from_all_episodes_unless_others_weight_is_zero(others_weight):
    learner = SEQL(SPEC, others_weight=others_weight, **SETTINGS)
    state, batch, other = begun(learner), played(0), played(7)
    ours, our_metrics = compiled(learner)(state, batch)
    for teacher in range(AGENTS):
        theirs, their_metrics = compiled(learner)(state, with_episodes_of(batch, other, teacher))
        learns = [agent == teacher or others_weight > 0 for agent in range(AGENTS)]
        assert (our_metrics["loss"] != their_metrics["loss"]).tolist() == learns
        moves = [not is_same(network(ours.online, agent), network(theirs.online, agent)) for agent in range(AGENTS)]
        assert moves == learns


def test_agents_share_episodes_but_not_networks():
    learner = SEQL(SPEC, **SETTINGS)
    state, other, batch = begun(learner), begun(learner, 5), played()
    online, target = jax.tree.map(lambda mine, new: np.stack([mine[0], new[1], mine[2]]), state[:2], other[:2])
    ours, our_metrics = compiled(learner)(state, batch)
    theirs, their_metrics = compiled(learner)(state._replace(online=online, target=target), batch)
    assert (our_metrics["loss"] == their_metrics["loss"]).tolist() == [True, False, True]
    for agent in (0, 2):
        assert is_same(network(ours.online, agent), network(theirs.online, agent))


def test_with_others_weight_zero_seql_equals_iql():
    iql, seql = IQL(SPEC, **SETTINGS), SEQL(SPEC, others_weight=0.0, **SETTINGS)
    by_iql = by_seql = begun(iql)
    for number in range(4):  # targets are copied after the third
        batch = played(number)
        by_iql, iql_metrics = compiled(iql)(by_iql, batch)
        by_seql, seql_metrics = compiled(seql)(by_seql, batch)
        jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-6, atol=1e-9), by_seql, by_iql)
        assert not seql_metrics.pop("others_loss").any()
        assert set(seql_metrics) == set(iql_metrics)
        for name, value in iql_metrics.items():
            np.testing.assert_allclose(seql_metrics[name], value, rtol=1e-6, err_msg=name)


def test_padding_has_no_effect():
    learner = SEQL(SPEC, **SETTINGS)
    state, batch = begun(learner), played(0)
    mixed = with_padding_of(batch, played(7))
    assert is_same(compiled(learner)(state, batch), compiled(learner)(state, mixed))


def test_shared_weights_are_refused_in_one_sentence():
    with pytest.raises(UsageError, match=r"choose --weights separate, or --method iql\.$") as error:
        SEQL(SPEC, weights=Weights.SHARED)
    said = str(error.value)
    assert "\n" not in said
    assert said.count(". ") == 0


def test_by_default_the_other_agents_episodes_count_fully():
    assert SEQL(SPEC).others_weight == 1.0
