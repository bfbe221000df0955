"""Independent Q-learning (IQL): every agent learns from its own episodes, with a recurrent Q-network."""

import enum
import functools
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import optax

from consmarl.learners import td
from consmarl.learners.interface import EpisodeBatch, Metrics
from consmarl.learners.rewards import RewardOf, rewarded
from consmarl.learners.team_networks import TeamNetworks, Weights
from consmarl.learners.temporal_difference import QState, TDLearner, allowed_next, following_best, over_branches
from consmarl.networks.drqn import DRQNParameters


class TargetMemory(enum.Enum):
    """Where the target network's memory starts."""

    NEXT_OBSERVATIONS = "next-observations"  # the authors' code: it never sees the first observation
    WHOLE_EPISODE = "whole-episode"


@dataclass(frozen=True)
class IQL(TDLearner):
    """Independent recurrent Q-learning; defaults are the paper's."""

    weights: Weights = Weights.SEPARATE
    reward_of: RewardOf = RewardOf.INDIVIDUAL
    target_memory: TargetMemory = TargetMemory.NEXT_OBSERVATIONS
    """Where the target network's memory starts [C: next-observations]."""
    double_q: bool = False
    """Whether the online network selects the best action [P: no; ours: yes for VDN and QMIX]."""

    handles_branches: ClassVar[bool] = True

    @property
    def networks(self) -> TeamNetworks:
        """The networks that act and learn."""
        return TeamNetworks(self.spec, self.weights, self.hidden_size, self.head, self.footprints)

    def init(self, key: jax.Array) -> QState:
        """Draw initial weights."""
        online = self.networks.init(key)
        return self.first_state(online, jax.vmap(self.optimiser.transformation().init)(online))

    def update(self, state: QState, batch: EpisodeBatch, key: jax.Array) -> tuple[QState, Metrics]:
        """Take one gradient step on the loss, for each network separately."""
        del key
        batch = rewarded(batch, self.reward_of)
        metrics, gradients = self.gradients(state.online, state.target, batch, self.settled(state))
        changes, optimiser = jax.vmap(self.optimiser.transformation().update)(gradients, state.optimiser)
        metrics["gradient_norm"] = jax.vmap(optax.tree.norm)(gradients)
        return self.next_state(state, optax.apply_updates(state.online, changes), optimiser), metrics

    def gradients(
        self, online: DRQNParameters, target: DRQNParameters, batch: EpisodeBatch, settled: jax.Array | None = None
    ) -> tuple[Metrics, Any]:
        """Return metrics and the gradient, for every network."""
        of_agent = functools.partial(self.agent_gradient, settled=settled)
        return self.networks.gradients(of_agent, (online, target), batch)

    def agent_gradient(
        self,
        agent: jax.Array,
        parameters: tuple[DRQNParameters, DRQNParameters],
        codes: jax.Array,
        actions: jax.Array,
        rewards: jax.Array,
        batch: EpisodeBatch,
        settled: jax.Array | None = None,
    ) -> tuple[Metrics, DRQNParameters]:
        """Return metrics and the loss's gradient with respect to one agent's network.

        `batch` is that of all agents, except for `allowed`, which is this agent's.
        """
        online, target = parameters
        inputs = self.networks.episode_inputs(agent, codes, actions)
        taken = actions.swapaxes(0, 1).astype(jnp.int32)
        target_values_t = self._target_values(target, inputs)
        online_values_t = self.networks.unroll(online, inputs)[1][1:] if self.double_q else None
        following = following_best(target_values_t, taken, online_values_t, allowed_next(batch))
        following = over_branches(following, self.spec.num_branches)
        targets = self.targets(rewards.T, following, batch, settled)

        def loss(online: DRQNParameters) -> tuple[jax.Array, Metrics]:
            _, values_tm1 = self.networks.unroll(online, inputs[:-1])
            return self.td_loss(td.chosen_values(values_tm1, taken), targets, batch)

        gradient, metrics = jax.grad(loss, has_aux=True)(online)
        return metrics, gradient

    def _target_values(self, target: DRQNParameters, inputs: jax.Array) -> jax.Array:
        """Return the target network's values after every step: [step, episode, action]."""
        if self.target_memory is TargetMemory.WHOLE_EPISODE:
            return self.networks.unroll(target, inputs)[1][1:]
        return self.networks.unroll(target, inputs[1:])[1]
