"""The training loop supports learners unlike IQL: on-policy, with messages while acting, and with a team critic."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

import consmarl
from consmarl.learners.interface import Learner, TeamSpec
from consmarl.training.loop import Trainer

WORLD = consmarl.make("pgm-3ag", grid=(3, 4), view=(3, 3), episode_limit=6)


@dataclass(frozen=True)
class TalkingActorCritic(Learner):
    """Scores use an agent's own observation and the mean of all; an update only fits a critic to the team's return."""

    spec: TeamSpec
    is_on_policy: bool = True

    def init(self, key):
        shape = (2 * self.spec.observation_size, self.spec.num_actions)
        return {
            "actor": jax.random.normal(key, shape) * 0.1,
            "critic": jnp.zeros(self.spec.num_agents * self.spec.observation_size),
            "seen": jnp.zeros(2, jnp.int32),  # number of updates, and of episodes in the last one
        }

    def parameters(self, state):
        return {"actor": state["actor"]}

    def begin(self, parameters, key, codes):
        del parameters
        return jax.random.normal(key, codes.shape[:2])  # memory can be of any type

    def act(self, parameters, memory, codes, last_actions, key):
        del last_actions, key
        own = self.spec.observations(codes)
        message = jnp.broadcast_to(own.mean(axis=0, keepdims=True), own.shape)
        return memory + 1, jnp.concatenate([own, message], axis=-1) @ parameters["actor"]

    def update(self, state, batch, key):
        del key
        team = self.spec.observations(batch.codes[:, :, 0]).swapaxes(0, 1).reshape(len(batch.num_steps), -1)
        returns = batch.rewards.sum(axis=(0, 2))
        loss, gradient = jax.value_and_grad(lambda critic: jnp.mean((team @ critic - returns) ** 2))(state["critic"])
        seen = jnp.array([state["seen"][0] + 1, len(batch.num_steps)])
        return state | {"critic": state["critic"] - 0.01 * gradient, "seen": seen}, {"critic_loss": loss}


def test_an_on_policy_learner_gets_each_new_episode_once():
    learner = TalkingActorCritic(TeamSpec.of(WORLD))
    trainer = Trainer(world=WORLD, learner=learner, num_envs=3, warmup_steps=10**6)
    state, report = trainer.run(trainer.init(0), 5)
    assert state.learner["seen"].tolist() == [5, 3]
    assert report.has_learned.all()
    assert report.learning["critic_loss"].shape == (5, 1)
    assert state.replay.episodes.codes.shape[1] == 3  # replay keeps only the episodes of one round
    assert float(jnp.abs(state.learner["critic"]).sum()) > 0
    np.testing.assert_array_equal(report.num_steps.shape, (5, 3))


def test_the_policy_of_an_on_policy_learner_can_be_evaluated():
    learner = TalkingActorCritic(TeamSpec.of(WORLD))
    trainer = Trainer(world=WORLD, learner=learner, num_envs=3)
    state = trainer.init(1)
    # whatever an agent sees, it prefers action 2
    parameters = jax.tree.map(lambda actor: jnp.zeros_like(actor).at[:, 2].set(1.0), learner.parameters(state.learner))
    episodes = trainer.evaluate(parameters, jax.random.key(0), 7)
    assert episodes.batch.num_steps.shape == (7,)
    assert (episodes.batch.num_steps >= 1).all()
    is_played = np.arange(WORLD.episode_limit) < np.asarray(episodes.batch.num_steps)[:, None]
    assert (np.asarray(episodes.batch.actions)[:, is_played] == 2).all()
