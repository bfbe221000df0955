"""The loop for environments that step in Python; equivalent to `loop.Trainer` with one environment.

Acting, exploring, storing and learning use the compiled loop's functions with the same keys; only the environment's
step is Python. Every episode's seed is derived from the run's key and the episode's number, so a resumed run plays the
same episodes as an uninterrupted one, as far as the environment honours its seed.
"""

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from consmarl.environments.foreign import ForeignWorld
from consmarl.environments.interface import Counters
from consmarl.learners.interface import EpisodeBatch, map_episodes
from consmarl.sharing.interface import Sharing, Traffic
from consmarl.sharing.none import ALONE
from consmarl.training.exploration import Greedy
from consmarl.training.learning import Learned, LearningPhase
from consmarl.training.parts import RoundEpsilon, RoundReport, RunParts, TrainState
from consmarl.training.programs import Program
from consmarl.training.rollout import Actors, Episodes, Moment, Recorded, Turn, act, first_turn, of_team

SEED_BITS = 31  # environments accept different ranges, but all accept this many bits


class EpisodeKeys(NamedTuple):
    """Random keys of one episode."""

    seed: jax.Array  # uint32, the environment's
    memory: jax.Array
    steps: jax.Array  # [step]


class Kept(NamedTuple):
    """The large parts of a turn, passed separately so that their buffers can be updated in place."""

    sharing: Any
    recall: Any


@dataclass(frozen=True, kw_only=True)
class PythonTrainer(RunParts):
    """A run in a third-party environment. One round plays one episode and then does one update, as in the paper."""

    world: ForeignWorld

    def run(self, state: TrainState, num_rounds: int, *, is_recording: bool = False) -> tuple[TrainState, RoundReport]:
        """Play and learn for this many rounds; the given state is consumed."""
        state = self.with_room(state, num_rounds)
        reports = []
        for _ in range(num_rounds):
            state, report = self._round(state, is_recording=is_recording)
            reports.append(report)
        self.sharing.check(state.sharing)
        return state, jax.tree.map(lambda *rounds: np.stack(rounds), *jax.device_get(reports))

    def evaluate(self, parameters: Any, key: jax.Array, num_episodes: int, sharing: Sharing = ALONE) -> Episodes:
        """Play greedily, without exploration; agents act on their own unless `sharing` lets them consult each other."""
        no_epsilon = jnp.zeros(self.world.episode_limit)
        keys = jax.random.split(key, num_episodes)
        actors = Actors(self.learner, Greedy(), sharing)
        played = [play_episode(self.world, actors, parameters, (), no_epsilon, 0, each) for each in keys]
        traffic = jax.tree.map(lambda *each: np.concatenate(each, axis=1), *(each.traffic for each in played))
        return Episodes(_joined(each.batch for each in played), Counters({}, {}), traffic, (), ())

    def _round(self, state: TrainState, *, is_recording: bool) -> tuple[TrainState, RoundReport]:
        if int(state.num_rounds) == self.join_episode:
            state = self.with_newcomers(state)
        key_play, key_learn, epsilons = _prepare(self.round_epsilon, state.key, state.num_rounds, state.num_env_steps)
        parameters = self.learner.parameters(state.learner)
        sharing, state = state.sharing, state._replace(sharing=())  # playing consumes sharing's state
        played = play_episode(self.world, self.actors, parameters, sharing, epsilons, int(state.num_rounds), key_play,
                              is_recording=is_recording)  # fmt: skip
        del parameters  # their buffers are donated with the state
        batch = played.batch
        state, learned = _store_and_learn(self.learning, state, batch, key_learn)
        report = RoundReport(
            returns=batch.rewards.sum(axis=2).T,
            num_steps=batch.num_steps,
            counters=Counters({}, {}),
            epsilon=of_team(epsilons[0]),
            learning=learned.metrics,
            has_learned=learned.has_learned,
            # the next episode consumes this
            sharing=jax.device_get(self.sharing.report(played.sharing, played.traffic)),
            records=played.records,
        )
        return state._replace(sharing=played.sharing), report


def play_episode(
    world: ForeignWorld,
    actors: Actors,
    parameters: Any,
    sharing: Any,
    epsilons: jax.Array,
    episode: int,
    key: jax.Array,
    *,
    is_recording: bool = False,
) -> Episodes:
    """Play one episode; steps after an early end are zeros.

    `epsilons` is ε in every step, [step] or [step, agent, 1]. `sharing` is sharing's state, which is
    consumed, and `episode` is the episode's number.
    """
    keys = _episode_keys(world.episode_limit, key)
    codes = [world.reset(int(keys.seed))]
    allowed = [world.allowed]
    turn = _first_turn(actors, world.episode_limit, parameters, codes[0], keys.memory, allowed[0])
    kept, turn = Kept(sharing, turn.recall), turn._replace(recall=())
    actions, rewards, terminated = [], [], False
    traffics, records = [], []
    for number in range(world.episode_limit):
        turn, kept, traffic, record = _decide(
            actors, is_recording, parameters, turn, kept, epsilons, keys.steps, number, episode
        )
        traffics.append(traffic)
        records.append(record)
        chosen = np.asarray(turn.last_actions)[:, 0]
        step = world.step(chosen)
        codes.append(step.codes)
        allowed.append(step.allowed)
        actions.append(chosen)
        rewards.append(step.rewards)
        if step.is_over:
            terminated = step.terminated
            break
        turn = turn._replace(codes=step.codes[None], allowed=step.allowed[None])
    batch = EpisodeBatch(
        codes=_padded(codes, world.episode_limit + 1, np.float32),
        actions=_padded(actions, world.episode_limit, np.uint8),
        rewards=_padded(rewards, world.episode_limit, np.float32),
        num_steps=_single(len(actions), np.int32),
        terminated=_single(terminated, np.bool_),
        epsilon=jax.vmap(of_team)(epsilons)[None],
        notes=jax.device_get(actors.learner.notes(turn.memory)),
        allowed=_padded(allowed, world.episode_limit + 1, np.bool_),
    )
    totals = jax.tree.map(lambda *rows: np.sum(rows, axis=0), *jax.device_get(traffics))
    recorded = _recorded(jax.device_get(records), batch) if is_recording else ()
    return Episodes(batch, Counters({}, {}), totals, kept.sharing, recorded)


def _recorded(steps: list[Any], batch: EpisodeBatch) -> Recorded:
    """Convert records to the compiled loop's format; third-party environments do not expose their states."""
    limit = batch.rewards.shape[2]
    return Recorded(
        step=jax.tree.map(lambda *rows: _filled(rows, limit), *steps),
        states=(),
        rewards=batch.rewards.transpose(2, 1, 0),
        is_live=jnp.arange(limit)[:, None] < batch.num_steps[None, :],
        epsilon=batch.epsilon[0],
    )


def _filled(rows: tuple[Any, ...], length: int) -> Any:
    """Stack steps, and pad with zeros after an early end."""
    filled = np.zeros((length, *rows[0].shape), rows[0].dtype)
    filled[: len(rows)] = rows
    return filled


def _padded(steps: list[Any], length: int, dtype: Any) -> Any:
    """Stack steps, [agent, …] each, to [agent, episode, step, …] with one episode."""
    rows = np.zeros((steps[0].shape[0], 1, length, *steps[0].shape[1:]), dtype)
    rows[:, 0, : len(steps)] = np.stack(steps, axis=1)
    return rows


def _single(value: int, dtype: Any) -> Any:
    """Return a fact of the single episode: [episode]."""
    return np.array([value], dtype)


def _joined(episodes: Iterable[EpisodeBatch]) -> EpisodeBatch:
    return map_episodes(lambda axis, *rows: np.concatenate(rows, axis=axis), *episodes)


@functools.partial(Program, num_static=1)
def _prepare(
    epsilon: RoundEpsilon, key: jax.Array, num_rounds: jax.Array, num_env_steps: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return a round's keys, for playing and for learning, and ε in each of its steps."""
    key_play, key_learn = jax.random.split(jax.random.fold_in(key, num_rounds))
    return key_play, key_learn, epsilon(num_rounds, num_env_steps)


@functools.partial(Program, num_static=1)
def _episode_keys(limit: int, key: jax.Array) -> EpisodeKeys:
    key_reset, key_memory, key_steps = jax.random.split(key, 3)
    seed = jax.random.bits(key_reset, dtype=jnp.uint32) >> (32 - SEED_BITS)
    return EpisodeKeys(seed, key_memory, jax.random.split(key_steps, limit))


@functools.partial(Program, num_static=2)
def _first_turn(
    actors: Actors, limit: int, parameters: Any, codes: jax.Array, key: jax.Array, allowed: jax.Array
) -> Turn:
    # sharing's state is handed on beside the turn
    return first_turn(actors, parameters, (), codes[None], limit, (), key, allowed[None])


@functools.partial(Program, num_static=2, donate_argnums=(4,))
def _decide(
    actors: Actors,
    is_recording: bool,
    parameters: Any,
    turn: Turn,
    kept: Kept,
    epsilons: jax.Array,
    keys: jax.Array,
    number: int,
    episode: int,
) -> tuple[Turn, Kept, Traffic, Any]:
    """Return the turn with this step's decisions; the environment has not stepped yet."""
    key_act, _ = jax.random.split(keys[number])  # the other half is for the environment in the compiled loop
    turn = turn._replace(**kept._asdict())
    moment = Moment(jnp.asarray(number), epsilons[number], jnp.asarray(episode)[None])
    decision = act(actors, parameters, turn, moment, key_act, is_recording=is_recording)
    shared = decision.shared
    following = turn._replace(
        memory=decision.memory,
        last_actions=shared.actions,
        exploration=decision.exploration,
        sharing=(),
        sharing_memory=shared.memory,
        recall=(),
    )
    return following, Kept(shared.state, shared.recall), shared.traffic, shared.record


@functools.partial(Program, num_static=1, donate_argnums=(1,))
def _store_and_learn(
    learning: LearningPhase, state: TrainState, batch: EpisodeBatch, key: jax.Array
) -> tuple[TrainState, Learned]:
    replay, learned = learning.store_and_learn(state.learner, state.replay, batch, key)
    num_env_steps = state.num_env_steps + batch.num_steps.sum()
    following = TrainState(learned.learner, (), replay, state.key, state.num_rounds + 1, num_env_steps)
    # the learner's state is already in `following`: returned twice, it would be copied
    return following, learned._replace(learner=())
