"""Train our methods for as many steps as one of JaxMARL's baselines, and compare. From the repository's folder:

    python -m results.jaxmarl.run runs/jaxmarl/ours          # trains what is missing, writes ours.json, prints, draws
    python -m results.jaxmarl.run                            # prints and draws what ours.json and theirs.jsonl hold

`theirs.py` makes theirs.jsonl. Words after the folder select methods and seeds, to train only some of the runs.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from results.collecting import Run, area, draw, groups, numbers, train_and_show
from results.jaxmarl.settings import ENV, EPISODE_STEPS, EPISODES, EVALUATION_EPISODES, EVALUATIONS, SEEDS, STEPS

import consmarl
from consmarl.reports.statistics import interval

HERE = Path(__file__).parent
METHODS = ("vdn", "iql")
# Settings that differ from the preset recommended. The first four are those of the baseline, with exploration as a
# tenth of the budget; the small batch compensates for one update per episode, where the baseline has one per eight.
OPTIONS: dict[str, Any] = {
    "discount": 0.9,
    "bootstrap_time_limit": True,
    "num_envs": 8,
    "epsilon_anneal_steps": STEPS // 10,
    "batch_episodes": 8,
}
PERIODS: dict[str, Any] = {
    "episodes": EPISODES,
    "report_every": EPISODES // EVALUATIONS,
    "evaluate_every": EPISODES // EVALUATIONS,
    "evaluation_episodes": EVALUATION_EPISODES,
    "final_episodes": EVALUATION_EPISODES,
}
LABELS = {
    "vdn_rnn": "JaxMARL's VDN",
    "vdn_rnn NUM_EPOCHS=8 BUFFER_BATCH_SIZE=8": "JaxMARL's VDN, updates as ours",
    "vdn": "consmarl, VDN",
    "iql": "consmarl, IQL",
}


def make_runs(out: Path, methods: Sequence[str], seeds: Sequence[int]) -> None:
    """Train or resume the runs that are missing, one after the other."""
    for method in methods:
        for seed in seeds:
            run = out / method / f"seed-{seed}"
            if (run / "result.json").exists():
                continue
            if run.exists():
                consmarl.resume(run)
                continue
            config = consmarl.TrainConfig(env=f"jaxmarl:{ENV}", method=method, seed=seed)
            consmarl.train(config.with_options({**OPTIONS, **PERIODS}), run)


def theirs() -> list[Run]:
    """Return the baseline's runs in the same form as ours."""
    rows = [json.loads(line) for line in (HERE / "theirs.jsonl").read_text().splitlines()]
    return [{"world": ENV, "episodes": EPISODES, "return": row["evaluations"][-1][1], **row} for row in rows]


def by_steps(run: Run) -> Run:
    """Return one of our runs with its evaluations by environment steps instead of episodes."""
    return {**run, "evaluations": [(episode * EPISODE_STEPS, value) for episode, value in run["evaluations"]]}


def show(ours: list[Run]) -> None:
    """Print the table and draw the curves."""
    runs = [*theirs(), *map(by_steps, ours)]
    by_variant = {variant: group for (_, variant, _), group in groups(runs).items()}
    print("| | n | final team return, seeds | mean [95 %] | area under the curve, mean [95 %] |\n|---|---|---|---|---|")
    for variant in [name for name in LABELS if name in by_variant]:
        group = by_variant[variant]
        finals = [run["return"] for run in group]
        cells = [_with_interval(values) for values in (finals, [area(trained(run)) for run in group])]
        print(f"| {LABELS[variant]} | {len(group)} | {numbers(finals)} | {' | '.join(cells)} |")
    curves = {LABELS[name]: [trained(run) for run in by_variant[name]] for name in LABELS if name in by_variant}
    draw(HERE / "curves.png", f"{ENV}, {STEPS:,} environment steps", curves, {}, "environment steps")


def trained(run: Run) -> Run:
    """Return a run without the evaluation before training: untrained agents walk off, each seed in its own way."""
    return {**run, "evaluations": run["evaluations"][1:]}


def _with_interval(values: Sequence[float]) -> str:
    estimate, low, high = interval(values)
    return f"{estimate:.1f} [{low:.1f}, {high:.1f}]".replace("-", "−")


if __name__ == "__main__":
    train_and_show(HERE / "ours.json", METHODS, SEEDS, make_runs, show)
