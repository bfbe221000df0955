"""Make the runs that `collect.py` collects: sharing and its rivals with one learner. Finished runs are not repeated.

    python -m results.sharing.run --envs pgm-6ag --seeds 110 111
    python -m results.sharing.run --variants iql cons              # on every environment, with its own seeds

`--out` sets another folder than runs/sharing, `--workers` the number of parallel runs.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import consmarl


class Setting(NamedTuple):
    """How the methods are compared in one environment."""

    episodes: int
    seeds: Sequence[int]  # none of them was used to choose a setting
    long_exploration: int  # environment steps over which epsilon is annealed: the best value found for IQL
    short_exploration: int  # the best value found for methods that share


SETTINGS = {
    "pgm-3ag": Setting(8_000, range(110, 120), 50_000, 20_000),
    "pgm-6ag": Setting(6_000, range(110, 115), 150_000, 50_000),
}
# By name: the method, and whether it uses long exploration. All of them learn with the preset recommended.
VARIANTS = {
    "iql": ("iql", True),
    "iql-short": ("iql", False),
    "cons": ("cons", False),
    "cons-long": ("cons", True),
    "adhoc-td": ("adhoc-td", False),
    "seql": ("seql", True),
}


def run(variant: str, env: str, seeds: Sequence[int], out: Path, workers: int | None) -> None:
    """Run a variant with all seeds that are missing."""
    method, explores_for_long = VARIANTS[variant]
    setting = SETTINGS[env]
    steps = setting.long_exploration if explores_for_long else setting.short_exploration
    options: dict[str, Any] = {
        "episodes": setting.episodes,
        "epsilon_anneal_steps": steps,
        "evaluation_episodes": 200,
    }
    consmarl.sweep([method], [env], seeds, options=options, out=out / variant, workers=workers)


def main() -> None:
    """Execute the requested runs: all variants with one seed before those with the next."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--envs", nargs="+", choices=list(SETTINGS), default=list(SETTINGS))
    parser.add_argument("--variants", nargs="+", choices=list(VARIANTS), default=list(VARIANTS))
    parser.add_argument("--seeds", nargs="+", type=int)
    parser.add_argument("--out", type=Path, default=Path("runs/sharing"))
    parser.add_argument("--workers", type=int)
    asked = parser.parse_args()
    for env in asked.envs:
        for seed in asked.seeds or SETTINGS[env].seeds:
            for variant in asked.variants:
                run(variant, env, [seed], asked.out, asked.workers)


if __name__ == "__main__":
    main()
