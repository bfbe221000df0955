"""Observations of environments that step in Python: which ones can be learned from, and how masks are split off."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

from consmarl.errors import UsageError

NUMBERS = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)  # possible parts of an observation
OBSERVATION, ACTION_MASK = "observation", "action_mask"  # keys of a Dict with both, PettingZoo's convention


def holds_mask(space: Any) -> bool:
    """Return whether an observation space is a Dict that contains an action mask besides the observation."""
    return isinstance(space, spaces.Dict) and ACTION_MASK in space.spaces and len(space.spaces) > 1


def without_mask(shown: Any) -> Any:
    """Return an observation, or an observation space, without its action mask."""
    names = getattr(shown, "spaces", shown)
    if not isinstance(names, Mapping) or ACTION_MASK not in names or len(names) == 1:
        return shown
    if OBSERVATION in names and len(names) == 2:
        return names[OBSERVATION]
    rest = {name: each for name, each in names.items() if name != ACTION_MASK}
    return spaces.Dict(rest) if isinstance(shown, spaces.Dict) else rest


def largest_observation(id: str, each: list[Any]) -> int:
    """Return the length of the longest flattened observation; refuse spaces that cannot be learned from."""
    for part in (part for space in each for part in _parts(space)):
        if not isinstance(part, NUMBERS):
            raise UsageError(
                f"{id} is observed as {part}, which has no fixed size: only Box, Discrete, MultiDiscrete and "
                "MultiBinary can be learned from, and Dict and Tuple of them."
            )
        if isinstance(part, spaces.Box) and part.dtype == np.uint8 and len(part.shape) > 1:
            raise UsageError(
                f"{id} is observed as pictures of shape {part.shape}, for which there is no network here: choose "
                "observations that are vectors, or wrap it in an environment that makes some."
            )
    return max(spaces.flatdim(space) for space in each)


def _parts(space: Any) -> Iterator[Any]:
    """Yield the parts of an observation space that are not Dicts or Tuples themselves, at any depth."""
    if not isinstance(space, spaces.Dict | spaces.Tuple):
        yield space
        return
    for part in space.spaces.values() if isinstance(space, spaces.Dict) else space.spaces:
        yield from _parts(part)
