"""Episodes that were not recorded, played for the page: on starts that any two runs can have in common."""

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
from consmarl.experiments.config import TrainConfig
from consmarl.experiments.exchanges import RecordedEpisode
from consmarl.files import CHECKPOINTS
from consmarl.sharing.none import NoSharing
from consmarl.training import checkpoints
from consmarl.training.exploration import Greedy
from consmarl.training.programs import Program
from consmarl.training.rollout import Actors, play_episodes

# later than any episode: nobody asks, and all other chances stay as they are
NEVER = 2**31 - 1


def played_episodes(
    run: Path, config: TrainConfig, *, staged: int = 0, greedy: int = 0, seed: int = 0, is_silent: bool = False
) -> list[RecordedEpisode]:
    """Play from a run's newest checkpoint.

    `staged` episodes are played as training would go on, exploring and sharing; `greedy` ones as an evaluation. Their
    starts come of the seed alone, so they are the same for every run in the world. In silent ones nobody asks, and all
    else is as it would be: up to the first choice that answers change, they are the same. The run itself is left as it
    is.
    """
    if not staged and not greedy:
        return []
    if is_foreign(config.env):
        raise UsageError(f"{config.env} steps in Python, so its episodes are recorded in training only: use --record.")
    trainer: Any = config.trainer()
    restored = checkpoints.restore(run / CHECKPOINTS, functools.partial(trainer.init, config.seed))
    state, num_steps = restored.state, trainer.world.episode_limit
    sharing = trainer.sharing.with_room(state.sharing, num_steps * trainer.world.num_agents)
    actors = trainer.actors
    if is_silent:
        actors = actors._replace(sharing=dataclasses.replace(actors.sharing, start_episode=NEVER))
    epsilons = trainer.epsilon(state.num_env_steps + jnp.arange(num_steps))
    alone = Actors(trainer.learner, Greedy(), NoSharing())
    parameters, after = trainer.learner.parameters(state.learner), jnp.int32(restored.number)
    facts = {"after": restored.number, "config": json.loads(config.to_json())}
    played = []
    for kind, count, *team in (
        (exchanges.SILENT if is_silent else exchanges.STAGED, staged, actors, sharing, epsilons),
        (exchanges.EVALUATION, greedy, alone, (), jnp.zeros(num_steps)),
    ):
        for number in range(count):
            key = jax.random.fold_in(jax.random.key(seed), number)
            records = jax.device_get(_play(trainer.world, *team, parameters, after, key))
            one_round = jax.tree.map(lambda leaf: leaf[None], records)
            header = {"kind": kind, "episode": number} | facts
            played.append(exchanges.recorded_episode(one_round, 0, 1, header))
    return played


@functools.partial(Program, num_static=2)
def _play(world: Any, actors: Actors, sharing: Any, epsilons: jax.Array, parameters: Any, first_episode: jax.Array,
          key: jax.Array) -> Any:  # fmt: skip
    return play_episodes(
        world, actors, parameters, sharing, epsilons, first_episode, key, num_envs=1, is_recording=True
    ).records
