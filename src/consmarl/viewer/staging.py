"""Play additional episodes for the page, with starts that are the same for all runs in an environment."""

import dataclasses
import functools
import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from consmarl.environments.foreign import is_foreign
from consmarl.errors import UsageError
from consmarl.experiments import exchanges
from consmarl.experiments.configuration.config import TrainConfig
from consmarl.experiments.consult import consulting
from consmarl.experiments.exchanges import RecordedEpisode
from consmarl.files import CHECKPOINTS
from consmarl.sharing.options import Consult
from consmarl.training import checkpoints
from consmarl.training.exploration import Greedy
from consmarl.training.programs import Program
from consmarl.training.rollout import Actors, play_episodes

# A start of sharing later than any episode: nobody asks, and all random numbers stay the same.
NEVER = 2**31 - 1


def played_episodes(
    run: Path,
    config: TrainConfig,
    *,
    staged: int = 0,
    greedy: int = 0,
    seed: int = 0,
    is_silent: bool = False,
    consult: Consult | None = None,
) -> list[RecordedEpisode]:
    """Play episodes from a run's newest checkpoint and return their records.

    `staged` episodes are played as in training, exploring and sharing, and are numbered as its next episodes, because
    agents may ask in some episodes only (`ask_share`). `greedy` ones are played as in an evaluation, in which agents
    act on their own or consult each other. Their starts depend only on the seed, so they are the same for every
    run in the environment. In silent episodes nobody asks and everything else is unchanged, so they are identical up to
    the first choice that answers change. The run itself is not modified.
    """
    if not staged and not greedy:
        return []
    if is_foreign(config.env):
        raise UsageError(f"{config.env} steps in Python, so its episodes are only recorded in training: use --record.")
    trainer: Any = config.trainer()
    restored = checkpoints.restore(run / CHECKPOINTS, functools.partial(trainer.init, config.seed))
    state, num_steps = restored.state, trainer.world.episode_limit
    sharing = trainer.sharing.with_room(state.sharing, num_steps * trainer.world.num_agents)
    actors = trainer.actors
    if is_silent:
        actors = actors._replace(sharing=dataclasses.replace(actors.sharing, start_episode=NEVER))
    epsilons = trainer.epsilon(state.num_env_steps + jnp.arange(num_steps))
    executing = Actors(trainer.learner, Greedy(), consulting(consult, config, trainer))
    parameters = trainer.learner.parameters(state.learner)
    evaluated = trainer.learner.evaluated_parameters(state.learner)
    facts = {"after": restored.number, "config": json.loads(config.to_json())} | exchanges.names_of(trainer.world)
    played = []
    for kind, count, weights, beside, *team in (
        (exchanges.SILENT if is_silent else exchanges.STAGED, staged, parameters, state.beside, actors, sharing,
         epsilons),
        (exchanges.CONSULTED if consult else exchanges.EVALUATION, greedy, evaluated, (), executing, (),
         jnp.zeros(num_steps)),
    ):  # fmt: skip
        for number in range(count):
            key = jax.random.fold_in(jax.random.key(seed), number)
            episode = jnp.int32(restored.number + number)
            records = jax.device_get(_play(trainer.world, *team, weights, episode, key, beside))
            one_round = jax.tree.map(lambda leaf: leaf[None], records)
            header = {"kind": kind, "episode": number} | facts
            played.append(exchanges.recorded_episode(one_round, 0, 1, header))
    return played


@functools.partial(Program, num_static=2)
def _play(world: Any, actors: Actors, sharing: Any, epsilons: jax.Array, parameters: Any, first_episode: jax.Array,
          key: jax.Array, beside: Any) -> Any:  # fmt: skip
    return play_episodes(
        world, actors, parameters, sharing, epsilons, first_episode, key, num_envs=1, beside=beside, is_recording=True
    ).records
