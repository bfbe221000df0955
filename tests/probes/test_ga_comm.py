"""GA-Comm on the probes, and on one that only agents that communicate their observations can solve."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from consmarl.learners.ga_comm import GAComm
from consmarl.learners.interface import TeamSpec
from consmarl.learners.iql import IQL
from consmarl.learners.optimiser import RMSprop
from consmarl.learners.rewards import RewardOf
from consmarl.training.exploration import EpsilonGreedy, LinearSchedule, SampledPolicy
from consmarl.training.loop import Trainer
from tests.probes.worlds import ConstantValue, OppositeRewards, Probe


@dataclass(frozen=True)
class CueMatters(Probe):
    """+1 for the action that the visible cue names, −1 for the other."""

    def rewards(self, state, actions):
        return jnp.where(actions == state.cue, 1, -1)


@dataclass(frozen=True)
class MessageMatters(Probe):
    """Two agents: the first sees the cue, the second has to act on it; each gets half of the team's reward."""

    num_agents: int = 2

    def observe(self, state):
        return jnp.stack([state.cue + 1, jnp.zeros_like(state.cue)])[:, None].astype(jnp.uint8)

    def rewards(self, state, actions):
        return jnp.full(2, jnp.where(actions[1] == state.cue, 0.5, -0.5))


def trained(world, learner, exploration, num_rounds):
    trainer = Trainer(
        world=world,
        learner=learner,
        exploration=exploration,
        epsilon=LinearSchedule(0.5, 0.02, anneal_steps=4_000),
        num_envs=8,
        replay_episodes=512,
        warmup_steps=0,
    )
    state, report = trainer.run(trainer.init(0), num_rounds)
    return trainer, state, report


def trained_to_talk(world, num_rounds=400, critic_learning_rate=1e-2):
    learner = GAComm(
        TeamSpec.of(world),
        hidden_size=16,
        attention_size=8,
        critic_size=16,
        target_every_updates=20,
        optimiser=RMSprop(learning_rate=2e-3),
        critic_learning_rate=critic_learning_rate,
    )
    return trained(world, learner, SampledPolicy(), num_rounds)


def mean_return(trainer, state, _report):
    parameters = trainer.learner.parameters(state.learner)
    episodes = trainer.evaluate(parameters, jax.random.key(5), 200)
    return float(episodes.batch.rewards.sum(axis=(0, 2)).mean())


def test_the_critic_learns_a_constant_value():
    _, _, report = trained_to_talk(ConstantValue(), critic_learning_rate=2e-3)
    np.testing.assert_allclose(report.learning["value"][-20:], 1.0, atol=0.05)
    assert float(report.learning["advantage"][-20:].max()) < 0.1


def test_a_visible_cue_is_used():
    assert mean_return(*trained_to_talk(CueMatters())) == 1.0


def test_two_agents_learn_opposite_actions():
    assert mean_return(*trained_to_talk(OppositeRewards())) == 2.0


def test_a_cue_that_only_a_teammate_sees_is_used():
    assert mean_return(*trained_to_talk(MessageMatters())) > 0.8


def test_independent_learners_cannot_use_a_cue_that_only_a_teammate_sees():
    world = MessageMatters()
    settings = dict(hidden_size=16, target_every_updates=20, optimiser=RMSprop(learning_rate=5e-3))
    learner = IQL(TeamSpec.of(world), reward_of=RewardOf.TEAM, **settings)
    assert mean_return(*trained(world, learner, EpsilonGreedy(), num_rounds=200)) < 0.3
