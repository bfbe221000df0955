"""Learning targets: values worked out by hand, a slow reference version, and invariants."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consmarl.learners.interface import EpisodeBatch, TeamSpec
from consmarl.learners.iql import IQL
from consmarl.learners.td import Target, has_next, lambda_targets, step_mask
from consmarl.learners.team_value import ValueNetworks
from consmarl.learners.temporal_difference import Following, following_best
from consmarl.learners.vdn import VDN

STEPS, EPISODES, ACTIONS = 6, 3, 3
SPEC = TeamSpec(1, ACTIONS, (1.0,))


def slowly(kind, rewards, values, is_best, num_steps, terminated, trace_decay, discount, bootstrap_time_limit=False):
    """G_t by its formula, backwards, one episode and one step at a time."""
    targets = np.zeros(rewards.shape)
    for episode, length in enumerate(num_steps):
        for step in reversed(range(length)):
            is_last = step == length - 1
            if is_last and (terminated[episode] or not bootstrap_time_limit):
                targets[step, episode] = rewards[step, episode]
                continue
            value = values[step, episode]
            following = targets[step + 1, episode] if not is_last else None
            keeps = (
                following is not None
                and kind is not Target.ONE_STEP
                and (is_best[step, episode] or (kind is Target.OPTIMISTIC and following > value))
            )
            trace = trace_decay if keeps else 0.0
            mixed = (1 - trace) * value + (trace * following if keeps else 0.0)
            targets[step, episode] = rewards[step, episode] + discount * mixed
    return targets


def learner_of(kind, trace_decay=0.8, discount=0.9, **settings):
    return IQL(SPEC, target=kind, trace_decay=trace_decay, discount=discount, **settings)


def episodes(num_steps, terminated):
    shape = (1, len(num_steps), STEPS)
    return EpisodeBatch(
        codes=np.zeros((*shape[:2], STEPS + 1, 1), np.uint8),
        actions=np.zeros(shape, np.uint8),
        rewards=np.zeros(shape, np.float32),
        num_steps=np.asarray(num_steps),
        terminated=np.asarray(terminated),
        epsilon=np.zeros(shape[1:], np.float32),
    )


@st.composite
def situations(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    num_steps = draw(st.lists(st.integers(1, STEPS), min_size=EPISODES, max_size=EPISODES))
    terminated = draw(st.lists(st.booleans(), min_size=EPISODES, max_size=EPISODES))
    rewards, values = (rng.normal(size=(STEPS, EPISODES)).astype(np.float32) for _ in range(2))
    return rewards, values, rng.random((STEPS, EPISODES)) < 0.5, num_steps, terminated


def targets_of(learner, rewards, values, is_best, num_steps, terminated):
    following = Following(jnp.asarray(values), jnp.asarray(is_best), jnp.asarray(0.0))
    return np.asarray(_targets(learner, jnp.asarray(rewards), following, episodes(num_steps, terminated)))


@functools.partial(jax.jit, static_argnums=0)
def _targets(learner, rewards, following, batch):
    return learner.targets(rewards, following, batch)


def played(targets, num_steps):
    return np.concatenate([targets[:length, episode] for episode, length in enumerate(num_steps)])


@pytest.mark.parametrize("kind", Target)
@given(situation=situations(), trace_decay=st.sampled_from([0.0, 0.7, 1.0]), bootstrap=st.booleans())
@settings(max_examples=40)
def test_targets_match_the_slow_reference(kind, situation, trace_decay, bootstrap):
    learner = learner_of(kind, trace_decay, bootstrap_time_limit=bootstrap)
    fast = targets_of(learner, *situation)
    slow = slowly(kind, *situation, trace_decay, 0.9, bootstrap)
    np.testing.assert_allclose(played(fast, situation[3]), played(slow, situation[3]), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", [Target.WATKINS, Target.OPTIMISTIC])
@given(situation=situations())
@settings(max_examples=20)
def test_without_a_trace_targets_are_one_step_targets(kind, situation):
    one_step = targets_of(learner_of(Target.ONE_STEP), *situation)
    traceless = targets_of(learner_of(kind, 0.0), *situation)
    np.testing.assert_allclose(played(traceless, situation[3]), played(one_step, situation[3]), rtol=1e-6)


@pytest.mark.parametrize("kind", [Target.WATKINS, Target.OPTIMISTIC])
@given(situation=situations())
@settings(max_examples=20)
def test_the_target_of_a_greedy_episode_with_full_trace_is_its_return(kind, situation):
    rewards, values, _, num_steps, terminated = situation
    everywhere = np.ones((STEPS, EPISODES), bool)
    targets = targets_of(learner_of(kind, 1.0), rewards, values, everywhere, num_steps, terminated)
    for episode, length in enumerate(num_steps):
        expected = sum(0.9**step * rewards[step, episode] for step in range(length))
        np.testing.assert_allclose(targets[0, episode], expected, rtol=1e-4, atol=1e-5)


@given(situation=situations(), trace_decay=st.sampled_from([0.0, 0.7, 1.0]))
@settings(max_examples=40)
def test_optimistic_targets_are_never_below_those_of_watkins(situation, trace_decay):
    hopeful, careful = (
        played(targets_of(learner_of(kind, trace_decay), *situation), situation[3])
        for kind in (Target.OPTIMISTIC, Target.WATKINS)
    )
    assert (hopeful >= careful - 1e-5).all()


@pytest.mark.parametrize("kind", Target)
@given(situation=situations())
@settings(max_examples=20)
def test_padding_changes_nothing(kind, situation):
    rewards, values, is_best, num_steps, terminated = situation
    is_played = np.arange(STEPS)[:, None] < np.array(num_steps)[None, :]
    other = [np.where(is_played, rewards, 7.0), np.where(is_played, values, -9.0), np.where(is_played, is_best, True)]
    ours = targets_of(learner_of(kind), *situation)
    theirs = targets_of(learner_of(kind), *other, num_steps, terminated)
    np.testing.assert_array_equal(played(ours, num_steps), played(theirs, num_steps))


def test_traces_match_values_worked_out_by_hand():
    # one episode of three steps: −1, −1, then 10; γ = 1, λ = 0.5; the second action was not the best one
    rewards, values = jnp.array([[-1.0], [-1.0], [10.0]]), jnp.array([[2.0], [4.0], [0.0]])
    goes_on, mask = jnp.array([[1.0], [1.0], [0.0]]), step_mask(jnp.array([3]), 3)
    is_best = jnp.array([[False], [True], [True]])
    arguments = (rewards, goes_on, values, has_next(mask) & is_best)
    watkins = lambda_targets(*arguments, jnp.zeros((3, 1)), 0.5, 1.0)
    assert watkins[:, 0].tolist() == [1.0, 6.0, 10.0]  # −1 + 2, −1 + (4 + 10) / 2, 10
    optimistic = lambda_targets(*arguments, has_next(mask) * 1.0, 0.5, 1.0)
    assert optimistic[:, 0].tolist() == [3.0, 6.0, 10.0]  # −1 + (2 + 6) / 2: the return 6 exceeds the value 2


def test_following_best_finds_the_best_value_and_whether_it_was_taken():
    values = jnp.array([[[1.0, 5.0]], [[3.0, 2.0]], [[0.0, 1.0]]])
    actions = jnp.array([[0], [1], [1]])
    following = following_best(values, actions)
    assert following.values[:, 0].tolist() == [5.0, 3.0, 1.0]
    assert following.is_best[:2, 0].tolist() == [True, False]
    doubled = following_best(values, actions, online_values_t=-values)
    assert doubled.values[:, 0].tolist() == [1.0, 2.0, 0.0]
    assert doubled.is_best[:2, 0].tolist() == [False, True]


def test_an_update_learns_towards_the_targets():
    """With a long trace, a reward at the end of an episode moves the values of all its steps."""
    batch = episodes([STEPS], [True])._replace(rewards=jnp.zeros((1, 1, STEPS)).at[0, 0, -1].set(10.0))
    losses = {}
    for kind in Target:
        learner = learner_of(kind, 1.0, hidden_size=4)
        state = jax.eval_shape(learner.init, jax.random.key(0))
        # with zero weights all values are 0, and the best action is the first one, which is the one taken
        state = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), state)
        _, metrics = jax.jit(learner.update)(state, batch, jax.random.key(0))
        losses[kind] = float(metrics["loss"][0])
    assert losses[Target.ONE_STEP] == pytest.approx(10.0**2 / STEPS)
    returns = sum((10 * 0.9**step) ** 2 for step in range(STEPS))
    assert losses[Target.WATKINS] == losses[Target.OPTIMISTIC] == pytest.approx(returns / STEPS)


class Told(VDN):
    """A team that gets its action values directly instead of from networks."""

    def action_values(self, agents, batch):
        del batch
        return agents


def test_a_team_keeps_its_trace_only_if_every_agent_acts_greedily():
    learner = Told(TeamSpec(2, 2, (1.0,)), double_q=False)
    values = (
        jnp.zeros((2, 4, 1, 2)).at[:, :, :, 1].set(1.0)
    )  # [agent, step, episode, action]: action 1 is best for every agent
    actions = jnp.array(
        [[[0], [1], [1]], [[0], [1], [0]]]
    )  # [agent, step, episode]: in the last step agent 1 does not take it
    following = learner._following(ValueNetworks(values, ()), values[:, 1:], actions, jnp.zeros((3, 1, 2)), None)
    assert following.values[:, 0].tolist() == [2.0, 2.0, 2.0]
    assert following.is_best[:2, 0].tolist() == [True, False]


SETTLING = dict(settle_after=0.5, trace_tolerance=0.5, run_updates=100)


@functools.cache
def first_state(learner):
    return jax.jit(learner.init)(jax.random.key(0))


def state_after(learner, num_updates):
    return first_state(learner)._replace(num_updates=jnp.asarray(num_updates))


def test_a_learner_settles_gradually_after_a_share_of_its_run():
    learner = learner_of(Target.OPTIMISTIC, **SETTLING)
    settled = [float(learner.settled(state_after(learner, number))) for number in (0, 50, 75, 100, 120)]
    np.testing.assert_allclose(settled, [0, 0, 0.5, 1, 1])
    plain = learner_of(Target.OPTIMISTIC)
    assert plain.settled(state_after(plain, 10)) is None


def some_episodes(seed):
    rng = np.random.default_rng(seed)
    values_t = jnp.asarray(rng.normal(size=(STEPS, EPISODES, ACTIONS)))
    actions = jnp.asarray(rng.integers(0, ACTIONS, (STEPS, EPISODES)))
    rewards = jnp.asarray(rng.normal(size=(STEPS, EPISODES)))
    return rewards, following_best(values_t, actions), episodes([6, 4, 1], [0, 1, 1])


@pytest.mark.parametrize("seed", range(3))
def test_settling_turns_optimistic_targets_into_those_of_watkins(seed):
    rewards, following, batch = some_episodes(seed)
    settling = learner_of(Target.OPTIMISTIC, **SETTLING | {"trace_tolerance": 0.0})
    for settled, kind in ((0.0, Target.OPTIMISTIC), (1.0, Target.WATKINS)):
        expected = learner_of(kind).targets(rewards, following, batch)
        np.testing.assert_array_equal(settling.targets(rewards, following, batch, jnp.asarray(settled)), expected)


@pytest.mark.parametrize("seed", range(3))
def test_after_settling_actions_almost_as_good_as_the_best_keep_the_trace(seed):
    rewards, following, batch = some_episodes(seed)
    settling = learner_of(Target.WATKINS, **SETTLING)
    for settled in (0.0, 0.4, 1.0):
        near = following._replace(is_best=following.is_best | (following.shortfall <= 0.5 * settled))
        expected = learner_of(Target.WATKINS).targets(rewards, near, batch)
        np.testing.assert_array_equal(settling.targets(rewards, following, batch, jnp.asarray(settled)), expected)


def test_the_shortfall_is_measured_with_the_network_that_chooses():
    target_t, online_t = jnp.array([[[5.0, 0.0]]] * 2), jnp.array([[[0.9, 1.0]]] * 2)
    actions = jnp.array([[0], [0]])
    assert following_best(target_t, actions).shortfall[0, 0] == 0
    following = following_best(target_t, actions, online_t)
    assert following.shortfall[0, 0] == pytest.approx(0.1)
    assert following.values[0, 0] == 0.0  # the target network's value of the action that the online network rates best
