"""I2Q's three losses and updates against slow reference versions: one agent, episode and step at a time."""

import jax
import numpy as np
import pytest

from consmarl.learners.i2q import I2Q, I2QNetworks
from consmarl.learners.optimiser import RMSprop
from consmarl.learners.rewards import RewardOf
from tests.learners.slowly import AGENTS, SPEC, network, network_slowly, with_padding_of
from tests.learners.test_seql import (
    ALONE,
    OPTIMISER,
    SETTINGS,
    assert_moved,
    begun,
    compiled,
    first_step_slowly,
    gradient_slowly,
    is_same,
    played,
    with_episodes_of,
)

SIZED = dict(value_size=5, **SETTINGS)
LOSSES = I2QNetworks(action_value="loss", pair_value="pair_loss", state_value="state_loss")


def perceptron_slowly(layers, *inputs):
    """The single output of a perceptron whose inputs are concatenated."""
    values = np.concatenate(inputs)
    for number, layer in enumerate(layers):
        values = values @ layer.weights + layer.bias
        if number < len(layers) - 1:
            values = np.maximum(values, 0)
    return values[0]


def unroll_slowly(weights, inputs):
    """Hidden states and action values of one network over a whole episode, o₀ to o_T."""
    hidden, hiddens, values = np.zeros(len(weights.head_weights)), [], []
    for each in inputs:
        hidden, now = network_slowly(weights, hidden, each)
        hiddens.append(hidden)
        values.append(now)
    return hiddens, values


def inputs_slowly(spec, codes, actions):
    """Scaled observation and one-hot last action at every step from o₀ to o_T; there is no last action at o₀."""
    last_actions = [np.zeros(spec.num_actions), *np.eye(spec.num_actions)[actions]]
    return [
        np.concatenate([seen * np.array(spec.observation_scale), last])
        for seen, last in zip(codes, last_actions, strict=True)
    ]


def metrics_slowly(learner, online, target, batch, agent):
    """One agent's three losses and other metrics."""
    rewards = batch.rewards.sum(axis=0) if learner.reward_of is RewardOf.TEAM else batch.rewards[agent]
    pair_errors, state_errors, state_weights, action_errors, chosen, state_values = [], [], [], [], [], []
    for episode, length in enumerate(batch.num_steps):
        actions = batch.actions[agent, episode, :length]
        inputs = inputs_slowly(learner.spec, batch.codes[agent, episode, : length + 1], actions)
        _, values = unroll_slowly(online.action_value, inputs)
        hiddens, target_values = unroll_slowly(target.action_value, inputs)
        for step in range(length):
            h_tm1, h_t, reward = hiddens[step], hiddens[step + 1], float(rewards[episode, step])
            ends = step == length - 1 and (batch.terminated[episode] or not learner.bootstrap_time_limit)
            discount = 0 if ends else learner.discount
            # Q^ss towards the next state's value
            ideal = reward + discount * perceptron_slowly(target.state_value, h_t)
            pair_errors.append(perceptron_slowly(online.pair_value, h_tm1, h_t) - ideal)
            # V towards a high expectile of Q^ss
            pair_value = perceptron_slowly(target.pair_value, h_tm1, h_t)
            state_values.append(perceptron_slowly(online.state_value, h_tm1))
            state_errors.append(state_values[-1] - pair_value)
            state_weights.append(learner.expectile if pair_value > state_values[-1] else 1 - learner.expectile)
            # Q towards a mix of the ideal and the ordinary target
            ordinary = reward + discount * target_values[step + 1][np.argmax(values[step + 1])]
            goal = learner.ideal_weight * ideal + (1 - learner.ideal_weight) * ordinary
            chosen.append(values[step][actions[step]])
            action_errors.append(chosen[-1] - goal)
    return {
        "loss": np.mean(np.square(action_errors)),
        "pair_loss": np.mean(np.square(pair_errors)),
        "state_loss": np.sum(state_weights * np.square(state_errors)) / np.sum(state_weights),
        "td_error": np.mean(np.abs(action_errors)),
        "q_value": np.mean(chosen),
        "state_value": np.mean(state_values),
    }


VARIANTS = {
    "paper": (SPEC, {}),
    "team reward": (SPEC, dict(reward_of=RewardOf.TEAM)),
    "bootstrapped limits": (SPEC, dict(bootstrap_time_limit=True)),
    "higher expectile, more ideal": (SPEC, dict(expectile=0.8, ideal_weight=0.7)),
    "one agent": (ALONE, {}),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_losses_match_the_slow_reference(variant):
    spec, settings = VARIANTS[variant]
    learner = I2Q(spec, **SIZED, **settings)
    state, batch = begun(learner), played(agents=spec.num_agents)
    _, metrics = compiled(learner)(state, batch)
    assert metrics.pop("gradient_norm").shape == (1,)
    slow = [
        metrics_slowly(learner, network(state.online, agent), network(state.target, agent), batch, agent)
        for agent in range(spec.num_agents)
    ]
    assert set(metrics) == set(slow[0])
    for name, value in metrics.items():
        np.testing.assert_allclose(value, [each[name] for each in slow], rtol=1e-4, err_msg=name)


def test_steps_follow_the_slow_gradients_clipped_per_kind_of_network_over_all_agents():
    learner = I2Q(SPEC, **SIZED)
    state, batch = begun(learner, 1), played(1)
    after, metrics = compiled(learner)(state, batch)
    before, targets = ([network(each, agent) for agent in range(AGENTS)] for each in (state.online, state.target))
    norms = {}
    for kind, name in LOSSES._asdict().items():

        def loss(weights, agent, kind=kind, name=name):
            moved = before[agent]._replace(**{kind: weights})
            return metrics_slowly(learner, moved, targets[agent], batch, agent)[name]

        gradients = [
            gradient_slowly(lambda weights, agent=agent: loss(weights, agent), getattr(before[agent], kind))
            for agent in range(AGENTS)
        ]
        steps, norms[kind] = first_step_slowly(OPTIMISER, gradients)
        assert_moved(
            [getattr(each, kind) for each in before],
            [network(getattr(after.online, kind), agent) for agent in range(AGENTS)],
            steps,
        )
    assert min(norms.values()) > 0.05  # so that gradients are clipped
    np.testing.assert_allclose(metrics["gradient_norm"], [norms["action_value"]], rtol=1e-3)


Q, PAIR, V = I2QNetworks._fields
# Which networks' gradients change if the given weights change. Online weights change only their own network's gradient:
# a loss that also trained another online network would make that network's gradient depend on both.
LISTENERS = {
    ("online", Q): {Q},  # the others read the target network's memory
    ("online", PAIR): {PAIR},
    ("online", V): {V},
    ("target", Q): {Q, PAIR, V},  # Q bootstraps from it, and the others read its memory
    ("target", PAIR): {V},
    ("target", V): {PAIR, Q},
}


@pytest.mark.parametrize(("side", "kind"), LISTENERS)
def test_weights_affect_only_the_expected_networks_gradients(side, kind):
    learner = I2Q(SPEC, **SIZED)
    state, other, batch = begun(learner), begun(learner, 9), played()
    networks, new = getattr(state, side), getattr(other, side)
    changed = state._replace(**{side: networks._replace(**{kind: getattr(new, kind)})})
    # after one step, an optimiser's state shows the gradient that it was given
    ours, theirs = (compiled(learner)(each, batch)[0].optimiser for each in (state, changed))
    listeners = {each for each in (Q, PAIR, V) if not is_same(getattr(ours, each), getattr(theirs, each))}
    assert listeners == LISTENERS[side, kind]


def test_state_and_pair_values_read_the_target_networks_memory_below_its_head():
    learner = I2Q(SPEC, **SIZED)
    state, batch = begun(learner), played()
    acting = state.target.action_value
    with_another_head = state.target._replace(action_value=acting._replace(head_weights=-acting.head_weights))
    ours, theirs = (
        compiled(learner)(state._replace(target=target), batch)[0].optimiser
        for target in (state.target, with_another_head)
    )
    assert [is_same(*pair) for pair in zip(ours, theirs, strict=True)] == [False, True, True]


def test_targets_of_all_three_networks_are_copied_when_due():
    learner = I2Q(SPEC, **SIZED)
    state, batch, copied = begun(learner), played(), []
    for number in range(1, 7):
        before = state
        state, _ = compiled(learner)(before, batch)
        assert not is_same(state.online, before.online)
        if not is_same(state.target, before.target):
            assert is_same(state.target, state.online)
            copied.append(number)
    assert copied == [3, 5]  # every second update, except the first
    assert int(state.num_updates) == 6


def test_agents_learn_only_from_their_own_episodes():
    learner = I2Q(SPEC, **SIZED)
    state, batch = begun(learner), played(0)
    changed = with_episodes_of(batch, played(7), agent=0)
    ours, theirs = (compiled(learner)(state, each)[1] for each in (batch, changed))
    # compares metrics, because steps depend on all agents: their gradients are clipped by one norm
    for name in set(ours) - {"gradient_norm"}:
        assert (ours[name] == theirs[name]).tolist() == [False, True, True], name


def test_padding_has_no_effect():
    learner = I2Q(SPEC, **SIZED)
    state, batch = begun(learner), played()
    assert is_same(compiled(learner)(state, batch), compiled(learner)(state, with_padding_of(batch, played(7))))


def test_defaults_are_those_of_the_paper_or_of_i2q_itself():
    learner = I2Q(SPEC)
    assert (learner.expectile, learner.ideal_weight, learner.discount) == (0.52, 0.2, 0.99)
    assert learner.target_every_updates == 200
    assert learner.optimiser == RMSprop(learning_rate=5e-4, decay=0.99, epsilon=1e-8, max_gradient_norm=10.0)
    online = jax.eval_shape(learner.init, jax.random.key(0)).online
    assert [layer.weights.shape for layer in online.pair_value] == [(3, 128, 256), (3, 256, 256), (3, 256, 1)]
    assert [layer.weights.shape for layer in online.state_value] == [(3, 64, 256), (3, 256, 256), (3, 256, 1)]
