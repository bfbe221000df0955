"""Export runs as JSON for marl-eval (`pip install id-marl-eval`), for aggregates and plots across environments.

Its levels are environment → task → algorithm → run → step. A task is one of our environments, and marl-eval's
environment is a family of them; if members of a family differ in algorithms, runs, evaluations or counters, which
marl-eval does not support, they become separate environments. A step is an evaluation that all runs of a task have,
with the environment steps taken so far; its values are means over the evaluation's episodes, in lists of length one.

In the protocol that marl-eval follows (Gorsane et al. 2022), "absolute_metrics" are those of the best policy found
during training, played for ten times the episodes of an evaluation. Here they are those of the last policy, played for
as many episodes as result.json says (400 by default), so that a run that got worse towards its end does not look better
than it is.
"""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from consmarl.errors import UsageError
from consmarl.files import replacing
from consmarl.metrics import BOOKKEEPING, EVALUATED
from consmarl.reports.runs import Group, Run

FAMILIES = {"pgm": "PatientGoldMiner", "ft": "FindTheTreasure", "cleanup": "Cleanup"}

Task = dict[str, dict[str, Any]]  # algorithm → run → step → metrics


def to_marl_eval(groups: Sequence[Group]) -> dict[str, dict[str, Task]]:
    """Return finished runs in marl-eval's format; all methods need the same number of seeds."""
    if not groups:
        raise UsageError("there are no runs to write for marl-eval: name a directory with runs.")
    worlds: dict[str, list[Group]] = {}
    for group in groups:
        worlds.setdefault(group.world, []).append(group)
    families: dict[str, dict[str, Task]] = {}
    for world, of_world in worlds.items():
        families.setdefault(_family(world), {})[world] = _task(world, of_world)
    environments: dict[str, dict[str, Task]] = {}
    for family, tasks in families.items():
        if len({_shape(task) for task in tasks.values()}) == 1:
            environments[family] = tasks
        else:
            environments |= {world: {world: task} for world, task in tasks.items()}
    return environments


def write_marl_eval(groups: Sequence[Group], path: Path) -> Path:
    """Write finished runs as a file for marl-eval and return its path; all methods need the same number of seeds."""
    content = json.dumps(to_marl_eval(groups))
    with replacing(Path(path)) as temporary:
        temporary.write_text(content, encoding="utf-8")
    return Path(path)


def _family(world: str) -> str:
    env = world.split(" ")[0]
    return FAMILIES.get(env.split("-")[0], env)


def _task(world: str, groups: list[Group]) -> Task:
    _refuse_what_cannot_be_compared(world, groups)
    runs = [run for group in groups for run in group.runs]
    evaluations = [_evaluations(run) for run in runs]
    episodes = sorted(set.intersection(*map(set, evaluations)))
    if not episodes:
        raise UsageError(f"the runs of {world} have no evaluation in common: use the same evaluate_every for all.")
    metrics = _common_metrics(runs, evaluations, episodes)
    return {
        _algorithm(group.label): {
            f"run_{number}": _run(run, episodes, metrics) for number, run in enumerate(group.runs, start=1)
        }
        for group in groups
    }


def _refuse_what_cannot_be_compared(world: str, groups: list[Group]) -> None:
    names = [_algorithm(group.label).lower() for group in groups]  # marl-eval converts names to lower case
    for group, name in zip(groups, names, strict=True):
        if names.count(name) > 1:
            raise UsageError(
                f"{group.label} is the name of two groups of {world}, which marl-eval cannot tell apart: leave one out."
            )
        for run in group.runs:
            if run.result is None:
                raise UsageError(
                    f"{run.path} is {run.state}, and marl-eval needs finished runs: finish it with "
                    f"`consmarl resume {run.path}` or leave it out."
                )
    if len({len(group.runs) for group in groups}) > 1:
        counts = ", ".join(f"{group.label} {len(group.runs)}" for group in groups)
        raise UsageError(
            f"marl-eval needs the same number of seeds for every method, but {world} has {counts}: "
            "run the missing ones or leave some out."
        )


def _algorithm(label: str) -> str:
    return label.replace(",", ";")  # marl-eval joins names with commas


def _evaluations(run: Run) -> dict[int, dict[str, Any]]:
    return {row["episode"]: row for row in run.rows if row.get(f"{EVALUATED}return") is not None}


def _common_metrics(
    runs: list[Run], evaluations: list[dict[int, dict[str, Any]]], episodes: list[int]
) -> tuple[str, ...]:
    """Return "return" and the counters that all evaluations and results have."""
    rows = [of_run[episode] for of_run in evaluations for episode in episodes]
    known = [{name.removeprefix(EVALUATED) for name in row if name.startswith(EVALUATED)} for row in rows]
    known += [set(run.result or {}) for run in runs]
    return ("return", *sorted(set.intersection(*known) - {"return"} - BOOKKEEPING))


def _run(run: Run, episodes: list[int], metrics: tuple[str, ...]) -> dict[str, Any]:
    rows, result = _evaluations(run), run.result or {}
    steps: dict[str, Any] = {}
    for number, episode in enumerate(episodes, start=1):
        values = {name: [_finite(run, name, rows[episode][EVALUATED + name])] for name in metrics}
        num_steps = _finite(run, "env_steps", rows[episode].get("env_steps", 0))
        steps[f"step_{number}"] = {"step_count": int(num_steps), **values}
    return steps | {"absolute_metrics": {name: [_finite(run, name, result[name])] for name in metrics}}


def _finite(run: Run, name: str, value: float) -> float:
    if not math.isfinite(value):
        raise UsageError(
            f"{name} of {run.path} is NaN or infinite somewhere, which marl-eval cannot read: leave that run out."
        )
    return value


def _shape(task: Task) -> tuple[Any, ...]:
    """Return what marl-eval requires to be equal in all tasks of an environment: algorithms, runs, steps, metrics."""
    runs = next(iter(task.values()))
    steps = runs["run_1"]
    return frozenset(name.lower() for name in task), len(runs), len(steps), tuple(steps["absolute_metrics"])
