"""The loop for environments that step in Python; with one environment, equivalent to `loop.Trainer`.

Acting, exploring, storing and learning use the compiled loop's functions with the same keys; only the environments step
in Python, in this process or in several (`environments.pool`). One call makes the decisions for all environments.
Every episode's seed is derived from the run's key and the episode's number. A resumed run therefore plays the same
episodes as an uninterrupted one, whichever process plays them, as far as the environment honours its seed.
"""

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from consmarl.environments.copies import Rows, SideBySide
from consmarl.environments.foreign import ForeignWorld
from consmarl.environments.interface import Counters
from consmarl.environments.pool import side_by_side
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
    """Random keys of episodes that are played side by side."""

    seeds: jax.Array  # uint32 [episode], for the environments
    memory: jax.Array  # for the learner's first memory
    steps: jax.Array  # [step]


class Kept(NamedTuple):
    """The large parts of a turn, passed separately so that their buffers can be updated in place."""

    sharing: Any
    recall: Any


@dataclass(frozen=True, kw_only=True)
class PythonTrainer(RunParts):
    """A run in a third-party environment: one round plays `num_envs` episodes and then does their updates.

    With `num_envs = 1`, events occur in the paper's order: one episode, one update.
    """

    world: ForeignWorld
    num_workers: int | None = None  # worker processes for several environments; by default one per core, 0 for none

    @functools.cached_property
    def copies(self) -> SideBySide:
        """The copies of the environment, created when first needed."""
        return side_by_side(self.world, self.num_envs, self.num_workers)

    def run(self, state: TrainState, num_rounds: int, *, is_recording: bool = False) -> tuple[TrainState, RoundReport]:
        """Play and learn for `num_rounds` rounds; return the new state and reports. The given state is consumed."""
        state = self.with_room(state, num_rounds)
        reports = []
        for _ in range(num_rounds):
            state, report = self._round(state, is_recording=is_recording)
            reports.append(report)
        self.sharing.check(state.sharing)
        return state, jax.tree.map(lambda *rounds: np.stack(rounds), *jax.device_get(reports))

    def evaluate(self, parameters: Any, key: jax.Array, num_episodes: int, sharing: Sharing = ALONE) -> Episodes:
        """Play greedily, without exploration; agents act on their own unless `sharing` lets them consult each other.

        The seeds of the episodes do not depend on how many are played side by side.
        """
        no_epsilon = jnp.zeros(self.world.episode_limit)
        keys = jax.random.split(key, num_episodes)
        actors = Actors(self.learner, Greedy(), sharing)
        limit, num_envs = self.world.episode_limit, self.num_envs
        played = [
            self._play(actors, parameters, (), no_epsilon, 0, own_keys(limit, keys[first : first + num_envs]))
            for first in range(0, num_episodes, num_envs)
        ]
        traffic = jax.tree.map(lambda *each: np.concatenate(each, axis=1), *(each.traffic for each in played))
        counters = jax.tree.map(lambda *each: np.concatenate(each), *(each.counters for each in played))
        return Episodes(_joined(each.batch for each in played), counters, traffic, (), ())

    def _play(self, *arguments: Any, **settings: Any) -> Episodes:
        try:
            return play_episodes(self.copies, *arguments, **settings)
        except BaseException:
            self.__dict__.pop("copies", None)  # its episodes are unfinished, and its processes may be gone
            raise

    def _round(self, state: TrainState, *, is_recording: bool) -> tuple[TrainState, RoundReport]:
        first_episode = int(state.num_rounds) * self.num_envs
        if first_episode == self.join_episode:
            state = self.with_newcomers(state)
        keys, key_learn, epsilons = _prepare(self.round_epsilon, state.key, state.num_rounds, state.num_env_steps)
        parameters = self.learner.parameters(state.learner)
        sharing, beside = state.sharing, state.beside
        state = state._replace(sharing=(), beside=())  # playing consumes sharing's state, and learning the rest
        played = self._play(self.actors, parameters, sharing, epsilons, first_episode, keys, beside=beside,
                            is_recording=is_recording)  # fmt: skip
        del parameters  # their buffers are donated with the state
        batch = played.batch
        state, learned = _store_and_learn(self.learning, state, batch, key_learn)
        report = RoundReport(
            returns=batch.rewards.sum(axis=2).T,
            num_steps=batch.num_steps,
            counters=played.counters,
            epsilon=of_team(epsilons[0]),
            learning=learned.metrics,
            has_learned=learned.has_learned,
            # on the host, because the next episode consumes sharing's state
            sharing=jax.device_get(self.sharing.report(played.sharing, played.traffic)),
            records=played.records,
        )
        return state._replace(sharing=played.sharing, beside=beside), report


def play_episodes(
    copies: SideBySide,
    actors: Actors,
    parameters: Any,
    sharing: Any,
    epsilons: jax.Array,
    first_episode: int,
    keys: EpisodeKeys,
    *,
    beside: Any = (),
    is_recording: bool = False,
) -> Episodes:
    """Play one episode per seed, with at most one seed per copy; steps after an early end are zeros.

    `epsilons` is ε in every step, [step] or [step, agent, 1]. `sharing` is sharing's state, which is consumed,
    `first_episode` is the number of the first of these episodes, and `beside` are the networks of experts beside the
    team.
    """
    limit, num_episodes = copies.world.episode_limit, len(keys.seeds)
    episodes = np.arange(first_episode, first_episode + copies.num_envs, dtype=np.int32)
    rows = copies.reset(np.asarray(keys.seeds).tolist())
    kept_steps = _Steps(rows, limit)
    turn = _first_turn(actors, limit, parameters, rows["codes"].copy(), keys.memory, rows["allowed"].copy(), beside)
    kept, turn = Kept(sharing, turn.recall), turn._replace(recall=(), is_live=~rows["is_over"])
    traffics, records = [], []
    for number in range(limit):
        turn, kept, traffic, record = _decide(
            actors, is_recording, parameters, turn, kept, epsilons, keys.steps, number, episodes, beside
        )
        traffics.append(traffic)
        records.append(record)
        chosen = np.asarray(turn.last_actions)  # [agent, env, …]
        rows = copies.step(chosen.swapaxes(0, 1))
        kept_steps.add(chosen, rows)
        if rows["is_over"].all():
            break
        turn = turn._replace(codes=rows["codes"].copy(), allowed=rows["allowed"].copy(), is_live=~rows["is_over"])
    notes = jax.device_get(actors.learner.notes(turn.memory))
    batch = kept_steps.batch(rows["terminated"].copy(), jax.vmap(of_team)(epsilons), notes)
    totals = jax.tree.map(lambda *each: np.sum(each, axis=0), *jax.device_get(traffics))
    recorded = _recorded(jax.device_get(records), batch) if is_recording else ()
    counters = _counters(rows[:num_episodes], copies.world)
    if num_episodes < copies.num_envs:
        batch = map_episodes(lambda axis, each: each[:, :num_episodes] if axis else each[:num_episodes], batch)
        totals = jax.tree.map(lambda each: each[:, :num_episodes], totals)
    return Episodes(batch, counters, totals, kept.sharing, recorded)


class _Steps:
    """Collects the steps of episodes; rows after an episode's end stay zero."""

    def __init__(self, rows: Rows, limit: int) -> None:
        num_envs, num_agents, size = rows["codes"].shape
        self.codes: Any = np.zeros((num_agents, num_envs, limit + 1, size), np.float32)
        choices = rows["allowed"].shape[2:]  # […, action]
        self.allowed: Any = np.zeros((num_agents, num_envs, limit + 1, *choices), bool)
        self.actions: Any = np.zeros((num_agents, num_envs, limit, *choices[:-1]), np.uint8)
        self.rewards: Any = np.zeros((num_agents, num_envs, limit), np.float32)
        self.num_steps: Any = np.zeros(num_envs, np.int32)
        self._is_live = ~rows["is_over"]
        self._number = 0
        self._see(rows)

    def add(self, chosen: Any, rows: Rows) -> None:
        """Add a step: the actions `chosen` [agent, env, …] and the resulting rows."""
        live, number = self._is_live, self._number
        self.actions[:, live, number] = chosen[:, live]
        self.rewards[:, live, number] = rows["rewards"].T[:, live]
        self.num_steps += live
        self._number += 1
        self._see(rows)
        self._is_live = ~rows["is_over"]

    def _see(self, rows: Rows) -> None:
        live = self._is_live
        self.codes[:, live, self._number] = rows["codes"][live].swapaxes(0, 1)
        self.allowed[:, live, self._number] = rows["allowed"][live].swapaxes(0, 1)

    def batch(self, terminated: Any, epsilon: jax.Array, notes: Any) -> EpisodeBatch:
        """Return the episodes; `epsilon` is [step]."""
        return EpisodeBatch(
            codes=self.codes,
            actions=self.actions,
            rewards=self.rewards,
            num_steps=self.num_steps,
            terminated=terminated,
            epsilon=jnp.broadcast_to(epsilon[None], (len(self.num_steps), *epsilon.shape)),
            notes=notes,
            allowed=self.allowed,
        )


def _counters(rows: Rows, world: ForeignWorld) -> Counters:
    """Return the last numbers that each episode reported, by name."""
    by_agent: Any = rows["by_agent"].copy()
    of_team: Any = rows["of_team"].copy()
    return Counters(
        {name: by_agent[:, :, column] for column, name in enumerate(world.counted.by_agent)},
        {name: of_team[:, column] for column, name in enumerate(world.counted.team)},
    )


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
    """Stack steps, padded with zeros to `length` after an early end."""
    filled = np.zeros((length, *rows[0].shape), rows[0].dtype)
    filled[: len(rows)] = rows
    return filled


def _joined(episodes: Iterable[EpisodeBatch]) -> EpisodeBatch:
    return map_episodes(lambda axis, *rows: np.concatenate(rows, axis=axis), *episodes)


def episode_seed(run_seed: int, num_envs: int, episode: int) -> int:
    """Return the environment's seed in an episode of a run, without playing the run."""
    _, key_run = jax.random.split(jax.random.key(run_seed))  # as `RunParts.init` does
    key_play, _ = jax.random.split(jax.random.fold_in(key_run, episode // num_envs))
    return int(_round_seeds(jax.random.split(key_play, 3)[0], num_envs)[episode % num_envs])


@functools.partial(Program, num_static=1)
def _prepare(
    epsilon: RoundEpsilon, key: jax.Array, num_rounds: jax.Array, num_env_steps: jax.Array
) -> tuple[EpisodeKeys, jax.Array, jax.Array]:
    """Return a round's keys for playing, as in the compiled loop, its key for learning, and ε in each of its steps."""
    key_play, key_learn = jax.random.split(jax.random.fold_in(key, num_rounds))
    key_reset, key_memory, key_steps = jax.random.split(key_play, 3)
    seeds = _round_seeds(key_reset, epsilon.num_envs)
    keys = EpisodeKeys(seeds, key_memory, jax.random.split(key_steps, epsilon.num_steps))
    return keys, key_learn, epsilon(num_rounds, num_env_steps)


@functools.partial(Program, num_static=1)
def own_keys(limit: int, keys: jax.Array) -> EpisodeKeys:
    """Return the keys of episodes, given one key each; decisions, made for all episodes at once, use the first key."""
    _, key_memory, key_steps = jax.random.split(keys[0], 3)
    seeds = _seeds(jax.vmap(lambda key: jax.random.split(key, 3)[0])(keys))
    return EpisodeKeys(seeds, key_memory, jax.random.split(key_steps, limit))


def _round_seeds(key: jax.Array, num_envs: int) -> jax.Array:
    return _seeds(key[None] if num_envs == 1 else jax.random.split(key, num_envs))


def _seeds(keys: jax.Array) -> jax.Array:
    return jax.vmap(lambda key: jax.random.bits(key, dtype=jnp.uint32))(keys) >> (32 - SEED_BITS)


@functools.partial(Program, num_static=2)
def _first_turn(
    actors: Actors, limit: int, parameters: Any, codes: jax.Array, key: jax.Array, allowed: jax.Array, beside: Any
) -> Turn:
    # sharing's state is passed separately from the turn
    return first_turn(actors, parameters, (), codes, limit, (), key, allowed, beside)


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
    episodes: jax.Array,
    beside: Any,
) -> tuple[Turn, Kept, Traffic, Any]:
    """Return the turn with this step's decisions; the environment has not stepped yet."""
    key_act, _ = jax.random.split(keys[number])  # in the compiled loop, the other half is for the environment
    turn = turn._replace(**kept._asdict())
    moment = Moment(jnp.asarray(number), epsilons[number], episodes)
    decision = act(actors, parameters, turn, moment, key_act, beside=beside, is_recording=is_recording)
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
