"""Make the runs that `collect.py` collects; finished runs are not repeated.

    python -m results.learning.run recommended --envs pgm-6ag --seeds 116 118    # IQL with the preset recommended
    python -m results.learning.run former      # with the schedule that the preset had before, in Patient Gold Miner
    python -m results.learning.run ablation                # without one ingredient each, on a small Patient Gold Miner
    python -m results.learning.run ablation --size full    # the same on pgm-3ag itself, with twice as many episodes

`--out` sets another folder than runs/learning, `--workers` the number of parallel runs.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from results.running import sweep

EPISODES = {"pgm-3ag": 40_000, "pgm-6ag": 14_000, "ft": 24_000, "cleanup": 24_000}
FRESH_SEEDS = {  # none of them was used to choose a setting of its environment
    "pgm-3ag": (106, 107, 108, 109, 110),
    "pgm-6ag": (115, 116, 117, 118, 119),
    "ft": (110, 111, 112, 113, 114),
    "cleanup": (101, 102, 103, 104, 105),
}
# The schedule that `recommended` had in Patient Gold Miner before: later, and with a falling learning rate.
FORMER = {"learn.settle_after": 0.4, "coverage_after": 0.4, "learning_rate_end": 0.1}
FORMER_SEEDS = {"pgm-3ag": (100, 101, 102, 103, 104), "pgm-6ag": (105, 106, 107, 108, 109)}
FORMER_EXPLORATION = {"pgm-6ag": {"epsilon_anneal_steps": 150_000}}  # today 100,000 steps


class Size(NamedTuple):
    """How large the environment of the ablation is, and how long its runs are."""

    set: dict[str, Any]
    options: dict[str, Any]


SIZES = {
    "small": Size(
        {"grid": (5, 5), "mining_steps": 4, "episode_limit": 15},
        {
            "episodes": 4_000,
            "epsilon_anneal_steps": 15_000,
            "warmup_steps": 1_000,
            "hidden_size": 32,
            "evaluate_every": 200,
            "evaluation_episodes": 200,
            **FORMER,
        },
    ),
    "full": Size({}, {"episodes": 8_000, "evaluate_every": 400, "evaluation_episodes": 200, **FORMER}),
}
ABLATION_SEEDS = (200, 201, 202, 203, 204)
# Each variant is the preset recommended, with the former schedule and these settings changed.
ABLATION: dict[str, dict[str, Any]] = {
    "all ingredients": {},
    "one-step target": {"learn.target": "one-step"},
    "Watkins' target": {"learn.target": "watkins"},
    "optimism never fades": {"learn.settle_after": 1},
    "no trace tolerance": {"learn.trace_tolerance": 0},
    "no footprints": {"learn.footprints": False},
    "no coverage bonus": {"coverage_bonus": 0},
    "no mirrored episodes": {"mirror_episodes": False},
    "newest weights": {"learn.averages_weights": False},
    "plain head": {"learn.head": "plain"},
    "target remembers next observation": {"learn.target_memory": "next-observations"},
    "RMSprop, 5e-4": {"optimiser": "rmsprop", "learning_rate": 5e-4},
    "constant learning rate": {"learning_rate_end": 1},
    "epsilon-greedy": {"exploration": "epsilon-greedy"},
    "with double Q": {"learn.double_q": True},
}


def folder_of(variant: str) -> str:
    """Return the name of a variant's folder."""
    return "".join(letter if letter.isalnum() or letter == "-" else "_" for letter in variant)


def run(
    env: str,
    seeds: Sequence[int],
    options: dict[str, Any],
    out: Path,
    workers: int | None,
    set: dict[str, Any] | None = None,
) -> None:
    """Run IQL with these options for all seeds that are missing."""
    everything = {"evaluation_episodes": 400, **options}
    sweep(["iql"], [env], seeds, options=everything, set=set or {}, out=out, workers=workers)


def main() -> None:
    """Execute the requested runs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("recommended", "former", "ablation"))
    parser.add_argument("--envs", nargs="+", choices=list(EPISODES), default=list(EPISODES))
    parser.add_argument("--variants", nargs="+", choices=list(ABLATION), default=list(ABLATION))
    parser.add_argument("--size", choices=list(SIZES), default="small")
    parser.add_argument("--seeds", nargs="+", type=int)
    parser.add_argument("--out", type=Path, default=Path("runs/learning"))
    parser.add_argument("--workers", type=int)
    asked = parser.parse_args()
    if asked.what == "recommended":
        for env in asked.envs:
            seeds, out = asked.seeds or FRESH_SEEDS[env], asked.out / "recommended"
            run(env, seeds, {"episodes": EPISODES[env]}, out, asked.workers)
        return
    if asked.what == "former":
        for env in (each for each in asked.envs if each in FORMER_SEEDS):
            seeds, out = asked.seeds or FORMER_SEEDS[env], asked.out / "former"
            options = {"episodes": EPISODES[env], **FORMER, **FORMER_EXPLORATION.get(env, {})}
            run(env, seeds, options, out, asked.workers)
        return
    size = SIZES[asked.size]
    for variant in asked.variants:
        seeds, out = asked.seeds or ABLATION_SEEDS, asked.out / f"ablation-{asked.size}" / folder_of(variant)
        run("pgm-3ag", seeds, size.options | ABLATION[variant], out, asked.workers, size.set)


if __name__ == "__main__":
    main()
