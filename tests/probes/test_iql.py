"""IQL on the probes: it solves each in seconds, and fails the memory probe if its hidden state is reset."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from consmarl.learners.interface import TeamSpec
from consmarl.learners.iql import IQL, TargetMemory
from consmarl.learners.optimiser import RMSprop
from consmarl.learners.td import Target
from consmarl.learners.team_networks import TeamNetworks, Weights
from consmarl.networks.drqn import step_drqn
from consmarl.training.exploration import LinearSchedule
from consmarl.training.loop import Trainer
from tests.probes.worlds import (
    ConstantValue,
    DiscountMatters,
    MemoryMatters,
    ObservationMatters,
    OppositeRewards,
    PatienceMatters,
)


def trained(world, num_rounds, learner_type=IQL, **settings):
    learner = learner_type(
        TeamSpec.of(world), hidden_size=16, target_every_updates=20, optimiser=RMSprop(learning_rate=5e-3), **settings
    )
    trainer = Trainer(
        world=world,
        learner=learner,
        epsilon=LinearSchedule(1.0, 0.1, anneal_steps=500),
        num_envs=8,
        replay_episodes=512,
        warmup_steps=0,
    )
    state, _ = trainer.run(trainer.init(0), num_rounds)
    return trainer, state


def first_values(trainer, state, cue):
    """Q-values of all agents before the first step: [agent, action]."""
    world, learner = trainer.world, trainer.learner
    codes = world.observe(world.begin(jnp.asarray(cue)))[:, None]
    parameters = learner.parameters(state.learner)
    memory = learner.begin(parameters, jax.random.key(0), codes)
    nothing_done = jnp.full((world.num_agents, 1), -1)
    return np.asarray(learner.act(parameters, memory, codes, nothing_done, jax.random.key(0))[1][:, 0])


def mean_return(trainer, state):
    parameters = trainer.learner.parameters(state.learner)
    episodes = trainer.evaluate(parameters, jax.random.key(5), 200)
    return float(episodes.batch.rewards.sum(axis=(0, 2)).mean())


def test_a_constant_value_is_learned():
    np.testing.assert_allclose(first_values(*trained(ConstantValue(), 80), cue=0), 1.0, atol=0.1)


def test_two_observations_are_distinguished():
    run = trained(ObservationMatters(), 100)
    np.testing.assert_allclose(first_values(*run, cue=0), -1.0, atol=0.15)
    np.testing.assert_allclose(first_values(*run, cue=1), 1.0, atol=0.15)


def test_a_later_reward_is_discounted():
    # the authors' target memory misses the first observation, which biases values in such a short episode
    settings = dict(discount=0.5, target_memory=TargetMemory.WHOLE_EPISODE)
    np.testing.assert_allclose(first_values(*trained(DiscountMatters(), 150, **settings), cue=1), 0.25, atol=0.06)


def test_a_time_limit_can_be_bootstrapped_through():
    run = trained(ConstantValue(), 250, discount=0.5, bootstrap_time_limit=True)
    # the value of an endless sequence of ones: 1 / (1 − γ)
    np.testing.assert_allclose(first_values(*run, cue=0), 2.0, atol=0.35)


@pytest.mark.parametrize("weights", Weights)
def test_two_agents_learn_opposite_actions(weights):
    assert mean_return(*trained(OppositeRewards(), 100, weights=weights)) == 2.0


def test_a_cue_is_remembered_over_several_steps():
    assert mean_return(*trained(MemoryMatters(), 400)) > 0.9


@dataclass(frozen=True)
class ForgetfulNetworks(TeamNetworks):
    """Networks whose hidden state is reset to zero before every step."""

    def step(self, parameters, memory, codes, last_actions):
        return super().step(parameters, jax.tree.map(jnp.zeros_like, memory), codes, last_actions)

    def unroll(self, parameters, inputs):
        empty = jnp.zeros((inputs.shape[1], self.hidden_size))
        return jax.vmap(lambda inputs_t: step_drqn(parameters, empty, inputs_t))(inputs)


@dataclass(frozen=True)
class ForgetfulIQL(IQL):
    @property
    def networks(self):
        return ForgetfulNetworks(self.spec, self.weights, self.hidden_size)


def test_a_cue_cannot_be_remembered_if_the_hidden_state_is_reset():
    assert mean_return(*trained(MemoryMatters(), 400, learner_type=ForgetfulIQL)) < 0.5


@pytest.mark.parametrize(("target", "num_rounds", "solves_it"), [
    (Target.ONE_STEP, 40, False), (Target.OPTIMISTIC, 20, True),
])  # fmt: skip
def test_a_delayed_reward_needs_multi_step_targets(target, num_rounds, solves_it):
    settings = dict(target=target, target_memory=TargetMemory.WHOLE_EPISODE)
    reached = mean_return(*trained(PatienceMatters(), num_rounds, **settings))
    assert (reached > 2.5) is solves_it  # the best possible return is 5 − 10 · 0.2 = 3
