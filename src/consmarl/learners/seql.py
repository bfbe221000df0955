"""SEQL, shared-experience Q-learning: every agent learns from all agents' episodes, through its own network."""

from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from consmarl.environments.validation import NotNegative
from consmarl.errors import UsageError
from consmarl.learners.devices import map_agents
from consmarl.learners.interface import EpisodeBatch, Metrics
from consmarl.learners.iql import IQL
from consmarl.learners.team_networks import Weights
from consmarl.metrics import LEARNING, Metric
from consmarl.networks.drqn import DRQNParameters


@dataclass(frozen=True)
class SEQL(IQL):
    """IQL whose loss has a second part: the same temporal-difference error on the other agents' episodes."""

    others_weight: NotNegative = 1.0
    """Lambda, the weight of others' episodes relative to an agent's own [its own code: 1]."""

    metrics: ClassVar[tuple[Metric, ...]] = (
        *IQL.metrics,
        Metric("others_loss", family=LEARNING, more_is_better=False),
    )

    def __post_init__(self) -> None:
        """Check that there are several networks, since experience is shared between them."""
        super().__post_init__()
        if self.weights is Weights.SHARED:
            raise UsageError(
                "seql lends experience to other agents' networks, and with shared weights there is one network alone, "
                "which has all experience anyway: choose --weights separate, or --method iql."
            )

    def gradients(
        self, online: DRQNParameters, target: DRQNParameters, batch: EpisodeBatch, settled: jax.Array | None = None
    ) -> tuple[Metrics, Any]:
        """Return the gradient of own error + λ · mean error on the others' episodes, for every agent's network."""
        agents = jnp.arange(self.spec.num_agents)

        def of_student(each: tuple[jax.Array, DRQNParameters, DRQNParameters]) -> tuple[Metrics, DRQNParameters]:
            student, own_online, own_target = each

            def of_episodes(row: tuple[Any, ...]) -> tuple[Metrics, DRQNParameters]:
                codes, actions, rewards, allowed = row
                own = (own_online, own_target)
                return self.agent_gradient(
                    student, own, codes, actions, rewards, batch._replace(allowed=allowed), settled
                )

            metrics, gradients = jax.lax.map(of_episodes, (*batch[:3], batch.allowed))
            weights = self._weights(agents == student)
            total = jax.tree.map(lambda rows: jnp.tensordot(weights, rows, axes=1), gradients)
            own = {name: rows[student] for name, rows in metrics.items()}
            others_loss = jnp.sum(jnp.where(agents == student, 0.0, weights) * metrics["loss"])
            return own | {"loss": own["loss"] + others_loss, "others_loss": others_loss}, total

        return map_agents(of_student, (agents, online, target))

    def _weights(self, is_own: jax.Array) -> jax.Array:
        """Return the weight of each agent's episodes: [agent].

        An episode has equally many steps for all agents, so the mean over all the others' steps is the mean of means.
        """
        num_others = max(self.spec.num_agents - 1, 1)
        return jnp.where(is_own, 1.0, self.others_weight / num_others)
