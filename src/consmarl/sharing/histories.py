"""Agents' observations and actions in this episode, outside compiled code, for `TeacherMemory.HISTORY`."""

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from consmarl.errors import UsageError

NO_ACTION = -1  # there is no last action in the first step


class History(NamedTuple):
    """One agent's episode so far."""

    observations: NDArray[Any]  # [step, …], ending with the current observation
    last_actions: NDArray[np.int64]  # [step, …], the action before each of them; −1 at first


class Histories:
    """A team's episode, from which each agent's `History` can be extracted."""

    PARTS: ClassVar = ("observations", "actions")

    def __init__(self, num_agents: int, branches: tuple[int, ...] = ()) -> None:
        """Start empty; `branches` is the shape of an action, () for a single choice."""
        self._branches = branches
        self._seen: list[list[NDArray[Any]]] = [[] for _ in range(num_agents)]
        self._done: list[list[Any]] = [[] for _ in range(num_agents)]

    def check(self, observations: Sequence[ArrayLike] | NDArray[Any]) -> None:
        """Refuse observations whose shape differs from earlier ones."""
        for agent, (seen, each) in enumerate(zip(self._seen, observations, strict=True)):
            if seen and np.shape(each) != seen[0].shape:
                raise UsageError(
                    f"an agent's observations must be of one shape where teachers remember them: agent {agent}'s had "
                    f"{seen[0].shape}, and this one has {np.shape(each)}."
                )

    def see(self, observations: Sequence[ArrayLike] | NDArray[Any]) -> None:
        """Store the current observations of all agents."""
        for seen, each in zip(self._seen, observations, strict=True):
            seen.append(np.array(each))  # a copy: environments may reuse theirs

    def act(self, actions: NDArray[np.int64]) -> None:
        """Store the current actions of all agents."""
        for done, each in zip(self._done, actions.tolist(), strict=True):
            done.append(each)

    def of(self, agent: int) -> History:
        """Return an agent's episode up to its current observation, before it acts."""
        return History(np.stack(self._seen[agent]), np.array([self._no_action, *self._done[agent]], np.int64))

    @property
    def _no_action(self) -> Any:
        return np.full(self._branches, NO_ACTION).tolist()

    def to_arrays(self, agent: int) -> dict[str, NDArray[Any]]:
        """Return one agent's observations and actions as arrays; call it between steps."""
        seen = self._seen[agent]
        return {"observations": np.stack(seen) if seen else np.zeros(0), "actions": np.array(self._done[agent], int)}

    @classmethod
    def from_arrays(cls, agents: Sequence[dict[str, NDArray[Any]]], branches: tuple[int, ...] = ()) -> Self:
        """Return histories from the arrays that `to_arrays` returned for each agent."""
        histories = cls(len(agents), branches)
        for agent, arrays in enumerate(agents):
            if len(arrays["observations"]) != len(arrays["actions"]):
                raise UsageError(
                    "observations and actions do not fit together: they were changed since they were saved."
                )
            histories._seen[agent] = list(arrays["observations"])
            histories._done[agent] = arrays["actions"].tolist()
        return histories
