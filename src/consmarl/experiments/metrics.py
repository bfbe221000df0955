"""A run's metrics as JSON, one row per line, append-only."""

import json
import os
from pathlib import Path
from typing import Any

import jax
import numpy as np

from consmarl.files import explained, replacing
from consmarl.metrics_rows import read_lines, told
from consmarl.training.parts import RoundReport

# Intermediate numbers, which mechanisms report only so that others can be computed from them.
WORKINGS = ("taught", "requests_spent", "num_lost")
TOLD_FIRST = ("requests", "answers", "expert_answers", "advised", "advised_share", "budget_used", "requests_left",
              "answers_left")  # fmt: skip


def row_of(report: RoundReport) -> dict[str, Any]:
    """Return the row of metrics of a chunk: means over its episodes and updates."""
    report = jax.device_get(report)
    returns = report.returns  # [round, env, agent]
    row: dict[str, Any] = {
        "return": rounded(returns.sum(axis=-1).mean()),
        "agent_returns": [rounded(value) for value in returns.mean(axis=(0, 1))],
        "episode_steps": rounded(report.num_steps.mean()),
        "epsilon": rounded(report.epsilon[-1]),
    }
    row |= counter_means(report.counters, num_leading_axes=2)
    if report.has_learned.any():
        row |= {name: rounded(values[report.has_learned].mean()) for name, values in report.learning.items()}
    return row | sharing_row(report)


def sharing_row(report: RoundReport) -> dict[str, Any]:
    """Return the metrics of sharing: the team's traffic per episode, and other values after the last round."""
    told = {name: _summed_up(values) for name, values in report.sharing.items() if name not in WORKINGS}
    if "advised" in report.sharing:
        num_decisions = report.num_steps.sum() * report.returns.shape[-1]
        told["advised_share"] = rounded(report.sharing["advised"].sum() / num_decisions)
    if "requests_spent" in report.sharing:
        told["budget_used"] = rounded(report.sharing["requests_spent"][-1].mean())
    # compiled code returns reports sorted by name
    return {name: told[name] for name in dict.fromkeys((*TOLD_FIRST, *told)) if name in told}


def _summed_up(values: Any) -> float | list[float]:
    """Return the team's mean per episode for traffic, [round, agent, env]; for others, the last of [round, …]."""
    if values.ndim == 3:
        return rounded(values.sum(axis=1).mean())
    last, plain = values[-1], rounded if values.dtype.kind == "f" else int
    return [plain(each) for each in last] if last.ndim else plain(last)


def counter_means(counters: Any, num_leading_axes: int) -> dict[str, float]:
    """Return each counter's mean over episodes, the leading axes; all other axes, such as agents, are summed."""
    means = {}
    for name, values in {**counters.per_agent, **counters.team}.items():
        in_episode = np.asarray(values).sum(axis=tuple(range(num_leading_axes, values.ndim)))
        means[name] = rounded(in_episode.mean())
    return means


def rounded(value: Any) -> float:
    """Return a number rounded to the precision of rows and results, six decimals."""
    return round(float(value), 6)


class MetricsFile:
    """The file with the rows of one run."""

    def __init__(self, path: Path) -> None:
        """Set the path; the file need not exist yet."""
        self.path = path

    def append(self, row: dict[str, Any]) -> None:
        """Append a row and flush it to disk."""
        with explained(self.path), self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows, skipping unreadable lines, which `keep_until` reports."""
        return [line.row for line in read_lines(self.path) if line.row is not None]

    def keep_until(self, episode: int) -> str | None:
        """Delete the rows after an episode, since a resumed run plays and reports those episodes again.

        An incomplete last line, left by a process that was killed, is deleted as well. Damaged lines are kept so that
        they can be repaired; if there are any, return a sentence that lists them.
        """
        kept = [line for line in read_lines(self.path) if line.row is None or line.row["episode"] <= episode]
        with replacing(self.path) as temporary:
            temporary.write_bytes(b"".join(line.content for line in kept))
        faults = [line.fault for line in kept if line.fault is not None]
        return f"{self.path}: cannot read {told(faults)}; it is kept, and no other row is lost." if faults else None
