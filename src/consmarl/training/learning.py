"""The learning half of a round: updates for each episode just played, once replay holds enough episodes."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from consmarl.learners.interface import AnyLearner, EpisodeBatch, Metrics
from consmarl.training.coverage import CoverageBonus
from consmarl.training.mirroring import Mirroring
from consmarl.training.replay import Replay, ReplayState


def among(agents: tuple[int, ...], num_agents: int) -> NDArray[np.bool_]:
    """Return which agents of a team are among these: bool [agent]."""
    return np.isin(np.arange(num_agents), agents)


class Learned(NamedTuple):
    """The learner's state after its updates, and their metrics."""

    learner: Any
    metrics: Metrics  # [update, …]
    has_learned: jax.Array  # bool [update]


@dataclass(frozen=True)
class LearningPhase:
    """Store episodes and learn."""

    learner: AnyLearner
    replay: Replay
    batch_episodes: int
    warmup_steps: int
    mirroring: Mirroring
    coverage: CoverageBonus
    experts: tuple[int, ...] = ()  # agents that do not learn
    updates_per_episode: int = 1

    def store_and_learn(
        self, learner_state: Any, replay: ReplayState, episodes: EpisodeBatch, key: jax.Array
    ) -> tuple[ReplayState, Learned]:
        """Add episodes to the replay buffer, then do each one's updates; on-policy learners do one update for all."""
        before = learner_state
        num_before, num_new = replay.num_added, len(episodes.num_steps)
        replay = self.replay.add(replay, episodes)
        if self.learner.is_on_policy:
            learner_state, metrics = self.learner.update(learner_state, episodes, key)
            once = jax.tree.map(lambda value: value[None], metrics)
            return replay, Learned(learner_state, once, jnp.ones(1, bool))

        def turn(learner_state: Any, now: tuple[jax.Array, jax.Array]) -> tuple[Any, Any]:
            number, key_update = now
            num_stored = jnp.minimum(num_before + number + 1, self.replay.capacity)
            can_learn = num_stored * self.replay.episode_limit > self.warmup_steps

            def learn_once(learner_state: Any, key: jax.Array, num_stored: jax.Array) -> tuple[Any, Metrics]:
                key_sample, key_update = jax.random.split(key)
                batch = self.replay.sample(replay, key_sample, self.batch_episodes, num_stored)
                batch = self.coverage.added(self.mirroring.mirrored(batch), num_before + number + 1)
                return self.learner.update(learner_state, batch, key_update)

            def learn(learner_state: Any, key: jax.Array, num_stored: jax.Array) -> tuple[Any, Metrics]:
                if self.updates_per_episode == 1:
                    return learn_once(learner_state, key, num_stored)
                keys = jax.random.split(key, self.updates_per_episode)
                learner_state, metrics = jax.lax.scan(
                    lambda state, key_once: learn_once(state, key_once, num_stored), learner_state, keys
                )
                return learner_state, jax.tree.map(lambda values: jnp.mean(values, axis=0), metrics)

            def rest(learner_state: Any, key: jax.Array, num_stored: jax.Array) -> tuple[Any, Metrics]:
                _, metrics = jax.eval_shape(learn, learner_state, key, num_stored)
                return learner_state, jax.tree.map(lambda shape: jnp.zeros(shape.shape, shape.dtype), metrics)

            learner_state, metrics = jax.lax.cond(can_learn, learn, rest, learner_state, key_update, num_stored)
            return learner_state, (metrics, can_learn)

        now = (jnp.arange(num_new), jax.random.split(key, num_new))
        learner_state, (metrics, has_learned) = jax.lax.scan(turn, learner_state, now)
        return replay, Learned(self._without_experts(learner_state, before), metrics, has_learned)

    def _without_experts(self, learned: Any, before: Any) -> Any:
        """Restore the experts' networks."""
        if not self.experts:
            return learned
        return self.learner.with_agents(learned, before, among(self.experts, self.replay.num_agents))
