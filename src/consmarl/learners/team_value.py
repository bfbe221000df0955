"""Learning a team value that combines the agents' values: the common base of VDN, QMIX and MAVEN.

Agents act on their own values; for learning, a mixer combines the values of the chosen actions into one, which is
trained on the team's reward. Methods differ in their mixers.

Axes: `[agent, step, episode, …]`, and `[step, episode, …]` for the team.
"""

import abc
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import NDArray

from consmarl.environments.branches import is_there
from consmarl.errors import UsageError
from consmarl.learners import td
from consmarl.learners.devices import map_agents
from consmarl.learners.interface import EpisodeBatch, Metrics
from consmarl.learners.rewards import team_reward
from consmarl.learners.team_networks import TeamNetworks, Weights
from consmarl.learners.temporal_difference import Following, QState, TDLearner, following_best, over_branches
from consmarl.networks.linear import join_last


class ValueNetworks(NamedTuple):
    """The networks behind a team's value."""

    agents: Any  # `DRQNParameters` [network, …]
    mixer: Any


@dataclass(frozen=True)
class TeamValue(TDLearner):
    """A learner of a team value; subclasses define the mixer."""

    weights: Weights = Weights.SHARED
    double_q: bool = True
    """Whether the online network selects the best action [ours: yes; C: no for MAVEN]."""

    @abc.abstractmethod
    def init_mixer(self, key: jax.Array) -> Any:
        """Draw the mixer's initial weights."""

    @abc.abstractmethod
    def mix(self, mixer: Any, values: jax.Array, states: jax.Array) -> jax.Array:
        """Return the team's value: agents' values [agent, step, episode], states [step, episode, feature]."""

    @property
    def networks(self) -> TeamNetworks:
        """The networks that act."""
        return TeamNetworks(self.spec, self.weights, self.hidden_size, self.head, self.footprints)

    def init_networks(self, key: jax.Array) -> Any:
        """Draw all initial weights."""
        key_agents, key_mixer = jax.random.split(key)
        return ValueNetworks(self.networks.init(key_agents), self.init_mixer(key_mixer))

    def transformation(self) -> optax.GradientTransformation:
        """Return the optimiser: one for everything, with a single gradient norm to clip."""
        return self.optimiser.transformation()

    def init(self, key: jax.Array) -> QState:
        """Draw initial weights."""
        online = self.init_networks(key)
        return self.first_state(online, self.transformation().init(online))

    def acting(self, online: Any) -> Any:
        """Return the agents' networks."""
        return online.agents

    def acting_by(self, online: Any, parameters: Any) -> Any:
        """Return networks whose agents have these parameters."""
        return online._replace(agents=parameters)

    def with_agents(self, state: QState, other: QState, is_other: NDArray[np.bool_]) -> QState:
        """Refuse: an agent's values are meaningful only with the mixer, which belongs to the whole team."""
        del state, other, is_other
        raise UsageError("the team learns one value together, so none of its agents can be replaced.")

    def update(self, state: QState, batch: EpisodeBatch, key: jax.Array) -> tuple[QState, Metrics]:
        """Take one gradient step on the loss."""
        del key
        gradient, metrics = jax.grad(self.loss, has_aux=True)(state.online, state.target, batch, self.settled(state))
        changes, optimiser = self.transformation().update(gradient, state.optimiser)
        metrics["gradient_norm"] = optax.tree.norm(gradient)
        return self.next_state(state, optax.apply_updates(state.online, changes), optimiser), metrics

    def loss(
        self, online: Any, target: Any, batch: EpisodeBatch, settled: jax.Array | None = None
    ) -> tuple[jax.Array, Metrics]:
        """Return the loss and metrics."""
        return self.team_loss(online, target, self.action_values(online.agents, batch), batch, settled)

    def action_values(self, agents: Any, batch: EpisodeBatch) -> jax.Array:
        """Return every agent's values of its actions: [agent, step + 1, episode, action]."""

        def of_agent(each: tuple[jax.Array, Any, jax.Array, jax.Array]) -> jax.Array:
            agent, parameters, codes, actions = each
            return self.networks.unroll(parameters, self.networks.episode_inputs(agent, codes, actions))[1]

        numbers = jnp.arange(self.spec.num_agents)
        codes = self.networks.noticed(batch.codes)
        values: jax.Array = map_agents(of_agent, (numbers, self.networks.by_agent(agents), codes, batch.actions))
        return values

    def team_states(self, batch: EpisodeBatch) -> jax.Array:
        """Return all agents' observations, concatenated: [step + 1, episode, agent · observation]."""
        return join_last(self.spec.observations(batch.codes.transpose(2, 1, 0, 3)))

    def team_loss(
        self, online: Any, target: Any, values: jax.Array, batch: EpisodeBatch, settled: jax.Array | None = None
    ) -> tuple[jax.Array, Metrics]:
        """Return the error of the team's value, and metrics."""
        states = self.team_states(batch)
        taken = batch.actions.swapaxes(1, 2).astype(jnp.int32)
        chosen = td.chosen_values(values[:, :-1], taken)
        if self.spec.num_branches > 1:
            chosen = chosen.mean(axis=-1)  # an agent's value of its action, as in `over_branches`
        allowed = None if batch.allowed is None else batch.allowed.swapaxes(1, 2)  # [agent, step + 1, episode, …]
        if allowed is not None:  # absent agents add nothing to the team's value
            chosen = jnp.where(is_there(allowed[:, :-1], self.spec.num_branches), chosen, 0.0)
        total = self.mix(online.mixer, chosen, states[:-1])
        allowed_t = None if allowed is None else allowed[:, 1:]
        following = self._following(target, values[:, 1:], taken, states[1:], batch, allowed_t)
        of_team = batch._replace(allowed=None)  # the team's episode goes on when agents leave
        # online values only select the best action here: no gradient must flow through the targets
        targets = jax.lax.stop_gradient(self.targets(team_reward(batch).T, following, of_team, settled))
        return self.td_loss(total, targets, of_team)

    def _following(
        self,
        target: Any,
        online_values_t: jax.Array,
        actions: jax.Array,
        states_t: jax.Array,
        batch: EpisodeBatch,
        allowed: jax.Array | None = None,
    ) -> Following:
        """Return the team's `Following`: Q̄_tot(s', best actions) after each step, and how the actions taken compare."""
        values_t = self.action_values(target.agents, batch)[:, 1:]
        choosing = online_values_t if self.double_q else None
        each = jax.vmap(following_best)(values_t, actions, choosing, allowed)
        each = over_branches(each, self.spec.num_branches)
        # the team's action is best if every agent's is; its shortfall is the largest of any agent
        return Following(
            self.mix(target.mixer, each.values, states_t), each.is_best.all(axis=0), each.shortfall.max(axis=0)
        )
