"""Small run directories, written as training would leave them."""

import json
from pathlib import Path

COUNTERS = {"pgm": "gold_mined", "ft": "opened", "cleanup": "apples_eaten"}


def evaluated(returns, *, every=1_000, steps=25, counter="gold_mined", **constant):
    """Rows with one evaluation each; the first is from before training."""
    rows = []
    for number, value in enumerate(returns):
        row = {"episode": number * every, "evaluation_return": value, "evaluation_return_error": 0.1}
        row[f"evaluation_{counter}"] = value / 10
        if number:
            row |= {
                "env_steps": number * every * steps,
                "return": value - 1,
                "epsilon": 0.05,
                "seconds": 1.0,
                **constant,
            }
        rows.append(row)
    return rows


def write_run(
    directory,
    *,
    env="pgm-3ag",
    method="iql",
    seed=0,
    rows=None,
    result="of the last row",
    label=None,
    failure=None,
    **config,
):
    """Write a run's directory; `rows` may be a list of evaluated returns, and `result` None for an unfinished run."""
    directory = Path(directory)
    directory.mkdir(parents=True)
    counter = COUNTERS.get(env.split("-")[0], "counted")
    rows = [0.0, 1.0, 2.0] if rows is None else rows
    if rows and not isinstance(rows[0], dict):
        rows = evaluated(rows, counter=counter)
    episodes = rows[-1]["episode"] if rows else 0
    config = {"method": method, "env": env, "set": [], "episodes": episodes, "seed": seed, "share": {}, **config}
    session = {
        "started": "2026-01-02T03:04:05+00:00",
        "episode": 0,
        "versions": {"consmarl": "0.1.0", "python": "3.11.7", "jax": "0.10.2", "jaxlib": "0.10.2", "numpy": "2.3.0"},
        "machine": {"system": "Linux 6.1 x86_64", "processor": "A processor", "cores": 2, "memory_gigabytes": 24.0},
        "command": f"consmarl train --env {env} --method {method} --seed {seed}",
    }
    if result == "of the last row":
        last = rows[-1] if rows else {}
        result = {
            "episode": episodes, "env_steps": last.get("env_steps", 0), "seconds": 60.0, "episodes_evaluated": 400,
            "return": last.get("evaluation_return", 0.0), "return_error": 0.05,
        }  # fmt: skip
        result |= {
            name.removeprefix("evaluation_"): value for name, value in last.items()
            if name.startswith("evaluation_") and "return" not in name
        }  # fmt: skip
    _write(directory / "config.json", config)
    _write(directory / "run.json", {"format": 1, "label": label, "sessions": [session]})
    (directory / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    if failure is not None:
        _write(directory / "failure.json", {"error": failure})
    elif result is not None:
        _write(directory / "result.json", result)
    return directory


def _write(path, content):
    path.write_text(json.dumps(content), encoding="utf-8")
