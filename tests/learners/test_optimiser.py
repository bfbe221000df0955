"""Optimisers against their formulas, decaying learning rates, and averaged weights."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from consmarl import TrainConfig, UsageError
from consmarl.learners.averaging import MOST_UPDATES, averaged_after
from consmarl.learners.iql import IQL
from consmarl.learners.optimiser import Adam, OptimiserKind, RMSprop
from consmarl.learners.qmix import QMIX
from tests.learners.slowly import SPEC, hand_made_batch


def steps(optimiser, gradients):
    """The optimiser's steps for a single parameter that gets these gradients in turn."""
    transformation = optimiser.transformation()
    state, taken = transformation.init(jnp.zeros(())), []
    for gradient in gradients:
        change, state = transformation.update(jnp.asarray(gradient), state)
        taken.append(float(change))
    return taken


def test_rmsprop_divides_by_the_root_of_a_running_mean_of_squares():
    mean, expected = 0.0, []
    for gradient in (3.0, -1.0):
        mean = 0.99 * mean + 0.01 * gradient**2
        expected.append(-0.1 * gradient / (np.sqrt(mean) + 1e-8))
    assert steps(RMSprop(learning_rate=0.1), (3.0, -1.0)) == pytest.approx(expected, rel=1e-5)


def test_adam_corrects_the_bias_of_its_first_steps():
    first, second, expected = 0.0, 0.0, []
    for number, gradient in enumerate((3.0, -1.0), start=1):
        first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2
        unbiased = first / (1 - 0.9**number), second / (1 - 0.999**number)
        expected.append(-0.1 * unbiased[0] / (np.sqrt(unbiased[1]) + 1e-8))
    assert steps(Adam(learning_rate=0.1), (3.0, -1.0)) == pytest.approx(expected, rel=1e-4)


def test_gradients_are_clipped_first():
    assert steps(RMSprop(epsilon=1.0, max_gradient_norm=0.5), (8.0,)) == steps(RMSprop(epsilon=1.0), (0.5,))


def test_the_learning_rate_decays_linearly_and_then_stays_constant():
    falling = Adam(learning_rate=0.1, final_share=0.2, anneal_updates=4)
    sizes = [-step for step in steps(falling, [1.0] * 6)]  # for a constant gradient, Adam's step is the learning rate
    assert sizes == pytest.approx([0.1, 0.08, 0.06, 0.04, 0.02, 0.02], rel=1e-4)


def test_a_constant_rate_adds_nothing_to_the_optimisers_state():
    """A schedule adds an update count to the state; the paper's optimiser has none."""
    states = [jax.tree.leaves(each.transformation().init(jnp.zeros(()))) for each in
              (RMSprop(), RMSprop(final_share=1.0, anneal_updates=9), RMSprop(final_share=0.5))]  # fmt: skip
    assert len(states[0]) == len(states[1]) < len(states[2])


def test_changing_the_optimiser_keeps_common_settings():
    rmsprop = RMSprop(learning_rate=0.3, decay=0.5, max_gradient_norm=2.0)
    assert OptimiserKind.ADAM.like(rmsprop, final_share=0.1) == Adam(0.3, 2.0, 0.1)
    assert OptimiserKind.RMSPROP.like(rmsprop, learning_rate=0.4) == RMSprop(0.4, 2.0, decay=0.5)


def test_a_run_has_the_configured_optimiser():
    config = TrainConfig(optimiser="adam", learning_rate=1e-3, learning_rate_end=0.1, episodes=4_000)
    assert config.trainer().learner.optimiser == Adam(1e-3, 10.0, 0.1, 4_000)
    papers = TrainConfig(preset="paper").trainer().learner.optimiser
    assert papers.transformation().init(0.0) == RMSprop().transformation().init(0.0)


@pytest.mark.parametrize("share", [-0.1, 1.5, float("nan")])
def test_an_invalid_final_learning_rate_is_refused(share):
    with pytest.raises(UsageError, match="learning_rate_end must"):
        TrainConfig(learning_rate_end=share)


def test_the_average_spans_a_tenth_of_all_updates_up_to_a_bound():
    old, new = jnp.asarray(0.0), jnp.asarray(1.0)
    assert float(averaged_after(old, new, jnp.asarray(0))) == 1.0  # nothing to average yet
    assert float(averaged_after(old, new, jnp.asarray(1_000))) == pytest.approx(1 / 100)
    assert float(averaged_after(old, new, jnp.asarray(10**6))) == pytest.approx(1 / MOST_UPDATES)


@pytest.mark.parametrize("kind", [IQL, QMIX])
def test_averaged_weights_are_evaluated_and_the_newest_weights_learn_and_act(kind):
    learner = kind(SPEC, hidden_size=3, averages_weights=True)
    plain = kind(SPEC, hidden_size=3)
    state, other = learner.init(jax.random.key(0)), plain.init(jax.random.key(0))
    batch = hand_made_batch()
    for number in range(3):
        before = state
        state, _ = jax.jit(learner.update)(state, batch, jax.random.key(number))
        other, _ = jax.jit(plain.update)(other, batch, jax.random.key(number))
    jax.tree.map(np.testing.assert_array_equal, learner.parameters(state), plain.parameters(other))
    expected = averaged_after(before.averaged, learner.parameters(state), before.num_updates)
    jax.tree.map(np.testing.assert_array_equal, learner.evaluated_parameters(state), expected)
    jax.tree.map(np.testing.assert_array_equal, plain.evaluated_parameters(other), plain.parameters(other))
