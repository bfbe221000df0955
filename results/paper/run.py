"""Make the runs of the paper's experiments at full length, part by part; finished runs are not run again.

    python -m results.paper.run a               # the first part: Patient Gold Miner with three agents
    python -m results.paper.run a b c d e --workers 2
    python -m results.paper.run d --envs cleanup --variants iql cons --seeds 10

`--out` names another folder than runs/paper. Runs that were interrupted continue where they stopped.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from results.running import batches, sweep

FIRST_SEED = 10  # the default in the authors' code


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


def run(variant: str, part: Part, seeds: Sequence[int], out: Path, workers: int) -> None:
    """Make a variant's runs with these seeds, except those that are finished."""
    method, options = VARIANTS[variant]
    everything = {"episodes": part.episodes, **EVALUATION, **options}
    sweep([method], [part.env], seeds, options=everything, out=out / variant, workers=workers)


def variant_of(parts: tuple[str, ...]) -> str:
    """Return the variant of a run, given the parts of its path below the folder with all runs."""
    return "/".join(parts[:2]) if parts[0] == "ablation" else parts[0]


def main() -> None:
    """Make the runs of the parts that the command line names: the first seeds of all variants before the next ones."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="+", choices=list(PARTS))
    parser.add_argument("--envs", nargs="+", choices=list(EPISODES))
    parser.add_argument("--variants", nargs="+", choices=list(VARIANTS))
    parser.add_argument("--seeds", nargs="+", type=int)
    parser.add_argument("--out", type=Path, default=Path("runs/paper"))
    parser.add_argument("--workers", type=int, default=2, help="runs at once, each with a seed of its own")
    asked = parser.parse_args()
    parts = [part for name in asked.parts for part in PARTS[name] if asked.envs is None or part.env in asked.envs]
    for part in parts:
        seeds = asked.seeds or seeds_of(part)
        for some in batches(seeds, asked.workers):
            for variant in (each for each in part.variants if asked.variants is None or each in asked.variants):
                run(variant, part, some, asked.out, asked.workers)


if __name__ == "__main__":
    main()
