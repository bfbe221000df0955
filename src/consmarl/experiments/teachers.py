"""Put experienced agents, from a policy file or another run, into a new run or beside its team."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from consmarl.errors import UsageError
from consmarl.experiments.configuration.config import AnyTrainer, TrainConfig
from consmarl.experiments.learned import learned_policy
from consmarl.training.learning import among
from consmarl.training.parts import TrainState


def check_seats(config: TrainConfig, trainer: AnyTrainer) -> None:
    """Raise an error if a run has newcomers but its learner cannot replace single agents; nothing is computed."""
    if not config.those_new:
        return
    learner: Any = trainer.learner
    like = trainer.shapes().learner
    is_new = among(trainer.newcomers, trainer.world.num_agents)
    jax.eval_shape(lambda state: learner.with_agents(state, state, is_new), like)


def seated(trainer: AnyTrainer, state: TrainState, weights: Any) -> TrainState:
    """Return a run's initial state with the weights of its experienced agents; unchanged if `weights` is None.

    The run keeps their networks in its checkpoints, so resuming does not need the file again.
    """
    if weights is None:
        return state
    if trainer.sharing.num_beside:
        return state._replace(beside=jax.tree.map(_in_place_of, state.beside, weights))
    learner: Any = trainer.learner
    experienced = learner.having_learned(state.learner, weights)
    is_expert = among(trainer.experts, trainer.world.num_agents)
    return state._replace(learner=jax.jit(learner.with_agents)(state.learner, experienced, jnp.asarray(is_expert)))


def _in_place_of(placeholder: jax.Array, weights: Any) -> jax.Array:
    """Return weights on the devices of their placeholder."""
    return jax.device_put(weights, placeholder.sharding if placeholder.committed else None)


def teachers_weights(config: TrainConfig, trainer: AnyTrainer) -> Any:
    """Return the networks of the run's experienced teachers, checked to fit; None if it has none."""
    if not config.teachers:
        return None
    learner: Any = trainer.learner
    path = Path(config.teachers)
    parameters, theirs = learned_policy(path, trust=str(config.env))
    ours, others = (" ".join([each.env, *each.set]) for each in (config, theirs))
    if ours != others:
        raise UsageError(
            f"the agents of {path} learned in {others}, and this run is in {ours}: teachers must know the environment."
        )
    like = jax.eval_shape(lambda key: learner.parameters(learner.init(key)), jax.random.key(0))
    kinds = [
        [
            (jax.tree_util.keystr(name), leaf.shape, leaf.dtype)
            for name, leaf in jax.tree_util.tree_leaves_with_path(tree)
        ]
        for tree in (like, parameters)
    ]
    if kinds[0] != kinds[1]:
        raise UsageError(
            f"the networks of {path} do not fit this run's: they were learned by {theirs.method} "
            f"with hidden_size {theirs.hidden_size}, learn.head {_told(theirs.learn.head)} and learn.footprints "
            f"{_told(theirs.learn.footprints)}."
        )
    return parameters


def _told(value: Any) -> Any:
    return {True: "on", False: "off"}.get(value, getattr(value, "value", value))
