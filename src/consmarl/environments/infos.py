"""Counters of environments that step in Python: the numbers that they report in their `infos`.

The last value of an episode counts, as in PyMARL; a number that is not reported in an episode is 0. Which numbers exist
is found out by a trial episode (`ForeignWorld.counted`). An entry of `infos` that belongs to no agent is the team's,
and so is a dict that all agents share. Names come from third-party code: characters other than letters, digits and
underscores are replaced, and all names get the prefix `info_`, which none of ours has.
"""

import math
import numbers
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from consmarl.metrics import Metric

TEAM = "__common__"  # the usual name of an entry that belongs to no agent
PREFIX = "info_"
MOST_COUNTERS, LONGEST_NAME = 32, 40


class Told(NamedTuple):
    """The numbers in `infos`, under the environment's own names."""

    by_agent: list[dict[str, float]]  # [agent]
    team: dict[str, float]


class Counted(NamedTuple):
    """Which numbers are kept: name in result rows → name in the environment."""

    by_agent: dict[str, str]
    team: dict[str, str]

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Declarations of the counters."""
        return tuple(Metric(name, _title(name)) for name in (*self.by_agent, *self.team))


NOTHING = Counted({}, {})


def told_in(infos: Any, agents: Sequence[str]) -> Told:
    """Return the numbers in `infos`."""
    if not isinstance(infos, Mapping):
        return Told([{} for _ in agents], {})
    entries = [infos.get(agent) for agent in agents]
    team: dict[str, float] = {}
    for name, entry in infos.items():
        if name not in agents:
            team |= _numbers({name: entry}) or _numbers(entry)
    if len(agents) > 1 and entries[0] and all(entry is entries[0] for entry in entries):
        return Told([{} for _ in agents], team | _numbers(entries[0]))
    return Told([_numbers(entry) for entry in entries], team)


def counted_in(tried: Iterable[Told]) -> Counted:
    """Return which numbers to keep, given those reported in some steps; of equal names, the first one counts."""
    counted = Counted({}, {})
    for told in tried:
        for raw in (name for each in told.by_agent for name in each):
            _keep(raw, counted.by_agent, counted.team)
        for raw in told.team:
            _keep(raw, counted.team, counted.by_agent)
    return counted


def _keep(raw: str, names: dict[str, str], others: dict[str, str]) -> None:
    safe = safe_name(raw)
    if safe not in names and safe not in others and len(names) + len(others) < MOST_COUNTERS:
        names[safe] = raw


def safe_name(raw: str) -> str:
    """Return the name that a number gets in result rows."""
    return PREFIX + re.sub(r"[^A-Za-z0-9_]", "_", raw)[:LONGEST_NAME]


def _title(name: str) -> str:
    return name.removeprefix(PREFIX).replace("_", " ").strip().capitalize() or name


def note(told: Told, counted: Counted, by_agent: NDArray[Any], team: NDArray[Any]) -> None:
    """Copy reported numbers into `by_agent` [agent, counter] and `team` [counter]; others keep their values."""
    for column, raw in enumerate(counted.by_agent.values()):
        for agent, each in enumerate(told.by_agent):
            by_agent[agent, column] = each.get(raw, by_agent[agent, column])
    for column, raw in enumerate(counted.team.values()):
        team[column] = told.team.get(raw, team[column])


def _numbers(entry: Any) -> dict[str, float]:
    if not isinstance(entry, Mapping):
        return {}
    found = {name: _number(value) for name, value in entry.items() if isinstance(name, str)}
    return {name: value for name, value in found.items() if value is not None}


def _number(value: Any) -> float | None:
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if not isinstance(value, numbers.Real | np.bool_):
        return None
    return float(value) if math.isfinite(value) else None
