"""Summarise an episode by totals, and a run by curves of sharing over its episodes."""

from typing import Any

import numpy as np

from consmarl.errors import UsageError
from consmarl.experiments.exchanges import RecordedEpisode
from consmarl.files import METRICS
from consmarl.reports.runs import Run
from consmarl.sharing.record import Reply
from consmarl.viewer.absorbed import Absorbed

SERIES = ("requests", "answers", "advised", "requests_left", "answers_left", "return")
LARGEST = 1e300  # JSON allows integers of any size


def summary_of(recorded: RecordedEpisode, found: Absorbed | None) -> dict[str, Any]:
    """Return an episode's totals; `taught` holds the number of answers, [teacher, student], agents before experts."""
    totals: dict[str, Any] = {
        "return": float(recorded.steps["rewards"].sum(dtype=np.float64)),
        "num_steps": recorded.num_steps,
        "is_sharing": found is not None,
    }
    if found is None:
        return totals
    requests, teachers, steps = recorded.requests, recorded.teachers, recorded.steps
    is_sent = teachers["reply"] == Reply.ANSWERED
    own = steps["own_action"][requests["step"], requests["student"]][:, None]
    taught = is_sent.T.astype(int) @ np.eye(recorded.num_agents, dtype=int)[requests["student"]]
    return totals | {
        "requests": len(is_sent),
        "answers": int(is_sent.sum()),
        "advised": int(requests["is_advised"].sum()),
        "changed": int(found.is_changed.sum()),
        "positive": int(found.raises.sum()),
        "positive_changed": int(found.raise_changed.sum()),
        "negative": int(found.lowers.sum()),
        "negative_changed": int(found.lower_changed.sum()),
        "agreeing": int((is_sent & (teachers["best_action"] == own)).sum()),
        "requests_left": steps["requests_left"][-1].tolist(),
        "answers_left": steps["answers_left"][-1].tolist(),
        "taught": taught.tolist(),
    }


def series_of(run: Run) -> dict[str, list[float]]:
    """Return the sharing metrics over a run as columns of its rows, with budgets averaged over agents."""
    rows = [row for row in run.rows if not isinstance(row, dict) or row.get("requests") is not None]
    there = rows[0] if rows and isinstance(rows[0], dict) else {}
    names = ["episode", *(name for name in SERIES if name in there)]
    return {name: [_number(run, row, name) for row in rows] for name in names}


def _number(run: Run, row: Any, name: str) -> float:
    """Return a number from a row of metrics; a list, which has one value per agent, is averaged."""
    found = row.get(name) if isinstance(row, dict) else None
    numbers: list[Any] = found if isinstance(found, list) and found else [found]
    if not all(isinstance(each, int | float) and abs(each) <= LARGEST for each in numbers):
        raise UsageError(f"{run.path / METRICS} is damaged: one of its rows has no finite number for {name}.")
    mean = round(float(np.mean(numbers)), 4)
    return int(mean) if mean.is_integer() else mean
