"""Learning action values by temporal differences: the common base of all Q-learners here.

A method defines its values; targets, masks and the loss are the same for all.
Axes: `[step, episode, …]`.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from consmarl.environments.branches import is_there
from consmarl.environments.validation import Fraction, NotNegative
from consmarl.errors import UsageError
from consmarl.learners import td
from consmarl.learners.averaging import averaged_after
from consmarl.learners.interface import EpisodeBatch, Metrics, TeamSpec
from consmarl.learners.optimiser import Optimiser, RMSprop
from consmarl.learners.recurrent import RecurrentQ
from consmarl.learners.targets import copied_when_due, copy_of
from consmarl.metrics import GRADIENT_NORM, LOSS, Q_VALUE, TD_ERROR, Metric
from consmarl.networks.drqn import Head
from consmarl.records import internal


class QState(NamedTuple):
    """A Q-learner's training state."""

    online: Any
    target: Any
    optimiser: Any
    averaged: Any  # the acting weights, averaged over updates; () if not needed
    num_updates: jax.Array  # int32


class Following(NamedTuple):
    """The best action after each step, and how the action actually taken compares with it."""

    values: jax.Array  # [step, episode], of the best action, by the target network
    is_best: jax.Array  # bool [step, episode], whether the next action taken is the best one
    shortfall: jax.Array  # [step, episode], by how much the next action taken looks worse than the best


@dataclass(frozen=True)
class TDLearner(RecurrentQ[QState]):
    """A Q-learner; defaults are the paper's."""

    spec: TeamSpec
    hidden_size: int = 64
    discount: float = 0.99  # γ
    target: td.Target = td.Target.ONE_STEP
    """What values are regressed towards [P: one-step]."""
    trace_decay: Fraction = 0.8
    """Lambda of targets that look beyond one step [ours: 0.8]."""
    settle_after: Fraction = 1.0
    """Fraction of the run after which optimism fades and trace_tolerance is phased in [P: 1, never]."""
    trace_tolerance: NotNegative = 0.0
    """How much worse than the best an action may look at the end of the run and still keep the trace [P: 0]."""
    head: Head = Head.PLAIN
    """How a network computes action values [P: plain]."""
    footprints: bool = False
    """Whether networks get their agent's own path in this episode: how often it has been on each cell in view, and
    in which directions there are cells it has not seen [P: no]."""
    run_updates: int = internal(1)  # number of updates in the run, needed for settling
    target_every_updates: int = 200
    optimiser: Optimiser = field(default_factory=RMSprop)
    bootstrap_time_limit: bool = False
    averages_weights: bool = False
    """Whether to evaluate and export weights averaged over the last updates [P: no]."""

    handles_masks: ClassVar[bool] = True
    metrics: ClassVar[tuple[Metric, ...]] = (LOSS, TD_ERROR, Q_VALUE, GRADIENT_NORM)

    def acting(self, online: Any) -> Any:
        """Return the networks that act."""
        return online

    def parameters(self, state: QState) -> Any:
        """Return the online networks that act."""
        return self.acting(state.online)

    def evaluated_parameters(self, state: QState) -> Any:
        """Return the networks for evaluation: averaged ones, if there are any."""
        return state.averaged if self.averages_weights else self.parameters(state)

    def first_state(self, online: Any, optimiser: Any) -> QState:
        """Return the state before the first update; targets start equal to the online networks."""
        averaged = copy_of(self.acting(online)) if self.averages_weights else ()
        return QState(online, copy_of(online), optimiser, averaged, jnp.zeros((), jnp.int32))

    def next_state(self, state: QState, online: Any, optimiser: Any) -> QState:
        """Return the state after an update that led to these networks."""
        target = copied_when_due(state.target, online, state.num_updates, self.target_every_updates)
        averaged = state.averaged
        if self.averages_weights:
            averaged = averaged_after(averaged, self.acting(online), state.num_updates)
        return QState(online, target, optimiser, averaged, state.num_updates + 1)

    def having_learned(self, state: QState, parameters: Any) -> QState:
        """Return an initial state whose agents act with parameters that were learned elsewhere."""
        averaged = parameters if self.averages_weights else ()
        online, target = (self.acting_by(networks, parameters) for networks in (state.online, state.target))
        return state._replace(online=online, target=target, averaged=averaged)

    def acting_by(self, online: Any, parameters: Any) -> Any:
        """Return networks of which the acting ones have these parameters."""
        del online
        return parameters

    def with_agents(self, state: QState, other: QState, is_other: NDArray[np.bool_]) -> QState:
        """Return a state in which some agents have the networks and optimiser statistics of another state."""
        if self.networks.is_shared:
            raise UsageError("all agents share one network, so none can be replaced: choose --weights separate.")

        def chosen(theirs: jax.Array, ours: jax.Array) -> jax.Array:
            if not ours.ndim or len(ours) != len(is_other):  # shared by all agents, such as a step count
                return ours
            return jnp.where(is_other.reshape((-1,) + (1,) * (ours.ndim - 1)), theirs, ours)

        *parts, num_updates = state
        of_agents: list[Any] = jax.tree.map(chosen, list(other[:-1]), parts)
        return QState(*of_agents, num_updates)  # type: ignore[call-arg]

    def continues(self, batch: EpisodeBatch) -> jax.Array:
        """Return 1 where a value follows the step: [step, episode].

        `batch.allowed` is one agent's, [episode, step + 1, …], or None. Nothing follows for an agent that leaves.
        """
        limit = batch.rewards.shape[-1]
        goes_on = td.continues(batch.num_steps, batch.terminated, limit, bootstrap_time_limit=self.bootstrap_time_limit)
        return goes_on if batch.allowed is None else goes_on * is_there(batch.allowed[:, 1:], self.spec.num_branches).T

    def counted(self, batch: EpisodeBatch) -> jax.Array:
        """Return 1 for steps to learn from: those played with the agent present; `batch.allowed` as in `continues`."""
        mask = td.step_mask(batch.num_steps, batch.rewards.shape[-1])
        return mask if batch.allowed is None else mask * is_there(batch.allowed[:, :-1], self.spec.num_branches).T

    def settled(self, state: QState) -> jax.Array | None:
        """Return how far the learner has settled: 0 until `settle_after`, 1 at the run's end; None if it never does."""
        if self.settle_after == 1:
            return None
        share_done = state.num_updates / self.run_updates
        return jnp.clip((share_done - self.settle_after) / (1 - self.settle_after), 0.0, 1.0)

    def targets(
        self, rewards: jax.Array, following: Following, batch: EpisodeBatch, settled: jax.Array | None = None
    ) -> jax.Array:
        """Return the targets for the values of the actions taken: [step, episode].

        Optimistic targets help to discover rewards but overrate luck. Once `settled`, unlucky episodes count as much
        as lucky ones.
        """
        is_best = following.is_best
        if settled is not None:
            is_best |= following.shortfall <= self.trace_tolerance * settled
        followed = td.Followed(
            rewards=rewards,
            continues=self.continues(batch),
            values=following.values,
            has_next=td.has_next(self.counted(batch)),
            is_best=is_best,
            settled=settled,
            trace_decay=self.trace_decay,
            discount=self.discount,
        )
        return td.TARGETS[self.target](followed)

    def td_loss(self, chosen: jax.Array, targets: jax.Array, batch: EpisodeBatch) -> tuple[jax.Array, Metrics]:
        """Return the mean squared error (Eq. 3) of the chosen actions' values, and metrics.

        With `chosen` [step, episode, branch], all branches have the same targets, and results are means over branches.
        """
        if chosen.ndim > targets.ndim:
            of_branches = jax.vmap(self.td_loss, (-1, None, None))(chosen, targets, batch)
            return jax.tree.map(jnp.mean, of_branches)
        mask, may_be_empty = self.counted(batch), batch.allowed is not None
        error = td.masked_squared_error(chosen, targets, mask, may_be_empty=may_be_empty)
        played = td.total_weight(mask, may_be_empty=may_be_empty)
        return error, {
            "loss": error,
            "td_error": jnp.sum(mask * jnp.abs(chosen - targets)) / played,
            "q_value": jnp.sum(mask * chosen) / played,
        }


def allowed_next(batch: EpisodeBatch) -> jax.Array | None:
    """Return the mask after every step, [step, episode, action], from one agent's `batch.allowed`; None without one."""
    return None if batch.allowed is None else batch.allowed[:, 1:].swapaxes(0, 1)


def following_best(
    values_t: jax.Array,
    actions: jax.Array,
    online_values_t: jax.Array | None = None,
    allowed_t: jax.Array | None = None,
) -> Following:
    """Return the value of the best allowed action after each step, and how the action taken compares with it.

    `values_t` [step, episode, …, action] are the target network's; `actions` [step, episode, …] were taken. If given,
    `online_values_t` select the best action (double Q-learning). Nothing is forbidden without `allowed_t`; the value is
    0 where the agent is absent.
    """
    if allowed_t is not None:
        values_t = td.allowed_values(values_t, allowed_t)
        online_values_t = None if online_values_t is None else td.allowed_values(online_values_t, allowed_t)
    choosing = values_t if online_values_t is None else online_values_t
    best = jnp.argmax(choosing, axis=-1)
    values = values_t.max(axis=-1) if online_values_t is None else td.chosen_values(values_t, best)
    taken_next = jnp.concatenate([actions[1:], actions[-1:]])
    return Following(values, taken_next == best, choosing.max(axis=-1) - td.chosen_values(choosing, taken_next))


def over_branches(following: Following, num_branches: int) -> Following:
    """Combine the `Following` of every dimension, [..., branch], into that of the whole action.

    The value of an action is the mean over its dimensions (Tavakoli et al. 2018), and so is its shortfall; an action is
    the best one if its choice is the best in every dimension.
    """
    if num_branches == 1:
        return following
    values, is_best, shortfall = following
    return Following(values.mean(axis=-1), is_best.all(axis=-1), shortfall.mean(axis=-1))
