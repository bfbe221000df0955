"""Convert agents' choices to the actions of an environment, which may have several dimensions.

Each dimension of a `Box` is divided into equally spaced bins that include both ends. A `MultiDiscrete` has its own
choices in every dimension. One dimension gives plain discrete actions; several give branches (see `branches`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from consmarl.environments import validation
from consmarl.errors import UsageError

MOST_ACTIONS = 256  # replay stores a choice in one byte
MOST_BRANCHES = 256
USUAL_BINS = 5
FEWEST_BINS = 2  # both ends


def branch_axis(num_branches: int) -> tuple[int, ...]:
    """Return the extra axis for branches, as a shape: empty if there is only one branch."""
    return (num_branches,) if num_branches > 1 else ()


def action_name(choice_names: Sequence[Sequence[str]], chosen: NDArray[Any]) -> str:
    """Return the name of an action: a single choice or, with several dimensions, choices [branch]."""
    return ", ".join(names[int(each)] for names, each in zip(choice_names, np.atleast_1d(chosen), strict=True))


@dataclass(frozen=True)
class AgentActions:
    """One agent's actions: the values that it can choose from in every dimension."""

    values: tuple[NDArray[Any], ...]  # [choice] of every dimension
    shape: tuple[int, ...] | None = None  # of an action in the environment; None for a plain number
    is_continuous: bool = False

    @property
    def counts(self) -> tuple[int, ...]:
        """Number of choices in every dimension."""
        return tuple(len(each) for each in self.values)

    @property
    def table(self) -> NDArray[Any]:
        """The values as one array, [dimension, choice], padded with each dimension's first value."""
        most = max(self.counts)
        return np.stack([np.concatenate([each, np.repeat(each[:1], most - len(each))]) for each in self.values])

    def action(self, chosen: NDArray[Any]) -> Any:
        """Return the environment's action for the given choices [dimension]."""
        taken = [each[choice] for each, choice in zip(self.values, chosen.tolist(), strict=True)]
        return int(taken[0]) if self.shape is None else np.array(taken, self.values[0].dtype).reshape(self.shape)


def discrete(count: int, start: int = 0) -> AgentActions:
    """Return `count` plain discrete actions, numbered from `start`."""
    return AgentActions((np.arange(start, start + count),))


def several_discrete(counts: NDArray[Any], starts: NDArray[Any] | int = 0, dtype: Any = np.int64) -> AgentActions:
    """Return discrete actions with several dimensions, numbered from `starts` in each."""
    firsts = np.broadcast_to(starts, counts.shape)
    values = tuple(
        np.arange(first, first + count, dtype=dtype)
        for first, count in zip(firsts.ravel().tolist(), counts.ravel().tolist(), strict=True)
    )
    return AgentActions(values, counts.shape)


def divided(id: str, low: Any, high: Any, shape: tuple[int, ...], dtype: Any, num_bins: int | None) -> AgentActions:
    """Return a Box's actions as bins: equally spaced in every dimension, from its low to its high end."""
    lows, highs = (np.broadcast_to(np.asarray(each, np.float64), shape).ravel() for each in (low, high))
    if not np.isfinite(lows).all() or not np.isfinite(highs).all():
        raise UsageError(
            f"{id} is acted on by a Box without finite ends, which cannot be divided into bins: wrap it in an "
            "environment that sets low and high."
        )
    if not lows.size:
        raise UsageError(f"{id} is acted on by a Box of shape {shape}: there is nothing to choose.")
    count = USUAL_BINS if num_bins is None else num_bins
    rows = np.linspace(lows, highs, count, axis=1)
    rows = np.rint(rows) if np.issubdtype(dtype, np.integer) else rows
    return AgentActions(tuple(rows.astype(dtype)), shape, is_continuous=True)


def checked_bins(num_bins: Any) -> int | None:
    """Return a validated number of bins; None stands for the default, `USUAL_BINS`."""
    if num_bins is None:
        return None
    return validation.whole_number("action_bins", num_bins, least=FEWEST_BINS, most=MOST_ACTIONS)


@dataclass(frozen=True)
class TeamActions:
    """The actions of all agents of an environment."""

    of_agents: tuple[AgentActions, ...]

    def check(self, id: str, num_bins: int | None) -> None:
        """Refuse more actions or dimensions than can be stored, and `num_bins` without continuous actions."""
        if self.num_actions > MOST_ACTIONS:
            raise UsageError(f"{id} has {self.num_actions} actions: at most {MOST_ACTIONS} can be stored.")
        if self.num_branches > MOST_BRANCHES:
            raise UsageError(
                f"{id} has actions of {self.num_branches} dimensions: at most {MOST_BRANCHES} can be learned."
            )
        if num_bins is not None and not any(each.is_continuous for each in self.of_agents):
            raise UsageError(f"{id} has no continuous actions to divide into bins: leave action_bins out.")

    @property
    def num_branches(self) -> int:
        """Number of dimensions of an action, for the agent with the most."""
        return max(len(each.counts) for each in self.of_agents)

    @property
    def num_actions(self) -> int:
        """Number of choices in the dimension with the most."""
        return max(max(each.counts) for each in self.of_agents)

    @cached_property
    def exists(self) -> NDArray[np.bool_]:
        """Which choices exist, [agent, action] or [agent, branch, action]; one in each dimension an agent lacks."""
        rows = np.zeros((len(self.of_agents), self.num_branches, self.num_actions), bool)
        rows[:, :, 0] = True
        for index, each in enumerate(self.of_agents):
            for branch, count in enumerate(each.counts):
                rows[index, branch, :count] = True
        return rows.reshape(len(rows), *branch_axis(self.num_branches), self.num_actions)

    def own_choices(self, agent: int) -> NDArray[np.bool_]:
        """Return which choices one agent has, [..., action]; none in dimensions that it lacks."""
        own = self.exists[agent].copy()
        if self.num_branches > 1:
            own[len(self.of_agents[agent].counts) :] = False
        return own

    @property
    def names(self) -> tuple[tuple[str, ...], ...]:
        """Names of the choices in every dimension, taken from the agent with the most choices in it."""
        return tuple(self._names_of(branch) for branch in range(self.num_branches))

    def _names_of(self, branch: int) -> tuple[str, ...]:
        owner = max(self.of_agents, key=lambda each: each.counts[branch] if branch < len(each.counts) else 0)
        if owner.shape is None:
            return tuple(f"action {number}" for number in range(self.num_actions))
        own = [f"{value:g}" for value in owner.values[branch].tolist()]
        return (*own, *("–" for _ in range(self.num_actions - len(own))))

    def action(self, agent: int, chosen: NDArray[Any]) -> Any:
        """Return the environment's action for one agent's choice, or choices [branch]."""
        own = self.of_agents[agent]
        return own.action(np.atleast_1d(chosen)[: len(own.counts)])


def team_actions(id: str, each: Sequence[AgentActions], num_bins: int | None) -> TeamActions:
    """Return the checked actions of a team."""
    team = TeamActions(tuple(each))
    team.check(id, num_bins)
    return team
