"""The compiled loop: play, store and learn, in chunks between which the caller reports, evaluates and saves.

A chunk always ends between episodes, so no unfinished episode has to be saved. Keys are derived from the
run's key and the round's number, so a resumed run draws the same numbers as an uninterrupted one.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import jax
import jax.numpy as jnp

from consmarl.environments.interface import Environment
from consmarl.learners.devices import agents_mesh, everywhere, on_every_device, placed
from consmarl.learners.interface import map_episodes
from consmarl.sharing.interface import Sharing
from consmarl.sharing.none import ALONE
from consmarl.training.exploration import Greedy
from consmarl.training.parts import RoundReport, RunParts, TrainState
from consmarl.training.programs import Program
from consmarl.training.rollout import Actors, Episodes, of_team, play_episodes


@dataclass(frozen=True, kw_only=True)
class Trainer(RunParts):
    """A run in one of our environments, compiled as a whole.

    With `num_envs = 1`, events occur in the paper's order: one episode, one update.
    """

    world: Environment[Any, Any, Any]
    num_envs: int = 4
    num_devices: int = 1  # devices over which the agents are distributed

    def init(self, seed: int, facts: Mapping[str, Any] = MappingProxyType({})) -> TrainState:
        """Return the initial state, or one of the size given by `facts`, on all devices."""
        state = super().init(seed, facts)
        if self.num_devices == 1:
            return state
        mesh = agents_mesh(self.num_devices)
        episodes = map_episodes(
            lambda axis, leaf: placed(leaf, mesh, by_agent=axis == 1),  # with agents before episodes
            state.replay.episodes,
        )
        whole = placed(state, mesh, by_agent=False)
        return whole._replace(replay=whole.replay._replace(episodes=episodes))

    def run(self, state: TrainState, num_rounds: int, *, is_recording: bool = False) -> tuple[TrainState, RoundReport]:
        """Play and learn for `num_rounds` rounds; return the new state and reports. The given state is consumed."""
        state = self.with_room(state, num_rounds)
        if self.num_devices == 1:
            state, report = _run(self, num_rounds, is_recording, state)
        else:
            mesh = agents_mesh(self.num_devices)
            state = state._replace(sharing=placed(state.sharing, mesh, by_agent=False))
            with jax.set_mesh(mesh):
                state, report = _run_on_devices(self, num_rounds, is_recording, state)
        self.sharing.check(state.sharing)
        return state, report

    def evaluate(self, parameters: Any, key: jax.Array, num_episodes: int, sharing: Sharing = ALONE) -> Episodes:
        """Play greedily, without exploration; agents act on their own unless `sharing` lets them consult each other."""
        actors = Actors(self.learner, Greedy(), sharing)
        return _evaluate(self.world, actors, num_episodes, parameters, key)

    def _round(self, is_recording: bool, state: TrainState) -> tuple[TrainState, RoundReport]:
        play = functools.partial(play_episodes, self.world, self.actors, num_envs=self.num_envs,
                                 is_recording=is_recording)  # fmt: skip
        state = self.with_newcomers(state)
        key_round = jax.random.fold_in(state.key, state.num_rounds)
        key_play, key_learn = jax.random.split(key_round)
        epsilons = self.round_epsilon(state.num_rounds, state.num_env_steps)
        parameters = self.learner.parameters(state.learner)
        first_episode = state.num_rounds * self.num_envs
        episodes = on_every_device(lambda beside, *rest: play(*rest, beside=beside), state.beside, parameters,
                                   state.sharing, epsilons, first_episode, key_play)  # fmt: skip
        replay, learned = self.learning.store_and_learn(state.learner, state.replay, episodes.batch, key_learn)
        report = RoundReport(
            returns=episodes.batch.rewards.sum(axis=2).T,
            num_steps=episodes.batch.num_steps,
            counters=episodes.counters,
            epsilon=of_team(epsilons[0]),
            learning=learned.metrics,
            has_learned=learned.has_learned,
            sharing=self.sharing.report(episodes.sharing, episodes.traffic),
            records=episodes.records,
        )
        following = TrainState(
            learner=everywhere(learned.learner),
            sharing=episodes.sharing,
            replay=replay,
            key=state.key,
            num_rounds=state.num_rounds + 1,
            num_env_steps=state.num_env_steps + episodes.batch.num_steps.sum(),
            beside=state.beside,
        )
        return following, report


def _run_rounds(
    trainer: Trainer, num_rounds: int, is_recording: bool, state: TrainState
) -> tuple[TrainState, RoundReport]:
    return jax.lax.scan(lambda carry, _: trainer._round(is_recording, carry), state, length=num_rounds)


_run = Program(_run_rounds, num_static=3, donate_argnums=(3,))
_run_on_devices = jax.jit(
    _run_rounds,
    static_argnums=(0, 1, 2),
    donate_argnums=3,
    # cores that act as separate devices must not share threads: each processes its own agents
    compiler_options={"xla_cpu_multi_thread_eigen": False},
)


@functools.partial(Program, num_static=3)
def _evaluate(
    world: Environment[Any, Any, Any], actors: Actors, num_episodes: int, parameters: Any, key: jax.Array
) -> Episodes:
    no_epsilon = jnp.zeros(world.episode_limit)
    return play_episodes(world, actors, parameters, (), no_epsilon, jnp.zeros((), jnp.int32), key, num_episodes)
