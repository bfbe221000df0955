"""A sharing mechanism of your own: importance advising (Torrey and Taylor, AAMAS 2013) between learners.

    consmarl --plugin examples/extending/importance_advising.py train --sharing importance --share.threshold 2

A teacher answers only if the choice of action is important, i.e. if its best action has a much higher value than its
worst. Counting, asking, budgets and the vote among answers are those of AdHocTD; only who answers is different.
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
    """AdHocTD in which teachers answer only if the choice of action is important to them."""

    threshold: NotNegative = 1.0
    """Minimum difference between the values of a teacher's best and worst actions."""

    def replies(self, request: Request, teachers: Teachers, draws: Draws) -> jax.Array:
        """Return each teacher's reply: it answers if it is eligible and the choice is important to it."""
        del draws
        # actions that the student may not take have value −∞
        least = teachers.values.min(axis=1, where=jnp.isfinite(teachers.values), initial=jnp.inf)
        importance = teachers.values.max(axis=1) - least
        replies = self.may_teach(request, teachers)
        matters = importance >= self.threshold
        return jnp.where(matters | (replies != Reply.ANSWERED), replies, jnp.uint8(Reply.UNIMPORTANT))


consmarl.register_sharing("importance", ImportanceAdvising, "teachers speak up where the choice matters to them")
