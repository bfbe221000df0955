"""Equations 1, 2 and 4 to 10 of the paper, and Algorithm 1: one function each, unbatched, for one observation.

Equation 3 is the learning loss, which sharing does not change: `learners/td.py`. Axes: values and policies
are `[action]`, messages from teachers `[teacher]`. Randomness is passed in as uniform draws from [0, 1), so that the
same draws give the same actions.

If some actions are forbidden, |A| is the number of `allowed` ones (bool `[action]`; with None, nothing is forbidden).
The values of forbidden actions are −∞, so their probabilities are 0.

If actions have several dimensions, values are `[branch, action]`. Whether an agent may and will teach is decided for
all dimensions together, by means over them; everything else is computed for each dimension separately, as if it were an
action of its own.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from consmarl.sharing.options import Normalisation


def asking_probability(num_visits: jax.Array, scale: float) -> jax.Array:
    """Eq. 1, P_ask = (1 + υ_a)^−√n: the better an agent knows an observation, the less it asks."""
    return (1.0 + scale) ** -jnp.sqrt(num_visits.astype(jnp.float32))


def giving_probability(
    num_visits: jax.Array, values: jax.Array, scale: float, allowed: jax.Array | None = None
) -> jax.Array:
    """Eq. 2, P_give = 1 − (1 + υ_g)^−(√n·|max Q − min Q|): higher for familiar observations and important choices."""
    if values.ndim == 1:
        importance = jnp.max(values) - jnp.min(_or(jnp.inf, values, allowed))
    else:
        importance = jnp.mean(jnp.max(values, axis=-1) - jnp.min(_or(jnp.inf, values, allowed), axis=-1))
    return 1.0 - (1.0 + scale) ** -(jnp.sqrt(num_visits.astype(jnp.float32)) * importance)


def policy_confidence(policy: jax.Array, allowed: jax.Array | None = None) -> jax.Array:
    """Eq. 4, Γ: the policy's normalised standard deviation, from 0 (uniform) to 1 (a single action)."""
    if allowed is None:
        num_actions = policy.shape[0]
        return jnp.minimum(num_actions * jnp.std(policy) / jnp.sqrt(num_actions - 1.0), 1.0)
    count = jnp.sum(allowed)
    # with one action Γ is 1; the root in the denominator is never 0
    deviation = jnp.where(count > 1, jnp.std(policy, where=allowed), 1.0)
    return jnp.minimum(count * deviation / jnp.sqrt(jnp.maximum(count - 1.0, 1.0)), 1.0)


def boltzmann_policy(values: jax.Array, temperature: float = 1.0) -> jax.Array:
    """Eq. 5, π: the softmax of action values, as probabilities."""
    return jax.nn.softmax(values / temperature)


def is_more_familiar(teacher_visits: jax.Array, student_visits: jax.Array) -> jax.Array:
    """Eq. 6, first half, n_j > n_i: whether the teacher has met the observation more often."""
    return teacher_visits > student_visits


def expected_value(values: jax.Array) -> jax.Array:
    """Return max Q, the return an agent expects; with several dimensions, the mean of their maxima."""
    return jnp.max(values) if values.ndim == 1 else jnp.mean(jnp.max(values, axis=-1))


def is_more_hopeful(teacher_values: jax.Array, student_values: jax.Array, margin: float = 0.0) -> jax.Array:
    """Eq. 6, second half, max Q_j > max Q_i: whether the teacher expects more; the paper has no margin."""
    return expected_value(teacher_values) > expected_value(student_values) + margin


def has_more_or_better_experience(
    teacher_visits: jax.Array,
    student_visits: jax.Array,
    teacher_values: jax.Array,
    student_values: jax.Array,
    margin: float = 0.0,
) -> jax.Array:
    """Eq. 6: whether either half holds."""
    is_familiar = is_more_familiar(teacher_visits, student_visits)
    return is_familiar | is_more_hopeful(teacher_values, student_values, margin)


def prestige(num_visits: jax.Array, confidence: jax.Array) -> jax.Array:
    """Eq. 7, Λ = √n·Γ: the prestige that determines the weight of a teacher's advice."""
    return jnp.sqrt(num_visits.astype(jnp.float32)) * confidence


def negative_weight(episode: jax.Array, start_episode: int, shape: float) -> jax.Array:
    """Eq. 8, h(x) = w_n: 1 when sharing starts at e_i, then decreasing; `shape` is the paper's a."""
    slope = (1.0 - shape) / max(start_episode, 1)
    return jnp.minimum(1.0 / (slope * episode + shape), 1.0)  # rounding may push it above 1


class Messages(NamedTuple):
    """The teachers' messages to a student: m_t = (a_b, p_b, a_w, p_w, Λ)."""

    best_action: jax.Array  # int32 [teacher]
    best_probability: jax.Array  # float32 [teacher]
    worst_action: jax.Array  # int32 [teacher]
    worst_probability: jax.Array  # float32 [teacher]
    prestige: jax.Array  # float32 [teacher]
    is_sent: jax.Array  # bool [teacher]


def teacher_weights(prestiges: jax.Array, is_counted: jax.Array) -> jax.Array:
    """Eq. 10, w_k = e^Λ/Σ e^Λ over the teachers that count; zeros if there are none."""
    # subtract the maximum first: e^Λ overflows if a confident teacher has met an observation 8,000 times
    largest = jnp.max(prestiges, where=is_counted, initial=0.0)
    parts = jnp.where(is_counted, jnp.exp(prestiges - largest), 0.0)
    return parts / jnp.maximum(jnp.sum(parts), jnp.finfo(parts.dtype).tiny)


class Modified(NamedTuple):
    """An action's probability after absorbing the answers."""

    probability: jax.Array  # p̃, not normalised
    is_raised: jax.Array  # bool, whether positive knowledge passed the indicator
    is_lowered: jax.Array  # bool, whether negative knowledge did


def modified_probability(
    action: jax.Array,
    probability: jax.Array,
    messages: Messages,
    positive_weight: jax.Array,
    negative_weight: jax.Array,
    update_rate: float,
    normalisation: Normalisation,
) -> Modified:
    """Eq. 9, p̃: move an action's probability towards the teachers', where they consider it better or worse."""
    names_best = messages.is_sent & (messages.best_action == action)
    names_worst = messages.is_sent & (messages.worst_action == action)
    raises = names_best & (messages.best_probability > probability)
    lowers = names_worst & (messages.worst_probability < probability)

    def pull(names: jax.Array, passes: jax.Array, targets: jax.Array) -> jax.Array:
        counted = names if normalisation is Normalisation.ALL_NAMING else passes
        weights = teacher_weights(messages.prestige, counted)
        return jnp.sum(jnp.where(passes, weights * update_rate * (targets - probability), 0.0))

    change = positive_weight * pull(names_best, raises, messages.best_probability)
    change += negative_weight * pull(names_worst, lowers, messages.worst_probability)
    return Modified(probability + change, jnp.any(raises), jnp.any(lowers))


class Drawn(NamedTuple):
    """How an action was drawn."""

    action: jax.Array  # int32
    is_best: jax.Array  # bool, taken because the policy is confident
    num_excluded: jax.Array  # int32, number of actions excluded from the draw


def targeted_exploration(
    policy: jax.Array,
    confidence: jax.Array,
    draw_whether: jax.Array,
    draw_which: jax.Array,
    allowed: jax.Array | None = None,
) -> Drawn:
    """Algorithm 1: with probability Γ̃ the best action, else a draw that excludes the q worst.

    q is the number of the interval that Γ̃ lies in, of |A| − 1 equal ones closed above; Γ̃ = 0 belongs to the first.
    Forbidden actions are always excluded, and included in the number of excluded actions.
    """
    num_actions: jax.Array | int = policy.shape[0] if allowed is None else jnp.sum(allowed)
    num_excluded = jnp.clip(jnp.ceil(confidence * (num_actions - 1)), 1, num_actions - 1).astype(jnp.int32)
    if allowed is not None:
        num_excluded += jnp.sum(~allowed)
    is_excluded = is_among_worst(_or(-1.0, policy, allowed), num_excluded)
    explored = draw_action(jnp.where(is_excluded, 0.0, policy), draw_which)
    is_best = draw_whether < confidence
    action = jnp.where(is_best, jnp.argmax(policy), explored).astype(jnp.int32)
    return Drawn(action, is_best, jnp.where(is_best, 0, num_excluded))


def worst_action(policy: jax.Array, allowed: jax.Array | None = None) -> jax.Array:
    """Return a_w, the least likely allowed action."""
    return jnp.argmin(_or(jnp.inf, policy, allowed))


def worst_probability(policy: jax.Array, allowed: jax.Array | None = None) -> jax.Array:
    """Return p_w, the probability of that action."""
    return jnp.min(_or(jnp.inf, policy, allowed))


def _or(other: float, values: jax.Array, allowed: jax.Array | None) -> jax.Array:
    """Return values, with `other` in place of those of forbidden actions."""
    return values if allowed is None else jnp.where(allowed, values, other)


def is_among_worst(policy: jax.Array, count: jax.Array) -> jax.Array:
    """Return which actions are the `count` worst; of equally bad ones, the lower-numbered counts as worse."""
    is_worse = policy[None, :] < policy[:, None]
    is_earlier_equal = (policy[None, :] == policy[:, None]) & jnp.tri(len(policy), k=-1, dtype=bool)
    return jnp.sum(is_worse | is_earlier_equal, axis=1) < count  # an action's rank, 0 for the worst


def draw_action(weights: jax.Array, draw: jax.Array) -> jax.Array:
    """Draw an action by weights that need not sum to 1: the first whose cumulative weight exceeds the draw."""
    upto, has_weight = jnp.cumsum(weights), weights > 0
    is_beyond = has_weight & (upto > draw * upto[-1])
    # parallel sums need not be monotonic: if rounding leaves no candidate, take the last one with weight
    last = len(weights) - 1 - jnp.argmax(has_weight[::-1])
    return jnp.where(jnp.any(is_beyond), jnp.argmax(is_beyond), last).astype(jnp.int32)
