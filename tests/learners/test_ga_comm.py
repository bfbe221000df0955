"""GA-Comm's two losses against a slow reference version: one episode, step, agent and teammate at a time."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from consmarl.learners.ga_comm import GAComm
from consmarl.learners.interface import Scores, TeamSpec
from consmarl.learners.optimiser import RMSprop
from consmarl.learners.policy_gradient import mixed_log_policy
from consmarl.networks.attention import listen, teammates
from tests.learners.slowly import (
    ACTIONS,
    AGENTS,
    EPISODES,
    SPEC,
    STEPS,
    as_float64,
    compiled,
    gru_slowly,
    hand_made_batch,
    inputs_slowly,
    softmax,
    total,
    with_padding_of,
)

SIZES = dict(hidden_size=7, attention_size=4, critic_size=6)
LEARNER = GAComm(SPEC, **SIZES)
ALONE = GAComm(TeamSpec(1, ACTIONS, SPEC.observation_scale), **SIZES, bootstrap_time_limit=True)
# critic steps so large that advantages computed after one would clearly differ
IN_LEAPS = GAComm(
    SPEC, **SIZES, optimiser=RMSprop(learning_rate=0.01, max_gradient_norm=0.05), critic_learning_rate=1.0
)
ALL_SHUT, ALL_OPEN = (np.array(pair, np.float32) for pair in ([1e3, 0], [0, 1e3]))


def gate_slowly(weights, own, theirs, place, noise):
    """How far an agent's gate to its teammate at `place` is open, after reading all teammates in both directions."""
    upwards = downwards = np.zeros(len(own))
    for other in theirs[: place + 1]:
        upwards = gru_slowly(weights.upwards, upwards, np.concatenate([own, other]))
    for other in reversed(theirs[place:]):
        downwards = gru_slowly(weights.downwards, downwards, np.concatenate([own, other]))
    logits = np.concatenate([upwards, downwards]) @ weights.gate.weights + weights.gate.bias
    return softmax((logits + noise) / 0.01)[1]


def logits_slowly(actor, hiddens, agent, noise):
    """One agent's logits and gates; noise [other, 2]."""
    weights, own = actor.attention, hiddens[agent]
    theirs = [hidden for number, hidden in enumerate(hiddens) if number != agent]
    query = own @ weights.query
    fits = np.array([query @ (other @ weights.key) / np.sqrt(len(query)) for other in theirs])
    message, gates = np.zeros(len(query)), []
    for place, other in enumerate(theirs):
        gates.append(gate_slowly(weights, own, theirs, place, noise[place]))
        value = np.maximum(other @ weights.value.weights + weights.value.bias, 0)
        message = message + softmax(fits)[place] * gates[-1] * value
    return np.concatenate([own, message]) @ actor.head.weights + actor.head.bias, gates


def actor_slowly(learner, actor, batch, advantages, noise):
    """The actor's loss, the mean entropy and how far gates are open on average; advantages by (episode, step)."""
    spec, batch = learner.spec, jax.tree.map(np.asarray, batch)
    agents = range(spec.num_agents)
    noise = np.asarray(noise, np.float64).reshape(spec.num_agents - 1, spec.num_agents, STEPS, EPISODES, 2)
    terms, entropies, gates = [], [], []
    for episode, length in enumerate(batch.num_steps.tolist()):
        hiddens = [np.zeros(learner.hidden_size) for _ in agents]
        for step in range(length):
            for agent in agents:
                inputs = inputs_slowly(spec, batch, agent, episode, step)
                encoded = np.maximum(inputs @ actor.encoder_weights + actor.encoder_bias, 0)
                hiddens[agent] = gru_slowly(actor.gru, hiddens[agent], encoded)
            for agent in agents:
                logits, opened = logits_slowly(actor, hiddens, agent, noise[:, agent, step, episode])
                epsilon = float(batch.epsilon[episode, step])
                policy = (1 - epsilon) * softmax(logits) + epsilon / spec.num_actions
                terms.append(-advantages[episode, step] * np.log(policy[batch.actions[agent, episode, step]]))
                entropies.append(-np.sum(policy * np.log(policy)))
                gates += opened
    return np.mean(terms), np.mean(entropies), np.mean(gates) if gates else 0.0


def critic_slowly(learner, critic, target, batch):
    """The critic's loss, and δ and V by (episode, step)."""
    spec, batch = learner.spec, jax.tree.map(np.asarray, batch)

    def value(layers, episode, step):
        rows = [
            batch.codes[agent, episode, step] * np.array(spec.observation_scale) for agent in range(spec.num_agents)
        ]
        first, second, last = layers
        hidden = np.maximum(np.concatenate(rows) @ first.weights + first.bias, 0)
        hidden = np.maximum(hidden @ second.weights + second.bias, 0)
        return (hidden @ last.weights + last.bias)[0]

    errors, values = {}, {}
    for episode, length in enumerate(batch.num_steps.tolist()):
        for step in range(length):
            values[episode, step] = value(critic, episode, step)
            reward = sum(float(batch.rewards[agent, episode, step]) for agent in range(spec.num_agents))
            ends = step == length - 1 and (batch.terminated[episode] or not learner.bootstrap_time_limit)
            follows = 0 if ends else learner.discount * value(target, episode, step + 1)
            errors[episode, step] = reward + follows - values[episode, step]
    return np.mean([error**2 for error in errors.values()]), errors, values


@functools.cache
def gradient_of(learner, name):
    return jax.jit(jax.grad(getattr(learner, name), has_aux=True))


def begun(learner=LEARNER, seed=0):
    """A state whose target critic differs from its critic."""
    state, other = (compiled(learner, "init")(jax.random.key(number)) for number in (seed, seed + 100))
    return state._replace(target=other.critic)


def of_batch(learner, key):
    return learner.noise(key, STEPS * EPISODES)


@pytest.mark.parametrize("learner", [LEARNER, ALONE], ids=["three agents", "one agent, bootstrapped limits"])
def test_the_losses_match_the_slow_reference(learner):
    state, batch, key = begun(learner), hand_made_batch(agents=learner.spec.num_agents), jax.random.key(2)
    _, metrics = compiled(learner, "update")(state, batch, key)
    critic_loss, errors, values = critic_slowly(learner, as_float64(state.critic), as_float64(state.target), batch)
    noise = of_batch(learner, key)
    loss, entropy, listening = actor_slowly(learner, as_float64(state.actor), batch, errors, noise)
    expected = {
        "loss": loss,
        "critic_loss": critic_loss,
        "value": np.mean(list(values.values())),
        "advantage": np.mean(np.abs(list(errors.values()))),
        "entropy": entropy,
        "listening": listening,
    }
    assert set(metrics) == {*expected, "gradient_norm"}
    assert {value.shape for value in metrics.values()} == {(1,)}
    for name, value in expected.items():
        np.testing.assert_allclose(metrics[name], [value], rtol=1e-4, atol=1e-6, err_msg=name)


def moved(tree, path, index, by):
    """The tree with one weight changed; `path` names the nested fields that lead to it."""
    if not path:
        tree = np.array(tree)
        tree[index] += by
        return tree
    return tree._replace(**{path[0]: moved(getattr(tree, path[0]), path[1:], index, by)})


def at(tree, path):
    for name in path:
        tree = getattr(tree, name)
    return tree


WEIGHTS = {
    "encoder": (("encoder_weights",), (7, 1)),
    "memory": (("gru", "hidden_weights"), (3, 9)),
    "reading upwards": (("attention", "upwards", "input_weights"), (8, 16)),
    "reading downwards": (("attention", "downwards", "hidden_bias"), (15,)),
    "gate": (("attention", "gate", "weights"), (9, 1)),
    "query": (("attention", "query"), (2, 1)),
    "key": (("attention", "key"), (2, 1)),
    "value": (("attention", "value", "weights"), (0, 1)),
    "head": (("head", "weights"), (8, 2)),
}


def test_the_actors_gradient_matches_the_slow_reference():
    learner, state, batch = LEARNER, begun(seed=3), hand_made_batch(1)
    # little noise, and gate logits that hardly differ: gates are partly open, so that all have a gradient
    noise = 0.01 * of_batch(learner, jax.random.key(4))
    gate = jax.tree.map(lambda leaf: 0.01 * leaf, state.actor.attention.gate)
    actor = state.actor._replace(attention=state.actor.attention._replace(gate=gate))
    _, (advantages, _) = gradient_of(learner, "critic_loss")(state.critic, state.target, batch)
    gradient, metrics = gradient_of(learner, "actor_loss")(actor, advantages, batch, noise)
    assert 0.2 < float(metrics["listening"]) < 0.8
    slow_actor, slow_advantages = as_float64(actor), np.asarray(advantages, np.float64).T
    for name, (path, index) in WEIGHTS.items():
        above, below = (
            actor_slowly(learner, moved(slow_actor, path, index, by), batch, slow_advantages, noise)[0]
            for by in (1e-5, -1e-5)
        )
        slope = (above - below) / 2e-5
        assert abs(slope) > 1e-7, name
        np.testing.assert_allclose(at(gradient, path)[index], slope, rtol=5e-3, atol=1e-7, err_msg=name)


def test_actor_and_critic_steps_follow_pytorchs_rmsprop_with_their_own_rates():
    state, batch, key = begun(), hand_made_batch(), jax.random.key(5)
    after, _ = compiled(IN_LEAPS, "update")(state, batch, key)
    by_critic, (advantages, _) = gradient_of(LEARNER, "critic_loss")(state.critic, state.target, batch)
    by_actor, _ = gradient_of(LEARNER, "actor_loss")(state.actor, advantages, batch, of_batch(LEARNER, key))
    for rate, gradient, before, now, squares in (
        (0.01, by_actor, state.actor, after.actor, after.actor_optimiser),
        (1.0, by_critic, state.critic, after.critic, after.critic_optimiser),
    ):
        norm = np.sqrt(sum(float(jnp.sum(leaf**2)) for leaf in jax.tree.leaves(gradient)))
        assert norm > 0.05  # so that gradients are clipped
        leaves = zip(*(jax.tree.leaves(tree) for tree in (gradient, before, now, squares)), strict=True)
        for slope, old, new, square in leaves:
            clipped = np.asarray(slope, np.float64) * 0.05 / norm
            np.testing.assert_allclose(square, 0.01 * clipped**2, rtol=1e-3, atol=1e-12)
            step = -rate * clipped / (np.sqrt(0.01 * clipped**2) + 1e-8)
            np.testing.assert_allclose(np.asarray(new) - np.asarray(old), step, rtol=2e-2, atol=1e-6)


def test_each_loss_trains_only_its_own_network():
    state, batch = begun(), hand_made_batch()
    noise = of_batch(LEARNER, jax.random.key(0))

    def actors_loss(actor, critic, target):
        _, (advantages, _) = LEARNER.critic_loss(critic, target, batch)
        return LEARNER.actor_loss(actor, advantages, batch, noise)[0]

    def critics_loss(actor, critic, target):
        del actor
        return LEARNER.critic_loss(critic, target, batch)[0]

    weights = (state.actor, state.critic, state.target)
    by_each = {
        loss: [total(tree) > 0 for tree in jax.jit(jax.grad(loss, argnums=(0, 1, 2)))(*weights)]
        for loss in (actors_loss, critics_loss)
    }
    assert by_each == {actors_loss: [True, False, False], critics_loss: [False, True, False]}


def test_the_actor_uses_the_critic_from_before_its_update():
    state, batch, key = begun(), hand_made_batch(), jax.random.key(0)
    (ours, ours_said), (theirs, theirs_said) = (
        compiled(learner, "update")(state, batch, key) for learner in (LEARNER, IN_LEAPS)
    )
    assert total(jax.tree.map(jnp.subtract, ours.critic, theirs.critic)) > 1
    jax.tree.map(np.testing.assert_array_equal, ours_said, theirs_said)


def test_the_target_critic_is_first_copied_after_the_201st_update():
    state, batch = begun(), hand_made_batch()
    before = float(state.target[-1].bias[0])
    biases = []
    for _ in range(402):
        state, _ = compiled(LEARNER, "update")(state, batch, jax.random.key(0))
        biases.append((float(state.target[-1].bias[0]), float(state.critic[-1].bias[0])))
    target, critic = np.array(biases).T
    changes = np.flatnonzero(np.diff(target, prepend=before)) + 1  # the number of the update, from 1
    assert changes.tolist() == [201, 401]
    assert target[200] == critic[200]


def test_padding_has_no_effect():
    state = begun()
    batch = hand_made_batch(0)
    mixed = with_padding_of(batch, hand_made_batch(7))
    update = compiled(LEARNER, "update")
    (ours, our_metrics), (theirs, their_metrics) = (update(state, each, jax.random.key(0)) for each in (batch, mixed))
    jax.tree.map(np.testing.assert_array_equal, (ours.actor, ours.critic), (theirs.actor, theirs.critic))
    jax.tree.map(np.testing.assert_array_equal, our_metrics, their_metrics)


def test_the_same_key_gives_the_same_update_and_another_key_other_gates():
    state, batch, update = begun(), hand_made_batch(), compiled(LEARNER, "update")
    first, again, other = (update(state, batch, jax.random.key(seed))[1] for seed in (0, 0, 1))
    assert first["listening"] == again["listening"] != other["listening"]
    assert first["loss"] == again["loss"] != other["loss"]


def codes_and_changed():
    """The first observations of all episodes, and the same with different ones for the last agent."""
    codes = hand_made_batch().codes[:, :, 0]
    return codes, codes.at[-1].set(8 - codes[-1])


def logits_with(learner, actor, codes, noise):
    """Logits of the first step [agent, env, action], with the same given noise for all gates."""
    nothing_done = jnp.full(codes.shape[:2], -1)
    memory = learner.begin(actor, jax.random.key(0), codes)
    hidden, _ = compiled(learner, "act")(actor, memory, codes, nothing_done, jax.random.key(0))
    shape = (len(codes) - 1, *codes.shape[:2], 2)
    return np.asarray(compiled(learner, "decide")(actor, hidden, jnp.broadcast_to(noise, shape))[0])


def test_open_gates_transmit_a_teammates_observation():
    actor = begun().actor
    before, after = (logits_with(LEARNER, actor, codes, ALL_OPEN) for codes in codes_and_changed())
    assert (np.abs(before - after).max(axis=-1) > 1e-4).all()


def test_closed_gates_transmit_nothing():
    actor = begun().actor
    before, after = (logits_with(LEARNER, actor, codes, ALL_SHUT) for codes in codes_and_changed())
    np.testing.assert_array_equal(before[:-1], after[:-1])
    assert (np.abs(before[-1] - after[-1]).max(axis=-1) > 1e-4).all()  # its own observation changed


def test_a_single_agent_receives_no_messages():
    state, batch = begun(ALONE), hand_made_batch(agents=1)
    heard = listen(state.actor.attention, jnp.ones((1, 5, 7)), ALONE.noise(jax.random.key(0), 5))
    assert heard.messages.tolist() == np.zeros((1, 5, 4)).tolist()
    after, metrics = compiled(ALONE, "update")(state, batch, jax.random.key(0))
    jax.tree.map(np.testing.assert_array_equal, after.actor.attention, state.actor.attention)
    assert np.isfinite(total(after))
    assert metrics["listening"].tolist() == [0.0]
    again, same = (compiled(ALONE, "update")(state, batch, jax.random.key(seed)) for seed in (0, 1))
    jax.tree.map(np.testing.assert_array_equal, again, same)  # without teammates there are no random gates


def test_acting_step_by_step_matches_the_unrolled_network():
    learner, actor, batch = LEARNER, begun().actor, hand_made_batch()
    act, decide = compiled(learner, "act"), compiled(learner, "decide")
    unrolled = compiled(learner, "remember")(actor, batch).reshape(AGENTS, STEPS, EPISODES, -1)
    memory = learner.begin(actor, jax.random.key(0), batch.codes[:, :, 0])
    last_actions = jnp.full((AGENTS, EPISODES), -1)
    for step in range(STEPS):
        key = jax.random.fold_in(jax.random.key(0), step)
        memory, logits = act(actor, memory, batch.codes[:, :, step], last_actions, key)
        np.testing.assert_allclose(memory, unrolled[:, step], atol=1e-6)
        again, _ = decide(actor, unrolled[:, step], learner.noise(key, EPISODES))
        np.testing.assert_allclose(logits, again, atol=1e-4)  # differences in gate logits are multiplied by 1/τ = 100
        last_actions = batch.actions[:, :, step].astype(jnp.int32)


def test_teammates_are_listed_in_ascending_order():
    assert teammates(3).T.tolist() == [[1, 2], [0, 2], [0, 1]]


def test_ga_comm_is_on_policy_with_logits_as_scores():
    learner = GAComm(SPEC)
    assert learner.is_on_policy
    assert learner.scores is Scores.LOGITS
    assert learner == GAComm(SPEC)
    assert hash(learner) == hash(GAComm(SPEC))


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
def test_a_policy_mixed_with_the_uniform_one_has_a_finite_gradient(epsilon):
    logits = np.array([0.5, -1.0, -300.0], np.float32)  # the last probability underflows
    mixed = mixed_log_policy(jnp.asarray(logits), epsilon)
    expected = (1 - epsilon) * softmax(logits.astype(np.float64)) + epsilon / 3
    np.testing.assert_allclose(mixed, np.log(expected), rtol=1e-5)
    gradient = jax.jacobian(mixed_log_policy)(jnp.asarray(logits), epsilon)
    assert np.isfinite(gradient).all()
    assert (np.abs(gradient).max() > 0.1) == (epsilon < 1)
