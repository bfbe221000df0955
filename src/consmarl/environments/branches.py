"""Actions of several dimensions, as arrays: one choice in each, along an axis of branches.

Such actions are int [..., branch], what is known of their choices is [..., branch, action], and an agent with fewer
choices in a dimension than in another has the extra ones forbidden. Where an action is a single choice, as in most
environments, there is no such axis, and everything here changes nothing.
"""

import jax
import jax.numpy as jnp

from consmarl.environments.masks import is_present


def of_every_branch(flags: jax.Array, chosen: jax.Array) -> jax.Array:
    """Return facts about agents, shaped to go with their choices: [agent, env] and [agent, env, …]."""
    return flags.reshape(flags.shape + (1,) * (chosen.ndim - flags.ndim))


def is_there(allowed: jax.Array, num_branches: int) -> jax.Array:
    """Return where an agent is there, which is where it may do something, in all of its dimensions."""
    present = is_present(allowed)
    return present if num_branches == 1 else jnp.all(present, axis=-1)
