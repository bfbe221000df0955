"""Find out which answers counted, with what weight, and which of them changed a student's action.

Answers are counted by these rules, which are also stated on the page and in the guide:
- *positive knowledge counts* if a teacher's best action is more likely to the teacher than to the student (the
  indicator of Eq. 9) and has weight; it *changed the choice* if the student took that action instead of its own;
- *negative knowledge counts* if a teacher's worst action is less likely to the teacher than to the student, and has
  weight; it *changed the choice* if that action was the student's own and the student took another;
- in AdHocTD every answer counts, as a vote for its best action.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from consmarl.experiments.exchanges import RecordedEpisode
from consmarl.sharing import equations
from consmarl.sharing.cons import Cons
from consmarl.sharing.interface import Sharing
from consmarl.sharing.options import Normalisation
from consmarl.sharing.record import Reply


class Absorbed(NamedTuple):
    """Which answers of an episode counted, with what weight, and which changed an action."""

    best_share: NDArray[np.float32]  # [request, teacher], w_k of Eq. 10 among teachers that name the same best action
    worst_share: NDArray[np.float32]  # [request, teacher]
    raises: NDArray[np.bool_]  # [request, teacher], its positive knowledge counts
    lowers: NDArray[np.bool_]  # [request, teacher], its negative knowledge counts
    raise_changed: NDArray[np.bool_]  # [request, teacher], and changed the choice
    lower_changed: NDArray[np.bool_]  # [request, teacher]
    is_excluded: NDArray[np.bool_]  # [request, action], left out of the draw
    is_changed: NDArray[np.bool_]  # [request], the student took another action than it would have without advice


def absorbed(recorded: RecordedEpisode, sharing: Sharing) -> Absorbed:
    """Return which answers counted and changed actions, in an episode in which agents could share knowledge."""
    requests, teachers = recorded.requests, recorded.teachers
    is_sent = teachers["reply"] == Reply.ANSWERED
    own = recorded.steps["own_action"][requests["step"], requests["student"]][:, None]
    done = recorded.steps["action"][requests["step"], requests["student"]][:, None]
    if isinstance(sharing, Cons):
        padded = [_padded(rows, recorded.num_steps * recorded.num_agents) for rows in (
            requests["policy_before"], requests["policy_after"], requests["num_excluded"], teachers["best_action"],
            teachers["best_probability"], teachers["worst_action"], teachers["worst_probability"],
            teachers["prestige"], is_sent)]  # fmt: skip
        found = jax.device_get(_by_equations(sharing.normalisation, *padded))
        best_share, worst_share, raises, lowers, is_excluded = (rows[: len(is_sent)] for rows in found)
        negative = requests["negative_weight"][:, None]
        raises, lowers = raises & (negative < 1), lowers & (negative > 0)
    else:
        best_share = is_sent / np.maximum(is_sent.sum(axis=1, keepdims=True), 1).astype(np.float32)
        worst_share, raises, lowers = np.zeros_like(best_share), is_sent, np.zeros_like(is_sent)
        is_excluded = np.zeros(requests["policy_before"].shape, bool)
    is_changed = requests["is_advised"][:, None] & (done != own)
    return Absorbed(
        best_share=best_share.astype(np.float32),
        worst_share=worst_share,
        raises=raises,
        lowers=lowers,
        raise_changed=raises & is_changed & (teachers["best_action"] == done),
        lower_changed=lowers & is_changed & (teachers["worst_action"] == own),
        is_excluded=is_excluded & requests["is_advised"][:, None],
        is_changed=is_changed[:, 0],
    )


def _padded(rows: NDArray[Any], length: int) -> NDArray[Any]:
    """Pad rows with zeros to a fixed length, so that all episodes of an environment use one compiled program."""
    return np.concatenate([rows, np.zeros((length - len(rows), *rows.shape[1:]), rows.dtype)])


@functools.partial(jax.jit, static_argnums=0)
def _by_equations(normalisation: Normalisation, *of_requests: jax.Array) -> tuple[jax.Array, ...]:
    """Return each teacher's weights, whether its positive and negative knowledge counts, and the excluded actions."""

    def of_one(
        before: jax.Array, after: jax.Array, num_excluded: jax.Array, best: jax.Array, best_probability: jax.Array,
        worst: jax.Array, worst_probability: jax.Array, prestige: jax.Array, is_sent: jax.Array,
    ) -> tuple[jax.Array, ...]:  # fmt: skip
        raises = is_sent & (best_probability > before[best])
        lowers = is_sent & (worst_probability < before[worst])

        def shares(named: jax.Array, passes: jax.Array) -> jax.Array:
            counted = is_sent if normalisation is Normalisation.ALL_NAMING else passes
            together = (named[:, None] == named[None, :]) & counted[None, :]  # [teacher, other]
            by_teacher = jax.vmap(equations.teacher_weights, (None, 0))(prestige, together)
            return jnp.diagonal(by_teacher)

        return shares(best, raises), shares(worst, lowers), raises, lowers, equations.is_among_worst(
            after, num_excluded
        )  # fmt: skip

    return jax.vmap(of_one)(*of_requests)
