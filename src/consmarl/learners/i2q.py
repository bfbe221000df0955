"""I2Q: independent Q-learning that assumes the other agents act optimally from the next step on.

Each agent has three networks: Q, which acts; Q^ss(h, h'), the value of a transition between two memories; and V(h), an
estimate of the best observed value of Q^ss, by expectile regression. Targets use V(h') as the value of what follows,
which does not depend on the others' current behaviour. This is the recurrent, discrete variant of the method's own
code.

Axes: `[step, episode, …]`.
"""

import functools
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import optax

from consmarl.environments.validation import Fraction, Size
from consmarl.learners import td
from consmarl.learners.interface import EpisodeBatch, Metrics
from consmarl.learners.rewards import RewardOf, rewarded
from consmarl.learners.team_networks import TeamNetworks, Weights
from consmarl.learners.temporal_difference import QState, TDLearner, allowed_next, following_best
from consmarl.metrics import LEARNING, Metric
from consmarl.networks.linear import Linear, apply_perceptron, init_perceptron


class I2QNetworks(NamedTuple):
    """One agent's networks, or one item for each of the three; [agent, …] for a team."""

    action_value: Any  # Q, a `DRQNParameters`
    pair_value: Any  # Q^ss, a perceptron
    state_value: Any  # V, a perceptron


class Experience(NamedTuple):
    """One agent's episodes, as needed by its losses."""

    inputs: jax.Array  # [step + 1, episode, input]
    actions: jax.Array  # int32 [step, episode]
    rewards: jax.Array  # [step, episode]
    batch: EpisodeBatch  # all agents', except for `allowed`, which is this agent's
    settled: jax.Array | None  # how far the learner has settled; None if it never does


class Goals(NamedTuple):
    """The targets and fixed inputs of the three networks."""

    hidden_tm1: jax.Array  # h [step, episode, hidden], the target network's
    hidden_t: jax.Array  # h'
    ideal: jax.Array  # r + γ V̄(h')
    pair_value: jax.Array  # Q̄^ss(h, h')
    target_values_t: jax.Array  # Q̄(h', ·)


@dataclass(frozen=True)
class I2Q(TDLearner):
    """Independent Q-learning with ideal transitions; defaults are the paper's, or else the method's own code's."""

    reward_of: RewardOf = RewardOf.INDIVIDUAL
    value_size: Size = 256
    """Width of the networks for ideal values [its own code: 256]."""
    expectile: Fraction = 0.52
    """How far the ideal value leans towards the best that was observed [its own code: 0.52]."""
    ideal_weight: Fraction = 0.2
    """Lambda, the weight of the ideal target relative to the ordinary one [its own code: 0.2]."""

    metrics: ClassVar[tuple[Metric, ...]] = (
        *TDLearner.metrics,
        Metric("pair_loss", family=LEARNING, more_is_better=False),
        Metric("state_loss", family=LEARNING, more_is_better=False),
        Metric("state_value", family=LEARNING, unit="reward"),
    )

    @property
    def networks(self) -> TeamNetworks:
        """The networks that act; each agent has its own."""
        return TeamNetworks(self.spec, Weights.SEPARATE, self.hidden_size, self.head, self.footprints)

    @property
    def _pair_sizes(self) -> tuple[int, ...]:
        return (2 * self.hidden_size, self.value_size, self.value_size, 1)

    @property
    def _state_sizes(self) -> tuple[int, ...]:
        return (self.hidden_size, self.value_size, self.value_size, 1)

    def init(self, key: jax.Array) -> QState:
        """Draw initial weights."""
        key_action, key_pair, key_state = jax.random.split(key, 3)
        num_agents = self.spec.num_agents

        def perceptrons(key: jax.Array, sizes: tuple[int, ...]) -> tuple[Linear, ...]:
            return jax.vmap(lambda key: init_perceptron(key, sizes))(jax.random.split(key, num_agents))

        online = I2QNetworks(
            self.networks.init(key_action),
            perceptrons(key_pair, self._pair_sizes),
            perceptrons(key_state, self._state_sizes),
        )
        # one optimiser and one gradient norm for all agents' networks of a kind, as in the method's own code
        optimisers = I2QNetworks(*(self.optimiser.transformation().init(each) for each in online))
        return self.first_state(online, optimisers)

    def acting(self, online: I2QNetworks) -> Any:
        """Return the action-value networks."""
        return online.action_value

    def acting_by(self, online: I2QNetworks, parameters: Any) -> I2QNetworks:
        """Return networks whose action-value networks have these parameters."""
        return online._replace(action_value=parameters)

    def update(self, state: QState, batch: EpisodeBatch, key: jax.Array) -> tuple[QState, Metrics]:
        """Take one gradient step on each of the three losses."""
        del key
        batch = rewarded(batch, self.reward_of)
        of_agent = functools.partial(self._agent_gradient, settled=self.settled(state))
        metrics, gradients = self.networks.gradients(of_agent, (state.online, state.target), batch)
        transformation = self.optimiser.transformation()
        stepped = [transformation.update(*each) for each in zip(gradients, state.optimiser, strict=True)]
        online = optax.apply_updates(state.online, I2QNetworks(*(changes for changes, _ in stepped)))
        metrics["gradient_norm"] = optax.tree.norm(gradients.action_value)[None]
        return self.next_state(state, online, I2QNetworks(*(optimiser for _, optimiser in stepped))), metrics

    def _agent_gradient(
        self,
        agent: jax.Array,
        parameters: tuple[I2QNetworks, I2QNetworks],
        codes: jax.Array,
        actions: jax.Array,
        rewards: jax.Array,
        batch: EpisodeBatch,
        settled: jax.Array | None = None,
    ) -> tuple[Metrics, I2QNetworks]:
        """Return the gradient of the losses for one agent's networks, and metrics."""
        online, target = parameters
        experience = Experience(
            inputs=self.networks.episode_inputs(agent, codes, actions),
            actions=actions.T.astype(jnp.int32),
            rewards=rewards.T,
            batch=batch,
            settled=settled,
        )
        goals = self._goals(target, experience)
        # each loss depends on one network only, so the gradient of the sum consists of the three gradients
        gradient, metrics = jax.grad(self._losses, has_aux=True)(online, goals, experience)
        return metrics, gradient

    def _goals(self, target: I2QNetworks, experience: Experience) -> Goals:
        """Return the targets, computed with the target networks."""
        hiddens, values = self.networks.unroll(target.action_value, experience.inputs)
        hidden_tm1, hidden_t = hiddens[:-1], hiddens[1:]
        following = _scalar(target.state_value, hidden_t)
        return Goals(
            hidden_tm1=hidden_tm1,
            hidden_t=hidden_t,
            ideal=td.td_targets(experience.rewards, self.continues(experience.batch), following, self.discount),
            pair_value=_scalar(target.pair_value, _pairs(hidden_tm1, hidden_t)),
            target_values_t=values[1:],
        )

    def _losses(self, online: I2QNetworks, goals: Goals, experience: Experience) -> tuple[jax.Array, Metrics]:
        """Return the sum of the three losses."""
        mask, may_be_empty = self.counted(experience.batch), experience.batch.allowed is not None
        pair_values = _scalar(online.pair_value, _pairs(goals.hidden_tm1, goals.hidden_t))
        pair_loss = td.masked_squared_error(pair_values, goals.ideal, mask, may_be_empty=may_be_empty)

        state_values = _scalar(online.state_value, goals.hidden_tm1)
        weights = td.expectile_weights(jax.lax.stop_gradient(state_values), goals.pair_value, self.expectile)
        state_loss = td.masked_squared_error(state_values, goals.pair_value, mask * weights, may_be_empty=may_be_empty)

        _, values = self.networks.unroll(online.action_value, experience.inputs)
        chosen = td.chosen_values(values[:-1], experience.actions)
        online_values_t, allowed_t = jax.lax.stop_gradient(values[1:]), allowed_next(experience.batch)
        following = following_best(goals.target_values_t, experience.actions, online_values_t, allowed_t)
        ordinary = self.targets(experience.rewards, following, experience.batch, experience.settled)
        targets = self.ideal_weight * goals.ideal + (1 - self.ideal_weight) * ordinary
        action_loss, metrics = self.td_loss(chosen, targets, experience.batch)
        return pair_loss + state_loss + action_loss, metrics | {
            "pair_loss": pair_loss,
            "state_loss": state_loss,
            "state_value": jnp.sum(mask * state_values) / td.total_weight(mask, may_be_empty=may_be_empty),
        }


def _pairs(hidden_tm1: jax.Array, hidden_t: jax.Array) -> jax.Array:
    return jnp.concatenate([hidden_tm1, hidden_t], axis=-1)


def _scalar(layers: tuple[Linear, ...], inputs: jax.Array) -> jax.Array:
    return apply_perceptron(layers, inputs)[..., 0]
