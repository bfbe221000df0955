"""What an episode comes to, and how sharing went over a whole run, in numbers."""

from typing import Any

import numpy as np

from consmarl.experiments.exchanges import RecordedEpisode
from consmarl.report.runs import Run
from consmarl.sharing.record import Reply
from consmarl.viewer.absorbed import Absorbed

SERIES = ("requests", "answers", "advised", "requests_left", "answers_left", "return")


def summary_of(recorded: RecordedEpisode, found: Absorbed | None) -> dict[str, Any]:
    """Return an episode's totals; `taught` is the number of answers by teacher and student."""
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
    """Return how sharing went over the run: columns of its rows, budgets as the mean of the agents."""
    rows = [row for row in run.rows if row.get("requests") is not None]
    columns = {
        name: [round(float(np.mean(row[name])), 4) for row in rows] for name in SERIES if rows and name in rows[0]
    }
    return {"episode": [row["episode"] for row in rows]} | columns
