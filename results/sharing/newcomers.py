"""A newcomer among experts: how soon its team is as good as that of the experts. From the repository's folder:

    python -m results.sharing.newcomers runs/newcomers    # trains what is missing, writes newcomers.json, draws
    python -m results.sharing.newcomers                   # prints and draws what newcomers.json holds

Words after the folder select variants and seeds, to train only some of the runs.

The experts are three agents of one IQL run. Agent 0 leaves, and an untrained agent replaces it. The experts act and
teach but no longer learn. The newcomer learns alone (IQL, with the usual exploration), or asks (CONS, from the first
episode, with a tenth of that exploration), or explores as little as CONS does but cannot ask.
"""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from results.collecting import Run, area, draw, groups, numbers, train_and_show
from results.learning.run import FORMER

import consmarl
from consmarl.reports.statistics import episodes_to_reach, interval

HERE = Path(__file__).parent
ENV, EPISODES, SEEDS = "pgm-3ag", 8_000, (120, 121, 122, 123, 124)
EXPERTS = {"episodes": 8_000, "seed": 0}
SHORT = {"epsilon_anneal_steps": 5_000}
VARIANTS = {
    "alone": ("iql", {}),
    "alone-short": ("iql", SHORT),
    "cons": ("cons", {**SHORT, "share.start_episode": 0, "share.ask_scale": 0.5}),
}
LABELS = {
    "alone": "alone (IQL)",
    "alone-short": "alone, with CONS's exploration",
    "cons": "asking the experts (CONS)",
}
SHARE_OF_EXPERTS = 0.9


def make_runs(out: Path, variants: list[str], seeds: list[int]) -> None:
    """Train the experts and then the newcomers, except for finished runs."""
    world = consmarl.TrainConfig(env=ENV, episodes=EPISODES).with_options(FORMER)
    experts = train_missing(world.with_options(EXPERTS), out / "experts")
    for seed in seeds:
        for variant in variants:
            train_missing(joining(world, experts, *VARIANTS[variant], seed), out / variant / f"seed-{seed}")


def joining(
    world: consmarl.TrainConfig, experts: Path, method: str, options: Mapping[str, Any], seed: int
) -> consmarl.TrainConfig:
    """Return the configuration of a run in which a newcomer takes agent 0's place among experts."""
    among = dataclasses.replace(world, method=method, seed=seed, teachers=str(experts), newcomers=(0,))
    return among.with_options(options)


def train_missing(config: consmarl.TrainConfig, run: Path) -> Path:
    """Train or resume a run unless it is finished; return its folder."""
    if not run.exists():
        consmarl.train(config, run)
    elif not (run / "result.json").exists():
        consmarl.resume(run)
    return run


def show(runs: list[Run]) -> None:
    """Print the table and draw the curves."""
    by_variant = {variant: group for (_, variant, _), group in groups(runs).items()}
    expert_return = by_variant.pop("experts")[0]["return"]
    level = SHARE_OF_EXPERTS * expert_return
    print(f"experts {expert_return:.1f}, level {level:.1f}\n")
    print("| newcomer | n | final return, seeds | mean [95 %] | episodes to the level, seeds |\n|---|---|---|---|---|")
    for variant in [name for name in VARIANTS if name in by_variant]:
        group = by_variant[variant]
        finals = [run["return"] for run in group]
        estimate, low, high = interval(finals)
        reached = [episodes_to_reach(*np.array(run["evaluations"]).T, level) for run in group]
        times = ", ".join("not reached" if each is None else f"{each:,.0f}" for each in reached)
        mean = f"{estimate:.1f} [{low:.1f}, {high:.1f}]"
        print(f"| {LABELS[variant]} | {len(group)} | {numbers(finals)} | {mean} | {times} |")
    _print_gap(by_variant)
    curves = {LABELS[variant]: by_variant[variant] for variant in VARIANTS if variant in by_variant}
    lines = {"the experts' own team": expert_return, f"{SHARE_OF_EXPERTS:.0%} of it": level}
    title = f"A newcomer among experts, {ENV}"
    draw(HERE / "newcomers.png", title, curves, lines, "episodes of the newcomer")


def _print_gap(by_variant: dict[str, list[Run]]) -> None:
    """Print how much larger the area under the curve is with CONS than alone, compared seed by seed."""
    asking, alone = ({run["seed"]: area(run) for run in by_variant.get(name, ())} for name in ("cons", "alone"))
    gaps = [asking[seed] - alone[seed] for seed in asking if seed in alone]
    estimate, low, high = interval(gaps)
    print(f"\narea under the curve, CONS − alone: {estimate:.1f} [{low:.1f}, {high:.1f}]; seeds {numbers(gaps)}")


if __name__ == "__main__":
    train_and_show(HERE / "newcomers.json", list(VARIANTS), SEEDS, make_runs, show)
