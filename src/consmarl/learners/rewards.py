"""The rewards that agents learn from: their own, or the team's."""

import enum

import jax
import jax.numpy as jnp

from consmarl.learners.interface import EpisodeBatch


class RewardOf(enum.Enum):
    """Whose reward an agent learns from."""

    INDIVIDUAL = "individual"
    TEAM = "team"


def rewarded(batch: EpisodeBatch, reward_of: RewardOf) -> EpisodeBatch:
    """Return the batch with the rewards that each agent learns from."""
    if reward_of is RewardOf.INDIVIDUAL:
        return batch
    return batch._replace(rewards=jnp.broadcast_to(team_reward(batch)[None], batch.rewards.shape))


def team_reward(batch: EpisodeBatch) -> jax.Array:
    """Return the sum of all agents' rewards: [episode, step]."""
    return batch.rewards.sum(axis=0)
