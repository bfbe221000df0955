"""The parts common to all runs, whether the environment steps in compiled code or in Python."""

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from consmarl.learners.interface import AnyLearner
from consmarl.metrics import AGENT_RETURNS, EPISODE_STEPS, EPSILON, RETURN, Schema, declared_once
from consmarl.records import settle
from consmarl.sharing.interface import Sharing
from consmarl.sharing.none import NoSharing
from consmarl.training.coverage import CoverageBonus
from consmarl.training.exploration import EpsilonGreedy, Exploration, ExploringBeginners, LinearSchedule
from consmarl.training.learning import LearningPhase, among
from consmarl.training.mirroring import Mirroring
from consmarl.training.programs import Program
from consmarl.training.replay import Replay, ReplayState
from consmarl.training.rollout import Actors

JOINING = 2**31 - 1  # folded into the key for newcomers' weights; no round has this number


class TrainState(NamedTuple):
    """Everything that the rest of a run depends on.

    Chunks end between episodes, so it contains nothing of unfinished episodes (memories, repeated exploratory actions).
    """

    learner: Any
    sharing: Any
    replay: ReplayState
    key: jax.Array
    num_rounds: jax.Array  # int32
    num_env_steps: jax.Array  # int32
    beside: Any = ()  # the networks of experts beside the team, who only answer; () if there are none


@dataclass(frozen=True)
class RoundEpsilon:
    """ε in the steps of a round, for the team, and separately for newcomers."""

    schedule: LinearSchedule
    num_steps: int
    num_envs: int
    is_new: tuple[bool, ...]  # [agent]
    join_episode: int | None

    def __call__(self, num_rounds: jax.Array, num_env_steps: jax.Array) -> jax.Array:
        """Return [step], or [step, agent, 1] if newcomers join.

        Newcomers have the ε of a run that started when they joined; steps since then are counted in whole episodes.
        """
        steps = self.num_envs * jnp.arange(self.num_steps)
        of_team = self.schedule(num_env_steps + steps)
        if self.join_episode is None:
            return of_team
        num_episodes = num_rounds * self.num_envs - self.join_episode
        own = self.schedule(jnp.maximum(num_episodes, 0) * self.num_steps + steps)
        is_new = np.array(self.is_new) & (num_episodes >= 0)
        return jnp.where(is_new[None, :, None], own[:, None, None], of_team[:, None, None])


class RoundReport(NamedTuple):
    """The results of one round."""

    returns: jax.Array  # float32 [env, agent], sums of rewards
    num_steps: jax.Array  # int32 [env]
    counters: Any  # [env, …]
    epsilon: jax.Array
    learning: dict[str, jax.Array]  # [update, network]
    has_learned: jax.Array  # bool [update]
    sharing: dict[str, jax.Array]  # empty if agents do not share
    records: Any  # [step, …] of every episode, or () if nothing is recorded


@dataclass(frozen=True, kw_only=True)
class RunParts:
    """The parts of every run. One round plays `num_envs` episodes and then does the updates for each of them."""

    world: Any
    learner: AnyLearner
    exploration: Exploration = field(default_factory=EpsilonGreedy)
    epsilon: LinearSchedule = field(default_factory=LinearSchedule)
    sharing: Sharing = field(default_factory=NoSharing)
    num_envs: int = 1
    batch_episodes: int = 32
    updates_per_episode: int = 1
    replay_episodes: int = 10_000
    warmup_steps: int = 5_000  # environment steps that must be exceeded before learning starts
    mirror_episodes: bool = False  # whether to also learn from mirrored episodes, if the environment has symmetries
    coverage_bonus: float = 0.0  # for every cell that comes into view for the first time in an episode
    coverage_start: int = 0  # number of episodes before the bonus counts
    experts: tuple[int, ...] = ()  # agents that act and teach, but neither explore nor learn
    newcomers: tuple[int, ...] = ()  # agents that are replaced by untrained ones
    join_episode: int | None = None  # number of episodes after which they are replaced

    def __post_init__(self) -> None:
        """Convert values to their types, and adapt sharing to the environment's observations."""
        settle(self)
        fitted = self.sharing.for_observations(self.world.observation_size, self.world.observation_dtype)
        object.__setattr__(self, "sharing", fitted)  # the dataclass is frozen

    @property
    def replay(self) -> Replay:
        """The replay buffer, with its capacity rounded up to a multiple of the episodes added at once."""
        rounds = 1 if self.learner.is_on_policy else -(-self.replay_episodes // self.num_envs)
        return Replay(
            num_agents=self.world.num_agents,
            episode_limit=self.world.episode_limit,
            observation_size=self.world.observation_size,
            code_dtype=self.world.observation_dtype,
            capacity=rounds * self.num_envs,
            notes=_note_shapes(self.learner),
            num_masked=self.world.num_actions if self.world.masks_actions else 0,
            num_branches=self.world.num_branches,
        )

    @property
    def learning(self) -> LearningPhase:
        """The phase that follows the playing of episodes."""
        mirroring = Mirroring.of(self.world) if self.mirror_episodes else Mirroring()
        coverage = CoverageBonus()
        if self.coverage_bonus:
            coverage = CoverageBonus(self.coverage_bonus, self.world, self.coverage_start)
        return LearningPhase(self.learner, self.replay, self.batch_episodes, self.warmup_steps, mirroring, coverage,
                             self.experts, self.updates_per_episode)  # fmt: skip

    @property
    def metrics(self) -> Schema:
        """The metrics in this run's rows, as declared by the parts that produce them."""
        return declared_once(
            (RETURN, AGENT_RETURNS, *self.world.metrics, EPISODE_STEPS, *self.learner.metrics, EPSILON,
             *self.sharing.reported_metrics)
        )  # fmt: skip

    @property
    def actors(self) -> Actors:
        """The agents that act during training."""
        exploration = ExploringBeginners(self.exploration, self.experts) if self.experts else self.exploration
        return Actors(self.learner, exploration, self.sharing)

    def init(self, seed: int, facts: Mapping[str, Any] = MappingProxyType({})) -> TrainState:
        """Return the initial state; its arrays have the sizes given by `facts`, if they are those of a later state.

        Networks of experts beside the team are zeros, to be replaced by learned ones.
        """
        return self._first_state(seed, facts)

    def _first_state(self, seed: int, facts: Mapping[str, Any]) -> TrainState:
        team = (self.world.num_agents, self.world.num_actions)
        key_weights, begun = _begin(self.sharing, self.replay, team, json.dumps(dict(facts)), jax.random.key(seed))
        beside = _no_networks(self.learner, key_weights) if self.sharing.num_beside else ()
        return begun._replace(learner=_init_learner(self.learner, key_weights), beside=beside)

    def shapes(self, facts: Mapping[str, Any] = MappingProxyType({})) -> Any:
        """Return the shapes of the state that `init` returns on one device, without allocating it."""
        return jax.eval_shape(lambda: self._first_state(0, facts))

    def num_visits(self, num_rounds: int) -> int:
        """Return the maximum number of observations in this many rounds."""
        return num_rounds * self.num_envs * self.world.episode_limit * self.world.num_agents

    def with_newcomers(self, state: TrainState) -> TrainState:
        """Return the state; at `join_episode`, with untrained newcomers in their places and an empty replay buffer."""
        if self.join_episode is None:
            return state
        is_time = state.num_rounds * self.num_envs == self.join_episode
        is_new = among(self.newcomers, self.world.num_agents)

        def replaced(learner: Any) -> Any:
            return self.learner.with_agents(learner, self.learner.init(jax.random.fold_in(state.key, JOINING)), is_new)

        return state._replace(
            learner=jax.lax.cond(is_time, replaced, lambda learner: learner, state.learner),
            sharing=self.sharing.with_newcomers(state.sharing, jnp.asarray(is_new) & is_time),
            replay=state.replay._replace(num_added=jnp.where(is_time, 0, state.replay.num_added)),
        )

    @property
    def round_epsilon(self) -> RoundEpsilon:
        """The exploration schedule in the steps of a round."""
        is_new = tuple(among(self.newcomers, self.world.num_agents).tolist())
        return RoundEpsilon(self.epsilon, self.world.episode_limit, self.num_envs, is_new, self.join_episode)

    def with_room(self, state: TrainState, num_rounds: int) -> TrainState:
        """Return the state with room in sharing's tables for all observations of this many rounds."""
        return state._replace(sharing=self.sharing.with_room(state.sharing, self.num_visits(num_rounds)))


@functools.lru_cache
def _note_shapes(learner: AnyLearner) -> Any:
    """Return the shapes of the learner's notes on one episode, as `jax.ShapeDtypeStruct`s with an axis of length 1."""
    codes = jax.ShapeDtypeStruct((learner.spec.num_agents, 1, learner.spec.observation_size), jnp.uint8)

    def of_an_episode(key: jax.Array, codes: jax.Array) -> Any:
        return learner.notes(learner.begin(learner.parameters(learner.init(key)), key, codes))

    return jax.eval_shape(of_an_episode, jax.random.key(0), codes)


# Stored programs, because otherwise single operations would be compiled one by one, which takes seconds.


@functools.partial(Program, num_static=1)
def _init_learner(learner: AnyLearner, key: jax.Array) -> Any:
    return learner.init(key)


@functools.partial(Program, num_static=1)
def _no_networks(learner: AnyLearner, key: jax.Array) -> Any:
    """Return zeros in place of the parameters of a team."""
    like = jax.eval_shape(lambda key: learner.parameters(learner.init(key)), key)
    return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), like)


@functools.partial(Program, num_static=4)
def _begin(
    sharing: Sharing, replay: Replay, team: tuple[int, int], facts: str, key: jax.Array
) -> tuple[jax.Array, TrainState]:
    """Return a key for the weights, and the initial state with an empty learner."""
    key_weights, key_run = jax.random.split(key)
    state = sharing.sized(sharing.init(*team), json.loads(facts))
    num_rounds, num_env_steps = jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32)
    return key_weights, TrainState((), state, replay.init(), key_run, num_rounds, num_env_steps)
