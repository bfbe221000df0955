"""A method of your own: hysteretic Q-learning (Matignon et al., IROS 2007) in a dozen lines.

    consmarl --plugin examples/extending/hysteretic.py train --method hysteretic --learn.hysteresis 0.5

Agents that learn at the same time suffer from each other's exploration, and may mistake a teammate's bad action for
their own. A hysteretic learner therefore learns more slowly from bad surprises than from good ones. Here that is a
weight on the squared error where the target is below the value; everything else is as in IQL.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

import consmarl
from consmarl.environments.validation import Fraction
from consmarl.learners import td
from consmarl.learners.interface import EpisodeBatch, Metrics
from consmarl.learners.iql import IQL


@dataclass(frozen=True)
class HystereticIQL(IQL):
    """IQL that learns more slowly from bad surprises than from good ones."""

    hysteresis: Fraction = 0.4
    """Weight of errors whose target is below the value; 1 is IQL."""

    def td_loss(self, chosen: jax.Array, targets: jax.Array, batch: EpisodeBatch) -> tuple[jax.Array, Metrics]:
        """Return the loss with errors weighted by their sign, and metrics."""
        mask = td.step_mask(batch.num_steps, len(chosen))
        weights = jnp.where(targets < chosen, self.hysteresis, 1.0)
        loss = jnp.sum(mask * weights * jnp.square(chosen - targets)) / mask.sum()
        _, metrics = super().td_loss(chosen, targets, batch)
        return loss, metrics | {"loss": loss}


consmarl.register_method(
    "hysteretic", HystereticIQL, "IQL that follows bad surprises more slowly", weights_by_world=True
)
