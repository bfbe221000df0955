"""The checks of what a caller passes to `Advisor.advise`: clear errors before anything changes."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from consmarl.errors import UsageError
from consmarl.sharing.mechanism import Mechanism
from consmarl.sharing.options import AskGate
from consmarl.sharing.tallies import Observations
from consmarl.sharing.visits import key_of


@dataclass(frozen=True)
class Team:
    """The sizes that a caller's arrays must have."""

    num_agents: int
    num_actions: int
    branches: tuple[int, ...]  # the shape of an action: () for a single choice

    @property
    def choices(self) -> tuple[int, ...]:
        """The shape of one agent's values."""
        return (*self.branches, self.num_actions)


def check_call(
    sharing: Mechanism, team: Team, observations: Observations, is_exploring: ArrayLike | None, epsilon: float | None
) -> None:
    """Refuse observations of another team, and calls without what the mechanism needs to know."""
    if len(observations) != team.num_agents:
        raise UsageError(f"observations must be {team.num_agents}, one for each agent, not {len(observations)}.")
    if is_exploring is None and (sharing.ask_gate is not AskGate.ALWAYS or sharing.has_second_draw):
        raise UsageError("who may ask depends on who explores: say so, by is_exploring.")
    if epsilon is None and sharing.has_second_draw:
        raise UsageError("exploring agents without advice draw once more: give the probability, by epsilon.")
    for each in observations:
        key_of(each)


def finite_numbers(what: str, given: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Return values as an array of this shape; refuse others, and values that are not finite."""
    numbers = np.asarray(given, np.float32)
    if numbers.shape != shape or not np.isfinite(numbers).all():
        raise UsageError(f"{what} must be finite numbers of shape {shape}, not {numbers.dtype}{numbers.shape}.")
    return numbers


def whole_actions(team: Team, actions: ArrayLike) -> NDArray[np.integer[Any]]:
    """Return the intended actions, [agent, …]; refuse anything that is not an action."""
    intended = np.asarray(actions)
    shape = (team.num_agents, *team.branches)
    is_action = intended.shape == shape and np.issubdtype(intended.dtype, np.integer)
    if not is_action or intended.min() < 0 or intended.max() >= team.num_actions:
        raise UsageError(
            f"actions must be {' × '.join(map(str, shape))} whole numbers from 0 to {team.num_actions - 1}, not "
            f"{actions!r}."
        )
    return intended


def mask(sharing: Mechanism, team: Team, given: ArrayLike, intended: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which actions are allowed, [agent, …, action]; refuse a mask that forbids what an agent intends."""
    if not sharing.handles_masks:
        raise UsageError(f"{type(sharing).__name__} does not heed what is allowed: leave allowed out.")
    allowed, shape = np.asarray(given), (team.num_agents, *team.choices)
    if allowed.shape != shape or not (allowed.dtype == bool or np.isin(allowed, (0, 1)).all()):
        raise UsageError(f"allowed must be booleans of shape {shape}, not {allowed.dtype}{allowed.shape}.")
    allowed = allowed.astype(bool)
    is_fine = np.take_along_axis(allowed, intended[..., None], axis=-1).reshape(team.num_agents, -1)
    for agent in np.flatnonzero(allowed.reshape(team.num_agents, -1).any(axis=1)).tolist():
        if not is_fine[agent].all():
            raise UsageError(f"agent {agent} means to do {intended[agent]}, which it is not allowed to.")
    return allowed
