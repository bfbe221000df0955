"""Make the runs that `collect.py` collects: sharing and its rivals with one learner. Finished runs are not repeated.

    python -m results.sharing.run --envs pgm-6ag --seeds 110 111
    python -m results.sharing.run --methods iql cons              # on every environment, with its own seeds

`--out` sets another folder than runs/sharing, `--workers` the number of parallel runs.
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import consmarl


class Setting(NamedTuple):
    """How the methods are compared in one environment."""

    episodes: int
    seeds: Sequence[int]  # none of them was used to choose a setting
    exploration: Mapping[str, int]  # by method, steps over which epsilon is annealed: the best value found for it


SETTINGS = {
    "pgm-3ag": Setting(8_000, range(110, 120), {"iql": 50_000, "cons": 50_000, "adhoc-td": 50_000, "seql": 50_000}),
    "pgm-6ag": Setting(6_000, range(110, 115), {"iql": 150_000, "cons": 50_000, "adhoc-td": 50_000, "seql": 150_000}),
}
METHODS = ("iql", "cons", "adhoc-td", "seql")  # all of them learn with the preset recommended


def run(method: str, env: str, seeds: Sequence[int], out: Path, workers: int | None) -> None:
    """Run a method with all seeds that are missing."""
    setting = SETTINGS[env]
    options: dict[str, Any] = {
        "episodes": setting.episodes,
        "epsilon_anneal_steps": setting.exploration[method],
        "evaluation_episodes": 200,
    }
    consmarl.sweep([method], [env], seeds, options=options, out=out / method, workers=workers)


def main() -> None:
    """Execute the requested runs: all methods with one seed before those with the next."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--envs", nargs="+", choices=list(SETTINGS), default=list(SETTINGS))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--seeds", nargs="+", type=int)
    parser.add_argument("--out", type=Path, default=Path("runs/sharing"))
    parser.add_argument("--workers", type=int)
    asked = parser.parse_args()
    for env in asked.envs:
        for seed in asked.seeds or SETTINGS[env].seeds:
            for method in asked.methods:
                run(method, env, [seed], asked.out, asked.workers)


if __name__ == "__main__":
    main()
