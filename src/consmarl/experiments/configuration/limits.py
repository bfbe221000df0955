"""Upper limits on numbers of episodes."""

from typing import Any

from consmarl.environments import validation
from consmarl.errors import UsageError

MOST_EVALUATED = 1_000_000  # episodes: an evaluation keeps every return and counter


def num_evaluated(name: str, value: object) -> int:
    """Return a validated number of episodes for an evaluation."""
    return validation.whole_number(name, value, least=1, most=MOST_EVALUATED)


def check_steps(episodes: int, num_envs: int, world: Any) -> None:
    """Raise an error if a run has too many steps: compiled code counts them in 32 bits, which would overflow."""
    most = validation.MOST_WHOLE // world.episode_limit - num_envs  # a round looks ahead by its own length
    if most < num_envs:
        raise UsageError(f"num_envs can be at most {(most + num_envs) // 2:,} in {world.id}, not {num_envs:,}.")
    if episodes > most:
        raise UsageError(
            f"a run in {world.id} can have at most {most // num_envs * num_envs:,} episodes, not {episodes:,}: "
            f"its steps, {world.episode_limit:,} per episode, are counted in 32 bits."
        )
