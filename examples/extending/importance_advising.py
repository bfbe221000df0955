"""A way of sharing of your own: importance advising (Torrey and Taylor, AAMAS 2013) between learners.

    consmarl --plugin examples/extending/importance_advising.py train --sharing importance --share.threshold 2

A teacher speaks up where it matters what one does: where its best action is worth much more than its worst. Counting,
asking, budgets and the vote among answers are AdHocTD's; only who answers changes.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

import consmarl
from consmarl.environments.validation import NotNegative
from consmarl.sharing.adhoc_td import AdHocTD
from consmarl.sharing.record import Reply
from consmarl.sharing.requests import Draws, Request, Teachers


@dataclass(frozen=True, kw_only=True)
class ImportanceAdvising(AdHocTD):
    """Advice from those to whom the choice matters."""

    threshold: NotNegative = 1.0
    """By how much a teacher's best action must be worth more than its worst."""

    def replies(self, request: Request, teachers: Teachers, draws: Draws) -> jax.Array:
        """Answer, if eligible, where the choice matters to the teacher."""
        del draws
        # what the student may not do is worth −∞
        least = teachers.values.min(axis=1, where=jnp.isfinite(teachers.values), initial=jnp.inf)
        importance = teachers.values.max(axis=1) - least
        replies = self.may_teach(request, teachers)
        matters = importance >= self.threshold
        return jnp.where(matters | (replies != Reply.ANSWERED), replies, jnp.uint8(Reply.UNIMPORTANT))


consmarl.register_sharing("importance", ImportanceAdvising, "teachers speak up where the choice matters to them")
