"""Make the runs that `collect.py` collects: sharing and its rivals with one learner. Finished runs are not repeated.

    python -m results.sharing.run --envs pgm-6ag --seeds 110 111
    python -m results.sharing.run --methods iql cons          # on every environment, with its own seeds
    python -m results.sharing.run ablation                    # CONS with one ingredient changed each, on pgm-3ag

`--out` sets another folder than runs/sharing, `--workers` the number of parallel runs.
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from results.learning.run import folder_of

import consmarl

NOTHING: Mapping[str, Any] = {}
OF_ABLATION = "ablation"


class Setting(NamedTuple):
    """How long the methods learn in an environment, and with which seeds."""

    episodes: int
    seeds: Sequence[int]  # none of them was used to choose a setting


SETTINGS = {
    "pgm-3ag": Setting(8_000, range(110, 120)),
    "pgm-6ag": Setting(6_000, range(110, 115)),
    "ft": Setting(24_000, range(110, 115)),
    "cleanup": Setting(24_000, range(101, 106)),
}
# All of them learn with the preset recommended, which has another exploration for methods that share in pgm-6ag.
METHODS = ("iql", "cons", "adhoc-td", "seql")

ABLATION_ENV, ABLATION_SEEDS = "pgm-3ag", (110, 111, 112, 113, 114)
# Each variant is CONS with these settings changed.
ABLATION: dict[str, dict[str, Any]] = {
    "teachers with the student's memory": {"share.teacher_memory": "student"},
    "teachers with their own memory": {"share.teacher_memory": "own"},
    "always asking": {"share.ask_gate": "always"},
    "asking when exploring": {"share.ask_gate": "exploring"},
    "asking as rarely as in the paper": {"share.ask_scale": 0.5},
    "asking in all episodes": {"share.ask_share": 1.0},
    "anyone teaches": {"share.eligibility": "anyone"},
    "more familiar teachers": {"share.eligibility": "more-familiar"},
    "Eq. 6 as in the paper": {"share.eligibility": "either"},
    "teachers expect 1 more": {"share.hope_margin": 1.0},
    "kappa 1": {"share.temperature": 1.0},
    "kappa 0.02": {"share.temperature": 0.02},
    "positive knowledge only": {"share.knowledge": "positive-only"},
    "negative knowledge only": {"share.knowledge": "negative-only"},
    "no targeted exploration": {"share.sampling": "plain"},
    "a tenth of the budget": {"share.budget_requests": 5_000},
    "start after 3,000 episodes": {"share.start_episode": 3_000},
}


def run(
    method: str, env: str, seeds: Sequence[int], out: Path, workers: int | None, changes: Mapping[str, Any] = NOTHING
) -> None:
    """Run a method with all seeds that are missing, optionally with some settings changed."""
    options = {"episodes": SETTINGS[env].episodes, "evaluation_episodes": 200, **changes}
    consmarl.sweep([method], [env], seeds, options=options, out=out, workers=workers)


def main() -> None:
    """Execute the requested runs: all methods or variants with one seed before those with the next."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=("methods", "ablation"), default="methods")
    parser.add_argument("--envs", nargs="+", choices=list(SETTINGS), default=list(SETTINGS))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--variants", nargs="+", choices=list(ABLATION), default=list(ABLATION))
    parser.add_argument("--seeds", nargs="+", type=int)
    parser.add_argument("--out", type=Path, default=Path("runs/sharing"))
    parser.add_argument("--workers", type=int)
    asked = parser.parse_args()
    if asked.what == "ablation":
        for seed in asked.seeds or ABLATION_SEEDS:
            for variant in asked.variants:
                out = asked.out / OF_ABLATION / folder_of(variant)
                run("cons", ABLATION_ENV, [seed], out, asked.workers, ABLATION[variant])
        return
    for env in asked.envs:
        for seed in asked.seeds or SETTINGS[env].seeds:
            for method in asked.methods:
                run(method, env, [seed], asked.out / method, asked.workers)


if __name__ == "__main__":
    main()
