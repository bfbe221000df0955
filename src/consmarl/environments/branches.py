"""Actions with several dimensions, as arrays: one choice per dimension, along an axis of branches.

Such actions are int [..., branch]; values and masks of their choices are [..., branch, action]. If a dimension has
fewer choices than another, the extra ones are forbidden. In most environments an action is a single choice: then there
is no branch axis, and the functions here change nothing.
"""

import jax
import jax.numpy as jnp

from consmarl.environments.masks import is_present


def of_every_branch(flags: jax.Array, chosen: jax.Array) -> jax.Array:
    """Return flags per agent with axes added to broadcast against choices: [agent, env] and [agent, env, …]."""
    return flags.reshape(flags.shape + (1,) * (chosen.ndim - flags.ndim))


def is_there(allowed: jax.Array, num_branches: int) -> jax.Array:
    """Return where an agent is present: where it has an allowed choice in every dimension."""
    present = is_present(allowed)
    return present if num_branches == 1 else jnp.all(present, axis=-1)
