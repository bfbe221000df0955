"""MAVEN's three losses against slow reference versions: one episode, step and agent at a time."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from consmarl.errors import UsageError
from consmarl.learners.interface import map_episodes
from consmarl.learners.maven import MAVEN, Discriminator, MavenNotes
from consmarl.learners.team_networks import Weights
from consmarl.networks.drqn import DRQNParameters
from consmarl.networks.linear import Linear
from tests.learners.slowly import (
    AGENTS,
    EPISODES,
    SPEC,
    STEPS,
    as_float64,
    compiled,
    gru_slowly,
    hand_made_batch,
    softmax,
    total,
    with_padding_of,
)
from tests.learners.test_team_value import (
    ALONE,
    OF_MIXER,
    SETTINGS,
    along,
    assert_equal_trees,
    begun,
    clipped_step,
    gradient_behind,
    norm,
    part_alone,
    slope,
    state_slowly,
    steps_taken,
    team_loss_slowly,
    updated,
    updates_that_change_targets,
    values_slowly,
    values_while_acting,
    weight_alone,
)

STRATEGIES = 3
maven = functools.partial(MAVEN, **SETTINGS, num_strategies=STRATEGIES, policy_size=5, discriminator_size=6)
# λ_MI is so large that the discriminator matters next to rewards
LEARNER = maven(SPEC, information_weight=50.0)


def strategic_batch(seed=0, agents=AGENTS):
    """Episodes with strategies; the second strategy was so unlikely when drawn that its importance gets clipped."""
    notes = MavenNotes(jnp.array([2, 0, 1, 2]), jnp.array([0.4, 0.001, 0.3, 0.5]))
    return hand_made_batch(seed, agents)._replace(notes=notes)


def as_arrays(batch):
    return jax.tree.map(np.asarray, batch)


def policy_of(state):
    return as_float64(state.online.agents.strategy_policy)


def network_of_strategy(learner, actor, agent, batch, episode):
    """The DRQN whose last layer a linear layer generates from the concatenated one-hot strategy and agent."""
    strategy = np.eye(learner.num_strategies)[batch.notes.strategy[episode]]
    situation = np.concatenate([strategy, np.eye(learner.spec.num_agents)[agent]])
    weights, bias = (
        situation @ layer.weights + layer.bias for layer in (actor.agent.head_weights, actor.agent.head_bias)
    )
    return DRQNParameters(*actor.agent[:3], weights.reshape(learner.hidden_size, learner.spec.num_actions), bias)


def perceptron_slowly(layers, inputs):
    first, last = layers
    return np.maximum(inputs @ first.weights + first.bias, 0) @ last.weights + last.bias


def guesses_slowly(learner, online, batch):
    """The mean over played steps of −log q(z | policies and states so far), and how often z is the likeliest guess."""
    spec, discriminator, losses, is_right = learner.spec, online.discriminator, [], []
    for episode, length in enumerate(batch.num_steps.tolist()):
        strategy, memory = batch.notes.strategy[episode], np.zeros(learner.discriminator_size)
        values = values_slowly(learner, online.agents, batch, episode, network_of_strategy)
        for step in range(length):
            policies = [softmax(values[agent][step]) for agent in range(spec.num_agents)]
            seen = np.concatenate([*policies, state_slowly(spec, batch, episode, step)])
            memory = gru_slowly(discriminator.gru, memory, seen)
            chances = softmax(perceptron_slowly(discriminator.guess, memory))
            losses.append(-np.log(chances[strategy]))
            is_right.append(np.argmax(chances) == strategy)
    return {"guess_loss": np.mean(losses), "guessed_right": np.mean(is_right)}


def chances_slowly(learner, policy, batch, episode):
    return softmax(perceptron_slowly(policy, state_slowly(learner.spec, batch, episode, 0)))


def strategies_slowly(learner, policy, batch, weighed_by):
    """REINFORCE on whole episodes, weighted by how much more likely their strategy is now than when it was drawn."""
    played = enumerate(batch.num_steps.tolist())
    returns = [np.sum(batch.rewards[:, episode, :length], dtype=np.float64) for episode, length in played]
    terms, entropies = [], []
    for episode, strategy in enumerate(batch.notes.strategy.tolist()):
        chances = chances_slowly(learner, policy, batch, episode)
        now = chances_slowly(learner, weighed_by, batch, episode)[strategy]
        importance = min(now / batch.notes.probability[episode], learner.max_importance)
        advantage = (returns[episode] - np.mean(returns)) / np.std(returns)
        terms.append(-importance * advantage * np.log(chances[strategy]))
        entropies.append(-np.sum(chances * np.log(chances)))
    return {"strategy_loss": np.mean(terms), "strategy_entropy": np.mean(entropies) / np.log(learner.num_strategies)}


def losses_slowly(learner, online, target, batch, weighed_by=None):
    """All metrics; importance weights come from `weighed_by`, by default the online policy."""
    batch, policy = as_arrays(batch), online.agents.strategy_policy
    return {
        **team_loss_slowly(learner, online, target, batch, network_of_strategy),
        **guesses_slowly(learner, online, batch),
        **strategies_slowly(learner, policy, batch, weighed_by or policy),
    }


def sum_slowly(learner, *arguments):
    """The whole loss that is minimised."""
    parts = losses_slowly(learner, *arguments)
    entropy = parts["strategy_entropy"] * np.log(learner.num_strategies)
    guess = learner.information_weight * parts["guess_loss"]
    return parts["loss"] + guess + parts["strategy_loss"] - learner.entropy_weight * entropy


VARIANTS = {
    "defaults": maven(SPEC),
    "the online network says what is best": maven(SPEC, double_q=True),
    "bootstrapped limits": maven(SPEC, bootstrap_time_limit=True),
    "hardly bounded importance": maven(SPEC, max_importance=1e6),
    "one agent": maven(ALONE),
}


@pytest.mark.parametrize("learner", VARIANTS.values(), ids=VARIANTS)
def test_the_losses_match_the_slow_reference(learner):
    state, batch = begun(learner), strategic_batch(agents=learner.spec.num_agents)
    whole, metrics = compiled(learner, "loss")(state.online, state.target, batch)
    networks = as_float64(state.online), as_float64(state.target)
    expected = losses_slowly(learner, *networks, batch)
    assert set(metrics) == set(expected)
    for name, value in expected.items():
        np.testing.assert_allclose(metrics[name], value, rtol=1e-4, err_msg=name)
    np.testing.assert_allclose(whole, sum_slowly(learner, *networks, batch), rtol=1e-4)


def test_an_update_reports_the_slow_losses():
    state, batch = begun(LEARNER, 1), strategic_batch(1)
    _, metrics = updated(LEARNER, state, batch)
    expected = losses_slowly(LEARNER, as_float64(state.online), as_float64(state.target), batch)
    assert set(metrics) == {*expected, "gradient_norm"}
    for name, value in expected.items():
        np.testing.assert_allclose(metrics[name], value, rtol=1e-4, err_msg=name)


def test_importance_weights_are_bounded():
    batch, policy = as_arrays(strategic_batch()), policy_of(begun(LEARNER))
    assert chances_slowly(LEARNER, policy, batch, 1)[0] / 0.001 > LEARNER.max_importance
    bounded, free = (
        strategies_slowly(VARIANTS[name], policy, batch, policy)["strategy_loss"]
        for name in ("defaults", "hardly bounded importance")
    )
    assert abs(bounded - free) > 1e-2  # otherwise the variants above would not test it


OF_VALUES = OF_MIXER | {
    "encoder": (lambda networks: networks.agents.agent.encoder_weights, (5, 1)),
    "head, by strategy": (lambda networks: networks.agents.agent.head_weights.weights, (2, 3)),
    "head, by agent": (lambda networks: networks.agents.agent.head_bias.weights, (STRATEGIES + 1, 0)),
    "discriminator's memory": (lambda networks: networks.discriminator.gru.input_weights, (14, 15)),
    "guess": (lambda networks: networks.discriminator.guess[1].weights, (2, 1)),
}
OF_STRATEGIES = {
    "strategy policy, first layer": (lambda networks: networks.agents.strategy_policy[0].weights, (5, 3)),
    "strategy policy, last layer": (lambda networks: networks.agents.strategy_policy[1].weights, (3, 0)),
}
PARTS = {
    "agents": lambda networks: networks.agents.agent,
    "mixer": lambda networks: networks.mixer,
    "discriminator": lambda networks: networks.discriminator,
    "strategy policy": lambda networks: networks.agents.strategy_policy,
}
STEPPED_TOGETHER = [(["agents", "mixer", "discriminator"], OF_VALUES), (["strategy policy"], OF_STRATEGIES)]


def test_a_step_follows_the_slow_gradient_with_separate_norms_for_values_and_strategies():
    state, batch = begun(LEARNER, 3), strategic_batch(1)
    after, metrics = updated(LEARNER, state, batch)
    online, target = as_float64(state.online), as_float64(state.target)
    steps, rng, norms = steps_taken(state, after), np.random.default_rng(0), []
    gradient = jax.tree.map(gradient_behind, steps)

    def loss(networks):
        return sum_slowly(LEARNER, networks, target, batch, online.agents.strategy_policy)

    for parts, weights in STEPPED_TOGETHER:
        np.testing.assert_allclose(norm([PARTS[part](gradient) for part in parts]), 0.05, rtol=1e-3)
        directions = [part_alone(online, PARTS[part], rng) for part in parts]
        clipping = [along(gradient, direction) / slope(loss, online, direction) for direction in directions]
        assert 0 < clipping[0] < 1  # so that gradients are clipped
        np.testing.assert_allclose(clipping, clipping[0], rtol=1e-2)
        norms.append(0.05 / clipping[0])
        for name, (pick, index) in weights.items():
            steepness = clipping[0] * slope(loss, online, weight_alone(online, pick, index))
            assert abs(steepness) > 1e-5, name  # large enough to compare
            np.testing.assert_allclose(pick(steps)[index], clipped_step(steepness), rtol=1e-2, err_msg=name)
    np.testing.assert_allclose(metrics["gradient_norm"], np.hypot(*norms), rtol=1e-2)


def by_td(online, target, batch):
    return LEARNER.team_loss(online, target, LEARNER.action_values(online.agents, batch), batch)[0]


def by_guess(online, target, batch):
    del target
    return LEARNER.guess_loss(online.discriminator, LEARNER.action_values(online.agents, batch), batch)[0]


def by_strategies(online, target, batch):
    del target
    return LEARNER.policy_loss(online.agents.strategy_policy, batch)[0]


def slowly_by_td(*arguments):
    return losses_slowly(LEARNER, *arguments)["loss"]


def slowly_by_guess(*arguments):
    return losses_slowly(LEARNER, *arguments)["guess_loss"]


def slowly_by_strategies(*arguments):
    without_guess = dataclasses.replace(LEARNER, information_weight=0.0)
    return sum_slowly(without_guess, *arguments) - slowly_by_td(*arguments)


@pytest.mark.parametrize(
    ("loss", "slow_loss", "expected"),
    [
        (by_td, slowly_by_td, ["agents", "mixer"]),
        (by_guess, slowly_by_guess, ["agents", "discriminator"]),
        (by_strategies, slowly_by_strategies, ["strategy policy"]),
    ],
    ids=["td", "guess", "strategies"],
)
def test_each_loss_trains_only_the_networks_it_should(loss, slow_loss, expected):
    state, batch = begun(LEARNER), strategic_batch()
    gradient, of_target = jax.jit(jax.grad(loss, argnums=(0, 1)))(state.online, state.target, batch)
    assert [name for name, part in PARTS.items() if total(part(gradient)) > 0] == expected
    assert total(of_target) == 0
    online, target = as_float64(state.online), as_float64(state.target)
    policy = online.agents.strategy_policy  # fixed, because no gradient flows through importance weights
    for name in expected:
        direction = part_alone(online, PARTS[name], np.random.default_rng(0))
        steepness = slope(lambda networks: slow_loss(networks, target, batch, policy), online, direction)
        np.testing.assert_allclose(along(as_float64(gradient), direction), steepness, rtol=1e-3, err_msg=name)


def test_targets_are_copied_when_due():
    assert updates_that_change_targets(LEARNER, strategic_batch(), 4) == [3]


def with_one_start(batch):
    """The batch, with the same first observations in all episodes."""
    return batch._replace(codes=batch.codes.at[:, :, 0].set(batch.codes[:, :1, 0]))


def chances_after(batch, num_updates):
    """The strategies' probabilities at an episode's start, before and after repeated updates on one batch."""
    first = state = begun(LEARNER)
    for _ in range(num_updates):
        state, _ = updated(LEARNER, state, batch)
    return [chances_slowly(LEARNER, policy_of(each), as_arrays(batch), 0) for each in (first, state)]


def test_the_team_learns_which_strategies_pay():
    # in the released code the loss of this policy is left out, so it keeps its initial weights
    batch = with_one_start(strategic_batch())
    uniform = batch.notes._replace(probability=jnp.full(EPISODES, 1 / STRATEGIES, jnp.float32))
    rewards = jnp.zeros_like(batch.rewards).at[:, 1, 0].set(1.0)  # only in the second episode, which has strategy 0
    before, after = chances_after(batch._replace(notes=uniform, rewards=rewards), 40)
    assert before[0] < 0.5
    assert after[0] > 0.9


def test_strategies_with_equal_returns_become_equally_likely():
    batch = with_one_start(strategic_batch())
    before, after = chances_after(batch._replace(rewards=jnp.zeros_like(batch.rewards)), 40)
    assert np.ptp(before) > 0.1
    assert np.ptp(after) < 0.5 * np.ptp(before)


def test_each_episode_is_learned_with_its_own_strategy():
    # in the released code, only 4 of 128 rows of a batch get the strategy that was played
    batch, actor = strategic_batch(), begun(LEARNER).online.agents
    changed = batch._replace(notes=batch.notes._replace(strategy=batch.notes.strategy.at[2].set(0)))
    ours, theirs = (np.asarray(compiled(LEARNER, "action_values")(actor, each)) for each in (batch, changed))
    is_same = (ours == theirs).all(axis=-1)  # [agent, step + 1, episode]
    expected = np.broadcast_to(np.arange(EPISODES) != 2, (AGENTS, STEPS + 1, EPISODES))
    np.testing.assert_array_equal(is_same, expected)


def in_order(batch, order):
    return map_episodes(lambda axis, leaf: jnp.take(leaf, jnp.array(order), axis), batch)


def test_the_order_of_episodes_does_not_matter_if_their_notes_move_with_them():
    state, batch, loss = begun(LEARNER), strategic_batch(), compiled(LEARNER, "loss")
    permuted = in_order(batch, [2, 0, 3, 1])
    together, along_with, left_behind = (
        loss(state.online, state.target, each)[1] for each in (batch, permuted, permuted._replace(notes=batch.notes))
    )
    for name, value in together.items():
        np.testing.assert_allclose(along_with[name], value, rtol=1e-5, err_msg=name)
    for name in ("loss", "guess_loss", "strategy_loss"):
        assert abs(left_behind[name] - together[name]) > 1e-3, name


def test_a_discriminator_that_is_certain_and_right_has_no_loss():
    # with softmax applied twice, as in the released code, a guess among three costs at least log(1 + 2/e) = 0.55
    (gru, (first, last)), batch = begun(LEARNER).online.discriminator, strategic_batch()
    sure_of_1 = Linear(jnp.zeros_like(last.weights), jnp.array([0.0, 50.0, 0.0]))
    values, costs = jnp.zeros((AGENTS, STEPS + 1, EPISODES, SPEC.num_actions)), []
    for strategy in (1, 2):
        of_all = batch._replace(notes=batch.notes._replace(strategy=jnp.full(EPISODES, strategy, jnp.int32)))
        cost, metrics = compiled(LEARNER, "guess_loss")(Discriminator(gru, (first, sure_of_1)), values, of_all)
        costs.append((round(float(cost), 4), float(metrics["guessed_right"])))
    assert costs == [(0.0, 1.0), (50.0, 0.0)]


def test_padding_has_no_effect():
    batch = strategic_batch(0)
    batches = (batch, with_padding_of(batch, strategic_batch(7)))
    ours, theirs = (updated(LEARNER, begun(LEARNER), each) for each in batches)
    assert_equal_trees(ours, theirs)


ENVS = 400  # for each initial state


def memory_at_first(seed=0):
    """The first memory of teams that start like the batch's episodes, in turn, each `ENVS` times."""
    codes = jnp.tile(hand_made_batch().codes[:, :, 0], (1, ENVS, 1))
    return compiled(LEARNER, "begin")(begun(LEARNER).online.agents, jax.random.key(seed), codes)


def test_a_team_draws_its_strategy_given_its_first_observations():
    batch, policy = as_arrays(hand_made_batch()), policy_of(begun(LEARNER))
    notes = LEARNER.notes(memory_at_first())
    for episode in range(EPISODES):
        strategies, probabilities = (np.asarray(leaf)[episode::EPISODES] for leaf in notes)
        chances = chances_slowly(LEARNER, policy, batch, episode)
        np.testing.assert_allclose(probabilities, chances[strategies], rtol=1e-4)
        drawn = np.bincount(strategies, minlength=STRATEGIES) / ENVS
        np.testing.assert_allclose(drawn, chances, atol=0.1)  # four standard deviations of such a share
    again, other = (LEARNER.notes(memory_at_first(seed)).strategy for seed in (0, 1))
    np.testing.assert_array_equal(again, notes.strategy)
    assert not np.array_equal(other, notes.strategy)


def test_all_agents_of_a_team_follow_one_strategy():
    memory = memory_at_first()
    assert memory.agents.hidden.shape == (AGENTS, ENVS * EPISODES, LEARNER.hidden_size)
    assert not np.any(memory.agents.hidden)
    for drawn, kept in zip(memory[1:], LEARNER.notes(memory), strict=True):
        np.testing.assert_array_equal(drawn, np.broadcast_to(kept, (AGENTS, ENVS * EPISODES)))


def test_acting_step_by_step_matches_the_unrolled_network():
    actor, batch = begun(LEARNER).online.agents, strategic_batch()
    memory = jax.tree.map(lambda leaf: leaf[:, :EPISODES], memory_at_first())
    memory = memory._replace(strategy=jnp.tile(batch.notes.strategy[None], (AGENTS, 1)))
    acted = values_while_acting(LEARNER, actor, memory, batch)
    unrolled = compiled(LEARNER, "action_values")(actor, batch)
    np.testing.assert_allclose(acted, unrolled[:, :-1], atol=1e-5)


def test_separate_weights_are_refused():
    with pytest.raises(UsageError, match=r"^maven has one network for all agents: [^.]+\.$"):
        MAVEN(SPEC, weights=Weights.SEPARATE)
