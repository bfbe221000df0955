"""Temporal-difference learning, one function per equation: for one agent, over whole episodes.

Axes: `[step, episode, …]`, as in the recurrent networks.
"""

import enum
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from consmarl.environments.masks import is_present


class Target(enum.Enum):
    """The target that a value is regressed towards."""

    ONE_STEP = "one-step"  # the paper's: the reward, plus the target network's value of what follows
    WATKINS = "watkins"  # Watkins' Q(λ): the observed return, up to the first action that was not the best one
    OPTIMISTIC = "optimistic"  # Watkins', but continued past such an action if it turned out better than expected


def step_mask(num_steps: jax.Array, limit: int) -> jax.Array:
    """Return 1 for steps that were played and 0 for padding: float32 [step, episode]."""
    return (jnp.arange(limit)[:, None] < num_steps[None, :]).astype(jnp.float32)


def continues(num_steps: jax.Array, terminated: jax.Array, limit: int, *, bootstrap_time_limit: bool) -> jax.Array:
    """Return 1 if a value follows the step, 0 if the episode ended with it: float32 [step, episode].

    In the paper, reaching the time limit is as final as the end of the task; with `bootstrap_time_limit` only the end
    of the task is.
    """
    is_last = jnp.arange(limit)[:, None] == num_steps[None, :] - 1
    is_final = is_last & terminated[None, :] if bootstrap_time_limit else is_last
    return 1.0 - is_final


def allowed_values(values: jax.Array, allowed: jax.Array | None) -> jax.Array:
    """Return action values [..., action], with −∞ for forbidden actions, and 0 for all actions of an absent agent."""
    if allowed is None:
        return values
    return jnp.where(allowed, values, jnp.where(is_present(allowed)[..., None], -jnp.inf, 0.0))


def chosen_values(values: jax.Array, actions: jax.Array) -> jax.Array:
    """Return Q(o, a) of the actions taken: [..., action], [...] → [...]."""
    is_chosen = actions[..., None] == jnp.arange(values.shape[-1]).reshape((1,) * actions.ndim + (-1,))
    return jnp.sum(jnp.where(is_chosen, values, 0.0), axis=-1)


def td_targets(rewards_t: jax.Array, continues_t: jax.Array, values_t: jax.Array, discount: float) -> jax.Array:
    """Return y of Eq. 3: r + γ v', without v' after a final step; v' [step, episode] is the best action's value."""
    return rewards_t + discount * continues_t * values_t


def has_next(mask: jax.Array) -> jax.Array:
    """Return whether another step was played after this one: bool [step, episode], from the mask of played steps."""
    return jnp.concatenate([mask[1:] > 0, jnp.zeros((1, mask.shape[1]), bool)])


def lambda_targets(
    rewards_t: jax.Array,
    continues_t: jax.Array,
    values_t: jax.Array,
    keeps_trace_t: jax.Array,
    optimism_t: jax.Array,
    trace_decay: float,
    discount: float,
) -> jax.Array:
    """Q(λ): G_t = r_t + γ [(1 − c_t) v_t + c_t G_{t+1}], without the second term after a final step: [step, episode].

    v_t is the value of what follows the step. c_t = λ where `keeps_trace_t`; elsewhere, c_t is λ times `optimism_t` if
    G_{t+1} exceeds v_t, and 0 otherwise, which gives the one-step target.
    """

    def step_back(return_t: jax.Array, now: tuple[jax.Array, ...]) -> tuple[jax.Array, jax.Array]:
        reward, goes_on, value, keeps_trace, optimism = now
        trace = trace_decay * jnp.where(keeps_trace, 1.0, optimism * (return_t > value))
        return_tm1 = reward + discount * goes_on * (value + trace * (return_t - value))
        return return_tm1, return_tm1

    steps = (rewards_t, continues_t, values_t, keeps_trace_t, optimism_t)
    return jax.lax.scan(step_back, jnp.zeros_like(rewards_t[0]), steps, reverse=True)[1]


class Followed(NamedTuple):
    """The inputs from which targets are computed."""

    rewards: jax.Array  # [step, episode]
    continues: jax.Array  # [step, episode], 1 if a value follows
    values: jax.Array  # [step, episode], of what follows, by the target network
    has_next: jax.Array  # bool [step, episode], whether another step was played
    is_best: jax.Array  # bool [step, episode], whether the next action taken counts as the best one
    settled: jax.Array | None  # how far the learner has settled, from 0 to 1; None if it never does
    trace_decay: float  # λ
    discount: float  # γ


def one_step_targets(followed: Followed) -> jax.Array:
    """Return the paper's targets."""
    return td_targets(followed.rewards, followed.continues, followed.values, followed.discount)


def watkins_targets(followed: Followed, optimism: jax.Array | float = 0.0) -> jax.Array:
    """Return Watkins' targets; `optimism` keeps traces past actions that turned out better than expected."""
    return lambda_targets(
        followed.rewards,
        followed.continues,
        followed.values,
        followed.has_next & followed.is_best,
        followed.has_next * jnp.asarray(optimism, jnp.float32),
        followed.trace_decay,
        followed.discount,
    )


def optimistic_targets(followed: Followed) -> jax.Array:
    """Return optimistic targets; optimism helps to discover rewards, and fades as the learner settles."""
    return watkins_targets(followed, 1.0 if followed.settled is None else 1 - followed.settled)


# a new target needs an entry here and a member of `Target`
TARGETS: dict[Target, Callable[[Followed], jax.Array]] = {
    Target.ONE_STEP: one_step_targets,
    Target.WATKINS: watkins_targets,
    Target.OPTIMISTIC: optimistic_targets,
}


def expectile_weights(predictions: jax.Array, targets: jax.Array, expectile: float) -> jax.Array:
    """Return each squared error's weight: the expectile if the target is above the prediction, else 1 − expectile."""
    return jnp.where(targets > predictions, expectile, 1 - expectile)


def masked_squared_error(
    predictions: jax.Array, targets: jax.Array, mask: jax.Array, *, may_be_empty: bool = False
) -> jax.Array:
    """Return the loss of Eq. 3: the mean of (y − Q)² over the steps that were played."""
    return jnp.sum(mask * (predictions - targets) ** 2) / total_weight(mask, may_be_empty=may_be_empty)


def total_weight(mask: jax.Array, *, may_be_empty: bool) -> jax.Array:
    """Return the divisor of a masked mean; with `may_be_empty` it is never 0, so that a mean over no steps is 0."""
    total = jnp.sum(mask)
    return jnp.maximum(total, jnp.finfo(mask.dtype).tiny) if may_be_empty else total
