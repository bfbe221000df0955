"""Make the runs of the paper's experiments at full length; finished runs are not run again.

    python -m results.paper.run a               # the first part: Patient Gold Miner with three agents
    python -m results.paper.run a b c d e --workers 2
    python -m results.paper.run d --envs cleanup --variants iql cons --seeds 10

`--out` names another folder than runs/paper. Runs that were interrupted continue where they stopped.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from consmarl.experiments.configuration.config import TrainConfig
from consmarl.experiments.sweeps.command import carried_out, workers_for
from consmarl.experiments.sweeps.plan import PlannedRun, Sweep, Variant
from consmarl.experiments.sweeps.studies import FIRST_SEED


class Part(NamedTuple):
    """Some of the runs: one environment, some variants, and the first seeds."""

    env: str
    num_seeds: int
    variants: Sequence[str]
    episodes: int


EPISODES = {"pgm-3ag": 100_000, "pgm-6ag": 80_000, "ft": 50_000, "cleanup": 80_000}
# By name: the method and its settings. The authors' CONS and AdHocTD explore with probability ε², their IQL with ε.
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "iql": ("iql", {"preset": "paper"}),
    "iql-squared": ("iql", {"preset": "paper", "exploration": "epsilon-squared"}),
    "adhoc-td": ("adhoc-td", {"preset": "paper"}),
    "adhoc-td-release": ("adhoc-td", {"preset": "release"}),
    "cons": ("cons", {"preset": "paper"}),
    "cons-release": ("cons", {"preset": "release"}),
    "i2q": ("i2q", {"preset": "paper"}),
    "seql": ("seql", {"preset": "paper"}),
    "ga-comm": ("ga-comm", {"preset": "paper"}),
    "maven": ("maven", {"preset": "paper"}),
    "ablation/cons": ("cons", {"preset": "paper"}),
    "ablation/cons-wo-n": ("cons", {"preset": "paper", "share.knowledge": "positive-only"}),
    "ablation/cons-wo-p": ("cons", {"preset": "paper", "share.knowledge": "negative-only"}),
    "ablation/cons-wo-te": ("cons", {"preset": "paper", "share.sampling": "plain"}),
    "ablation/adhoc-td": ("adhoc-td", {"preset": "paper"}),
}
LABELS = {
    "iql": "IQL",
    "iql-squared": "IQL, ε²",
    "adhoc-td": "AdHocTD, paper",
    "adhoc-td-release": "AdHocTD, release",
    "cons": "CONS, paper",
    "cons-release": "CONS, release",
    "i2q": "I2Q",
    "seql": "SEQL",
    "ga-comm": "GA-Comm",
    "maven": "MAVEN",
    "ablation/cons": "CONS",
    "ablation/cons-wo-n": "without negative knowledge",
    "ablation/cons-wo-p": "without positive knowledge",
    "ablation/cons-wo-te": "without targeted exploration",
    "ablation/adhoc-td": "AdHocTD",
}
ABLATION = tuple(name for name in VARIANTS if name.startswith("ablation/"))
ABLATION_ENV, ABLATION_EPISODES = "pgm-3ag", 40_000  # shorter and smaller than the paper's pgm-6ag and 80,000
ADVISED = ("iql", "adhoc-td", "adhoc-td-release", "cons", "cons-release")


def whole(env: str, num_seeds: int, variants: Sequence[str]) -> Part:
    """Return runs of full length."""
    return Part(env, num_seeds, variants, EPISODES[env])


PARTS = {
    "a": (whole("pgm-3ag", 5, ("iql", "iql-squared", *ADVISED[1:])),),
    "b": (whole("ft", 3, ADVISED),),
    "c": (whole("pgm-3ag", 2, ("i2q", "seql", "ga-comm")),),
    "d": (whole("cleanup", 2, ADVISED), whole("pgm-6ag", 2, ADVISED)),
    "e": (Part(ABLATION_ENV, 3, ABLATION, ABLATION_EPISODES), whole("ft", 1, ("maven",))),
}
# Evaluation does not affect training: more often and longer than in the paper, so that curves can be compared.
EVALUATION = {"evaluate_every": 1_000, "evaluation_episodes": 100}


def seeds_of(part: Part) -> Sequence[int]:
    """Return a part's seeds."""
    return range(FIRST_SEED, FIRST_SEED + part.num_seeds)


def planned(part: Part, variants: Sequence[str] | None = None, seeds: Sequence[int] | None = None) -> list[PlannedRun]:
    """Return the runs of a part, or those of some variants and seeds: the first seed of all variants comes first."""
    chosen = tuple(
        Variant(name, {"method": VARIANTS[name][0], **VARIANTS[name][1]}, LABELS[name])
        for name in part.variants
        if variants is None or name in variants
    )
    if not chosen:
        return []
    base = TrainConfig(episodes=part.episodes, **EVALUATION)
    return Sweep((part.env,), chosen, tuple(seeds or seeds_of(part)), base).runs()


def variant_of(parts: tuple[str, ...]) -> str:
    """Return the variant of a run, given the parts of its path below the folder with all runs."""
    _, *variant, _, _ = parts  # the environment, the variant, the seed, and the file
    return "/".join(variant)


def main() -> None:
    """Make the runs that the command line names, part after part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="+", choices=list(PARTS))
    parser.add_argument("--envs", nargs="+", choices=list(EPISODES))
    parser.add_argument("--variants", nargs="+", choices=list(VARIANTS))
    parser.add_argument("--seeds", nargs="+", type=int)
    parser.add_argument("--out", type=Path, default=Path("runs/paper"))
    parser.add_argument("--workers", type=int, default=2, help="runs at once, one a core")
    asked = parser.parse_args()
    parts = [part for name in asked.parts for part in PARTS[name] if asked.envs is None or part.env in asked.envs]
    runs = [run for part in parts for run in planned(part, asked.variants, asked.seeds)]
    result = carried_out(runs, asked.out, workers_for(asked.workers, None))
    sys.exit(0 if result.is_complete else 1)


if __name__ == "__main__":
    main()
