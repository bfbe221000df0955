"""VDN's and QMIX's updates against slow reference versions: one episode, step and agent at a time."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from consmarl.learners.interface import TeamSpec
from consmarl.learners.iql import IQL, TargetMemory
from consmarl.learners.optimiser import RMSprop
from consmarl.learners.qmix import QMIX
from consmarl.learners.team_networks import Weights
from consmarl.learners.vdn import VDN
from tests.learners.slowly import (
    AGENTS,
    EPISODES,
    SPEC,
    STEPS,
    as_float64,
    compiled,
    hand_made_batch,
    inputs_slowly,
    network,
    network_slowly,
    total,
    with_padding_of,
)
from tests.learners.test_iql import loss_slowly
from tests.networks.test_mixer import mix_slowly

ALONE = TeamSpec(1, SPEC.num_actions, SPEC.observation_scale)
# an ε larger than the root it is added to: otherwise the first step would only show the sign of a gradient
CLIPPED = RMSprop(learning_rate=0.1, epsilon=0.01, max_gradient_norm=0.05)
# shared by all tests where possible, so that little has to be compiled
SETTINGS = dict(hidden_size=4, mixer_size=4, discount=0.9, target_every_updates=2, optimiser=CLIPPED)
METHODS = {
    "vdn": functools.partial(VDN, **{name: value for name, value in SETTINGS.items() if name != "mixer_size"}),
    "qmix": functools.partial(QMIX, **SETTINGS),
}
# for tests of updates; together they cover separate weights, shared weights and a mixer
LEARNERS = {"vdn": METHODS["vdn"](SPEC, weights=Weights.SEPARATE), "qmix": METHODS["qmix"](SPEC)}


def updated(learner, state, batch):
    return compiled(learner, "update")(state, batch, jax.random.key(0))


def begun(learner, seed=0):
    """An initial state with different weights for networks and targets, drawn with NumPy to avoid compiling `init`."""
    rng = np.random.default_rng(seed)
    shapes = jax.eval_shape(learner.init, jax.random.key(0))

    def drawn(leaf):
        return jnp.asarray(rng.uniform(-0.2, 0.2, leaf.shape), leaf.dtype)

    empty = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
    return empty._replace(online=jax.tree.map(drawn, shapes.online), target=jax.tree.map(drawn, shapes.target))


def assert_equal_trees(ours, theirs):
    jax.tree.map(np.testing.assert_array_equal, ours, theirs)


def is_equal(ours, theirs):
    return all(jax.tree.leaves(jax.tree.map(np.array_equal, ours, theirs)))


def test_a_team_starts_with_targets_equal_to_its_networks():
    learner = LEARNERS["qmix"]
    first, handmade = compiled(learner, "init")(jax.random.key(0)), begun(learner)
    assert_equal_trees(first.target, first.online)
    assert_equal_trees((first.optimiser, first.num_updates), (handmade.optimiser, handmade.num_updates))


def own_network(learner, agents, agent, batch, episode):
    del batch, episode
    return network(agents, 0 if learner.weights is Weights.SHARED else agent)


def values_slowly(learner, agents, batch, episode, network_of):
    """Every agent's values at every step of an episode and at its end, unrolled from its start: [agent][step]."""
    spec, rows = learner.spec, []
    for agent in range(spec.num_agents):
        weights = network_of(learner, agents, agent, batch, episode)
        hidden, values = np.zeros(learner.hidden_size), []
        for step in range(int(batch.num_steps[episode]) + 1):
            inputs = inputs_slowly(spec, batch, agent, episode, step)
            if learner.weights is Weights.SEPARATE:
                inputs = inputs[: -spec.num_agents]  # separate networks get no agent identity
            hidden, now = network_slowly(weights, hidden, inputs)
            values.append(now)
        rows.append(values)
    return rows


def state_slowly(spec, batch, episode, step):
    scale = np.array(spec.observation_scale)
    return np.concatenate([batch.codes[agent, episode, step] * scale for agent in range(spec.num_agents)])


def team_loss_slowly(learner, online, target, batch, network_of=own_network):
    """Means over all played steps of (y − Q_tot)², |y − Q_tot| and Q_tot; y = Σ r + γ Q̄_tot(s', all best actions)."""
    spec, batch = learner.spec, jax.tree.map(np.asarray, batch)
    everybody, errors, totals = range(spec.num_agents), [], []

    def mixed(mixer, values, state):
        return mix_slowly(mixer, values, state) if isinstance(learner, QMIX) else sum(values)

    for episode, length in enumerate(batch.num_steps.tolist()):
        values, target_values = (
            values_slowly(learner, networks.agents, batch, episode, network_of) for networks in (online, target)
        )
        for step in range(length):
            chosen = [values[agent][step][batch.actions[agent, episode, step]] for agent in everybody]
            judges = values if learner.double_q else target_values
            best = [target_values[agent][step + 1][np.argmax(judges[agent][step + 1])] for agent in everybody]
            ends = step == length - 1 and (batch.terminated[episode] or not learner.bootstrap_time_limit)
            goal = sum(float(batch.rewards[agent, episode, step]) for agent in everybody)
            if not ends:
                goal += learner.discount * mixed(target.mixer, best, state_slowly(spec, batch, episode, step + 1))
            totals.append(mixed(online.mixer, chosen, state_slowly(spec, batch, episode, step)))
            errors.append(goal - totals[-1])
    return {"loss": np.mean(np.square(errors)), "td_error": np.mean(np.abs(errors)), "q_value": np.mean(totals)}


VARIANTS = {
    "defaults": (SPEC, {}),
    "the target says what is best": (SPEC, dict(double_q=False)),
    "separate weights": (SPEC, dict(weights=Weights.SEPARATE)),
    "bootstrapped limits": (SPEC, dict(bootstrap_time_limit=True)),
    "one agent": (ALONE, {}),
}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("method", METHODS)
def test_the_loss_matches_the_slow_reference(method, variant):
    spec, settings = VARIANTS[variant]
    learner = METHODS[method](spec, **settings)
    state, batch = begun(learner), hand_made_batch(agents=spec.num_agents)
    loss, metrics = compiled(learner, "loss")(state.online, state.target, batch)
    expected = team_loss_slowly(learner, as_float64(state.online), as_float64(state.target), batch)
    assert set(metrics) == set(expected)
    for name, value in expected.items():
        np.testing.assert_allclose(metrics[name], value, rtol=1e-4, err_msg=name)
    assert loss == metrics["loss"]


@pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
def test_an_update_reports_the_slow_loss(learner):
    state, batch = begun(learner, 1), hand_made_batch(1)
    _, metrics = updated(learner, state, batch)
    expected = team_loss_slowly(learner, as_float64(state.online), as_float64(state.target), batch)
    assert set(metrics) == {*expected, "gradient_norm"}
    for name, value in expected.items():
        np.testing.assert_allclose(metrics[name], value, rtol=1e-4, err_msg=name)


@pytest.mark.parametrize("method", METHODS)
def test_double_q_changes_the_loss(method):
    ours, theirs = (METHODS[method](SPEC, double_q=double_q) for double_q in (True, False))
    online, target = map(as_float64, begun(ours)[:2])
    losses = [team_loss_slowly(learner, online, target, hand_made_batch())["loss"] for learner in (ours, theirs)]
    assert abs(losses[0] / losses[1] - 1) > 1e-2  # otherwise the variants above would not test it


def slope(loss, tree, direction, by=1e-7):
    """The directional derivative of the slow loss, by central differences."""
    above, below = (
        loss(jax.tree.map(lambda leaf, way, sign=sign: leaf + sign * by * way, tree, direction)) for sign in (1, -1)
    )
    return (above - below) / (2 * by)


def no_direction(tree):
    return jax.tree.map(np.zeros_like, tree)


def weight_alone(tree, pick, index):
    """A direction in which only one weight moves; `pick` returns its array."""
    direction = no_direction(tree)
    pick(direction)[index] = 1
    return direction


def part_alone(tree, pick, rng):
    """A random direction in which only the weights of one part of the tree move."""
    direction = no_direction(tree)
    for leaf in jax.tree.leaves(pick(direction)):
        leaf[...] = rng.normal(size=leaf.shape)
    return direction


def norm(tree):
    return np.sqrt(sum(np.sum(np.square(leaf, dtype=np.float64)) for leaf in jax.tree.leaves(tree)))


def clipped_step(gradient):
    """The first step that PyTorch takes with `CLIPPED` for a gradient that is already clipped."""
    return -0.1 * gradient / (np.sqrt(0.01 * gradient**2) + 0.01)


def gradient_behind(step):
    """The clipped gradient that leads to such a step."""
    return -np.sign(step) * 0.01 * np.abs(step) / (0.1 - 0.1 * np.abs(step))


OF_AGENTS = {
    "encoder": (lambda networks: networks.agents.encoder_weights, (0, 5, 1)),
    "memory": (lambda networks: networks.agents.gru.input_weights, (0, 1, 10)),
    "head": (lambda networks: networks.agents.head_weights, (0, 2, 1)),
}
OF_MIXER = {
    "first weights of the mix": (lambda networks: networks.mixer.from_state.weights, (11, 5)),
    "second weights of the mix": (lambda networks: networks.mixer.from_state.weights, (11, 19)),
    "last bias of the mix": (lambda networks: networks.mixer.last_bias.bias, (0,)),
}


def test_the_gradient_can_be_recovered_from_a_step():
    gradient = np.array([-0.05, -1e-4, 0.0, 0.03])
    np.testing.assert_allclose(gradient_behind(clipped_step(gradient)), gradient)


def steps_taken(state, after):
    return jax.tree.map(np.subtract, as_float64(after.online), as_float64(state.online))


def along(gradient, direction):
    return sum(jax.tree.leaves(jax.tree.map(lambda leaf, way: np.sum(leaf * way), gradient, direction)))


@pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
def test_a_step_follows_the_slow_gradient_with_one_norm_for_agents_and_mixer(learner):
    has_mixer = isinstance(learner, QMIX)
    state, batch = begun(learner, 3), hand_made_batch(1)
    after, metrics = updated(learner, state, batch)
    online, target = as_float64(state.online), as_float64(state.target)
    steps, clipping = steps_taken(state, after), 0.05 / float(metrics["gradient_norm"])
    assert clipping < 1  # so that gradients are clipped

    def clipped_loss(networks):
        return clipping * team_loss_slowly(learner, networks, target, batch)["loss"]

    gradient = jax.tree.map(gradient_behind, steps)
    np.testing.assert_allclose(norm(gradient), 0.05, rtol=1e-3)
    rng = np.random.default_rng(0)
    for part in ("agents", "mixer") if has_mixer else ("agents",):
        direction = part_alone(online, lambda networks, part=part: getattr(networks, part), rng)
        steepness = slope(clipped_loss, online, direction)
        np.testing.assert_allclose(along(gradient, direction), steepness, rtol=5e-3, err_msg=part)
    for name, (pick, index) in (OF_AGENTS | (OF_MIXER if has_mixer else {})).items():
        steepness = slope(clipped_loss, online, weight_alone(online, pick, index))
        assert abs(steepness) > 1e-5, name  # large enough to compare
        np.testing.assert_allclose(pick(steps)[index], clipped_step(steepness), rtol=5e-3, err_msg=name)


@pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
def test_padding_has_no_effect(learner):
    batch = hand_made_batch(0)
    batches = (batch, with_padding_of(batch, hand_made_batch(7)))
    ours, theirs = (updated(learner, begun(learner), each) for each in batches)
    assert_equal_trees(ours, theirs)


def updates_that_change_targets(learner, batch, num_updates):
    """The numbers of these updates, from 1; whenever targets change, they must equal the online networks."""
    state, numbers = begun(learner), []
    for number in range(1, num_updates + 1):
        after, _ = updated(learner, state, batch)
        assert not is_equal(after.online, state.online)
        if not is_equal(after.target, state.target):
            assert_equal_trees(after.target, after.online)
            numbers.append(number)
        state = after
    return numbers


@pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
def test_targets_are_copied_when_due(learner):
    # every 2 updates as the paper's runs count them, where 200 means after the 201st, 401st, … update
    assert updates_that_change_targets(learner, hand_made_batch(), 6) == [3, 5]


def test_targets_get_no_gradient():
    learner, batch = LEARNERS["qmix"], hand_made_batch()
    state = begun(learner)
    gradient, _ = jax.jit(jax.grad(learner.loss, argnums=1, has_aux=True))(state.online, state.target, batch)
    assert total(gradient) == 0


def test_separate_agents_learn_from_each_others_rewards():
    learner, batch = LEARNERS["vdn"], hand_made_batch(0)
    changed = batch._replace(rewards=batch.rewards.at[1].add(1.0))
    ours, theirs = (updated(learner, begun(learner), each)[0].online.agents.head_bias for each in (batch, changed))
    assert [bool((ours[agent] == theirs[agent]).all()) for agent in range(AGENTS)] == [False] * AGENTS


def test_vdn_with_one_agent_equals_iql():
    learner, batch = METHODS["vdn"](ALONE, double_q=False), hand_made_batch(agents=1)
    whole = TargetMemory.WHOLE_EPISODE
    independent = IQL(ALONE, weights=Weights.SHARED, hidden_size=4, discount=0.9, target_memory=whole)
    state = begun(learner)
    fast, _ = compiled(learner, "loss")(state.online, state.target, batch)
    networks = (network(each.agents, 0) for each in (state.online, state.target))
    np.testing.assert_allclose(fast, loss_slowly(independent, *networks, batch, 0), rtol=1e-4)


def values_while_acting(learner, parameters, memory, batch):
    """The values that agents act on when the batch's episodes are replayed: [agent, step, episode, action]."""
    last_actions, act, rows = jnp.full(batch.actions.shape[:2], -1), jax.jit(learner.act), []
    for step in range(STEPS):
        memory, values = act(parameters, memory, batch.codes[:, :, step], last_actions, jax.random.key(step))
        last_actions = batch.actions[:, :, step].astype(jnp.int32)
        rows.append(values)
    return np.stack(rows, axis=1)


@pytest.mark.parametrize("weights", Weights)
def test_acting_step_by_step_matches_the_unrolled_network(weights):
    learner, batch = METHODS["vdn"](SPEC, weights=weights), hand_made_batch()
    parameters = learner.parameters(begun(learner))
    memory = learner.begin(parameters, jax.random.key(0), batch.codes[:, :, 0])
    unrolled = jax.jit(learner.action_values)(parameters, batch)
    assert unrolled.shape == (AGENTS, STEPS + 1, EPISODES, SPEC.num_actions)
    acted = values_while_acting(learner, parameters, memory, batch)
    np.testing.assert_allclose(acted, unrolled[:, :-1], atol=1e-5)
