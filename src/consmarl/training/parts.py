"""A run's parts, whether its world steps in compiled code or in Python."""

import functools
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from consmarl.learners.interface import AnyLearner
from consmarl.training.exploration import EpsilonGreedy, Exploration, LinearSchedule
from consmarl.training.learning import LearningPhase
from consmarl.training.replay import Replay, ReplayState


class TrainState(NamedTuple):
    """Everything that the future of a run depends on.

    Chunks end between episodes, so nothing of an episode under way (memories, an exploring agent's run) is in it.
    """

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


@dataclass(frozen=True, kw_only=True)
class RunParts:
    """What every run is made of. One round plays `num_envs` episodes and then learns as many times."""

    world: Any
    learner: AnyLearner
    exploration: Exploration = field(default_factory=EpsilonGreedy)
    epsilon: LinearSchedule = field(default_factory=LinearSchedule)
    num_envs: int = 1
    batch_episodes: int = 32
    replay_episodes: int = 10_000
    warmup_steps: int = 5_000  # environment steps that must be exceeded before learning begins

    @property
    def replay(self) -> Replay:
        """The ring, rounded up to a multiple of what is added at once."""
        rounds = 1 if self.learner.is_on_policy else -(-self.replay_episodes // self.num_envs)
        return Replay(
            num_agents=self.world.num_agents,
            episode_limit=self.world.episode_limit,
            observation_size=self.world.observation_size,
            code_dtype=self.world.observation_dtype,
            capacity=rounds * self.num_envs,
        )

    @property
    def learning(self) -> LearningPhase:
        """What follows the playing of episodes."""
        return LearningPhase(self.learner, self.replay, self.batch_episodes, self.warmup_steps)

    def init(self, seed: int) -> TrainState:
        """Return the state before the first episode."""
        key_weights, key_run = jax.random.split(jax.random.key(seed))
        zero = jnp.zeros((), jnp.int32)
        learner_state = _init_learner(self.learner, key_weights)
        return TrainState(learner_state, self.replay.init(), key_run, zero, jnp.copy(zero))


@functools.partial(jax.jit, static_argnums=0)
def _init_learner(learner: AnyLearner, key: jax.Array) -> Any:
    """One compilation instead of one for each operation, which would take seconds."""
    return learner.init(key)
