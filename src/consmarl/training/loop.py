"""The compiled loop: play, store, learn, in chunks between which the shell reports, evaluates and saves.

A chunk always ends between episodes, so nothing of an episode under way has to be kept. Keys are derived from the
run's key and the number of the round, so a resumed run draws what an uninterrupted one would have drawn.
"""

import functools
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from consmarl.environments.interface import Environment
from consmarl.learners.interface import AnyLearner
from consmarl.training.exploration import EpsilonGreedy, Exploration, Greedy, LinearSchedule
from consmarl.training.learning import LearningPhase
from consmarl.training.replay import Replay, ReplayState
from consmarl.training.rollout import Episodes, play_episodes


class TrainState(NamedTuple):
    """Everything that the future of a run depends on."""

    learner: Any
    replay: ReplayState
    key: jax.Array
    num_rounds: jax.Array  # int32
    num_env_steps: jax.Array  # int32


class RoundReport(NamedTuple):
    """What a round tells the outside."""

    returns: jax.Array  # float32 [env, agent], sums of rewards
    num_steps: jax.Array  # int32 [env]
    counters: Any  # [env, …]
    epsilon: jax.Array
    learning: dict[str, jax.Array]  # [update, network]
    has_learned: jax.Array  # bool [update]


@dataclass(frozen=True)
class Trainer:
    """A run's parts. One round plays `num_envs` episodes and then learns as many times.

    With `num_envs = 1` events come in the paper's order: one episode, one update.
    """

    world: Environment[Any, Any, Any]
    learner: AnyLearner
    exploration: Exploration = field(default_factory=EpsilonGreedy)
    epsilon: LinearSchedule = field(default_factory=LinearSchedule)
    num_envs: int = 4
    batch_episodes: int = 32
    replay_episodes: int = 10_000
    warmup_steps: int = 5_000  # environment steps that must be exceeded before learning begins

    @property
    def replay(self) -> Replay:
        """The ring, rounded up to a multiple of what is added at once."""
        per_round = self.num_envs
        capacity = per_round if self.learner.is_on_policy else -(-self.replay_episodes // per_round) * per_round
        return Replay(
            num_agents=self.world.num_agents,
            episode_limit=self.world.episode_limit,
            observation_size=self.world.observation_size,
            code_dtype=self.world.observation_dtype,
            capacity=capacity,
        )

    @property
    def learning(self) -> LearningPhase:
        """What follows the playing of episodes."""
        return LearningPhase(self.learner, self.replay, self.batch_episodes, self.warmup_steps)

    def init(self, seed: int) -> TrainState:
        """Return the state before the first episode."""
        key_weights, key_run = jax.random.split(jax.random.key(seed))
        zero = jnp.zeros((), jnp.int32)
        return TrainState(self.learner.init(key_weights), self.replay.init(), key_run, zero, jnp.copy(zero))

    def run(self, state: TrainState, num_rounds: int) -> tuple[TrainState, RoundReport]:
        """Play and learn for so many rounds; the state that is handed in is used up."""
        return _run(self, num_rounds, state)

    def evaluate(self, parameters: Any, key: jax.Array, num_episodes: int) -> Episodes:
        """Play greedily, without exploration or sharing."""
        return _evaluate(self.world, self.learner, num_episodes, parameters, key)

    def _round(self, state: TrainState) -> tuple[TrainState, RoundReport]:
        key_round = jax.random.fold_in(state.key, state.num_rounds)
        key_play, key_learn = jax.random.split(key_round)
        steps_before = state.num_env_steps + self.num_envs * jnp.arange(self.world.episode_limit)
        epsilons = self.epsilon(steps_before)
        parameters = self.learner.parameters(state.learner)
        episodes = play_episodes(
            self.world, self.learner, self.exploration, parameters, epsilons, key_play, self.num_envs
        )
        replay, learned = self.learning.store_and_learn(state.learner, state.replay, episodes.batch, key_learn)
        report = RoundReport(
            returns=episodes.batch.rewards.sum(axis=2).T,
            num_steps=episodes.batch.num_steps,
            counters=episodes.counters,
            epsilon=epsilons[0],
            learning=learned.metrics,
            has_learned=learned.has_learned,
        )
        num_env_steps = state.num_env_steps + episodes.batch.num_steps.sum()
        return TrainState(learned.learner, replay, state.key, state.num_rounds + 1, num_env_steps), report


@functools.partial(jax.jit, static_argnums=(0, 1), donate_argnums=2)
def _run(trainer: Trainer, num_rounds: int, state: TrainState) -> tuple[TrainState, RoundReport]:
    return jax.lax.scan(lambda carry, _: trainer._round(carry), state, length=num_rounds)


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def _evaluate(
    world: Environment[Any, Any, Any], learner: AnyLearner, num_episodes: int, parameters: Any, key: jax.Array
) -> Episodes:
    no_epsilon = jnp.zeros(world.episode_limit)
    return play_episodes(world, learner, Greedy(), parameters, no_epsilon, key, num_episodes)
