"""Episodes that were not recorded, played for the page: on starts that any two runs can have in common."""

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
from consmarl.training.rollout import Actors, play_episodes


def played_episodes(run: Path, config: TrainConfig, *, staged: int, greedy: int, seed: int) -> list[RecordedEpisode]:
    """Play from a run's newest checkpoint.

    `staged` episodes are played as training would go on, exploring and sharing; `greedy` ones as an evaluation. Their
    starts come of the seed alone, so they are the same for every run in the world. The run itself is left as it is.
    """
    if not staged and not greedy:
        return []
    if is_foreign(config.env):
        raise UsageError(f"{config.env} steps in Python, so its episodes are recorded in training only: use --record.")
    trainer: Any = config.trainer()
    restored = checkpoints.restore(run / CHECKPOINTS, functools.partial(trainer.init, config.seed))
    state = restored.state
    num_steps = trainer.world.episode_limit
    sharing = trainer.sharing.with_room(state.sharing, num_steps * trainer.world.num_agents)
    parameters = trainer.learner.parameters(state.learner)
    alone = Actors(trainer.learner, Greedy(), NoSharing())
    played = []
    for kind, count, actors, its_sharing, epsilons in (
        (
            exchanges.STAGED,
            staged,
            trainer.actors,
            sharing,
            trainer.epsilon(state.num_env_steps + jnp.arange(num_steps)),
        ),
        (exchanges.EVALUATION, greedy, alone, (), jnp.zeros(num_steps)),
    ):
        for number in range(count):
            key = jax.random.fold_in(jax.random.key(seed), number)
            records = _play(trainer.world, actors, parameters, its_sharing, epsilons, jnp.int32(restored.number), key)
            header = {"kind": kind, "episode": number, "after": restored.number, "config": json.loads(config.to_json())}
            one_round = jax.tree.map(lambda leaf: leaf[None], jax.device_get(records))
            played.append(exchanges.recorded_episode(one_round, 0, 1, header))
    return played


@functools.partial(jax.jit, static_argnums=(0, 1))
def _play(world: Any, actors: Actors, parameters: Any, sharing: Any, epsilons: jax.Array, first_episode: jax.Array,
          key: jax.Array) -> Any:  # fmt: skip
    return play_episodes(
        world, actors, parameters, sharing, epsilons, first_episode, key, num_envs=1, is_recording=True
    ).records
