"""Episodes transformed by the environment's symmetries: more data to learn from, at almost no cost."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from consmarl.environments.symmetry import Symmetry
from consmarl.learners.interface import EpisodeBatch


@dataclass(frozen=True)
class Mirroring:
    """Transforms episodes; a batch is divided as evenly as possible among the symmetries and the identity."""

    symmetries: tuple[Symmetry, ...] = ()
    limits: tuple[int, ...] = ()  # the largest value of each code

    @classmethod
    def of(cls, world: Any) -> "Mirroring":
        """Read the symmetries from an environment."""
        symmetries = getattr(world, "symmetries", ())
        return cls(symmetries, tuple(world.observation_limit.tolist()) if symmetries else ())

    def mirrored(self, batch: EpisodeBatch) -> EpisodeBatch:
        """Return the batch with parts of it transformed by each symmetry."""
        if not self.symmetries:
            return batch
        ways: tuple[Symmetry | None, ...] = (None, *self.symmetries)
        # batches are drawn at random, so it does not matter which episodes are transformed which way
        bounds = np.linspace(0, len(batch.num_steps), len(ways) + 1).round().astype(int)
        parts = [(way, slice(*ends)) for way, ends in zip(ways, itertools.pairwise(bounds), strict=True)]
        codes = [self._codes(batch.codes[:, part], way) for way, part in parts]
        actions = [_actions(batch.actions[:, part], way) for way, part in parts]
        allowed = batch.allowed
        if allowed is not None:
            allowed = jnp.concatenate([_allowed(allowed[:, part], way) for way, part in parts], axis=1)
        return batch._replace(
            codes=jnp.concatenate(codes, axis=1), actions=jnp.concatenate(actions, axis=1), allowed=allowed
        )

    def _codes(self, codes: jax.Array, way: Symmetry | None) -> jax.Array:
        if way is None:
            return codes
        turned = codes[..., np.array(way.codes)]
        for index in way.counts_down:
            turned = turned.at[..., index].set(self.limits[index] - turned[..., index])
        return turned


def _actions(actions: jax.Array, way: Symmetry | None) -> jax.Array:
    return actions if way is None else _table(way.actions, actions)[actions.astype(jnp.int32)]


def _allowed(allowed: jax.Array, way: Symmetry | None) -> jax.Array:
    return allowed if way is None else allowed[..., np.argsort(way.actions)]


def _table(values: Sequence[int], like: jax.Array) -> jax.Array:
    return jnp.asarray(values, like.dtype)
