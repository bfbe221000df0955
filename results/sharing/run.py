"""Make the runs that `collect.py` collects: sharing and its rivals with one learner. Finished runs are not repeated.

    python -m results.sharing.run --envs pgm-6ag --seeds 110 111
    python -m results.sharing.run --methods iql cons    # on every environment, with its own seeds
    python -m results.sharing.run ablation              # CONS with one ingredient changed each, in a small environment
    python -m results.sharing.run rescue                # some of them where an agent of IQL's team never learns to mine

`--out` sets another folder than runs/sharing, `--workers` the number of parallel runs, each with a seed of its own.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from results.learning.run import folder_of
from results.running import batches, sweep

DEMO = json.loads((Path(__file__).parents[2] / "examples" / "demo.json").read_text())
NOTHING: Mapping[str, Any] = {}
OF_ABLATION, OF_RESCUE = "ablation", "rescue"


class Setting(NamedTuple):
    """How long the methods learn in an environment, and with which seeds."""

    episodes: int
    seeds: Sequence[int]  # none of them was used to choose a setting


SETTINGS = {
    "pgm-3ag": Setting(8_000, range(130, 140)),
    "pgm-6ag": Setting(6_000, range(125, 130)),
    "ft": Setting(8_000, range(120, 125)),
    "cleanup": Setting(8_000, range(120, 130)),
}
# The ablation's environment and length are those of `make demo`, where CONS has an established lead; its seeds are not.
[ABLATION_ENV] = DEMO["envs"]
ABLATION_OPTIONS: Mapping[str, Any] = DEMO["options"] | {"evaluate_every": 60, "evaluation_episodes": 100}
ABLATION_SEEDS = range(220, 230)


class Variant(NamedTuple):
    """A method with some settings changed."""

    method: str
    changes: Mapping[str, Any] = NOTHING


THREE_UPDATES, IQL_THREE_UPDATES = "cons-3-updates", "iql-3-updates"
EXPLORES_LONGER = "iql-explores-150000"
# All of them learn with the preset recommended.
METHODS = {
    "iql": Variant("iql"),
    "cons": Variant("cons"),
    "adhoc-td": Variant("adhoc-td"),
    "seql": Variant("seql"),
    THREE_UPDATES: Variant("cons", {"updates_per_episode": 3}),  # as much learning as in SEQL with three agents
    IQL_THREE_UPDATES: Variant("iql", {"updates_per_episode": 3}),
    EXPLORES_LONGER: Variant("iql", {"epsilon_anneal_steps": 150_000}),  # best for IQL with the former schedule
}
# The other methods run in every environment.
ENVS_OF = {THREE_UPDATES: ("pgm-3ag",), IQL_THREE_UPDATES: ("pgm-3ag",), EXPLORES_LONGER: ("pgm-6ag",)}

WHOLE = "CONS"  # what all variants are compared with
# Each variant of CONS has one ingredient changed.
ABLATION = {
    WHOLE: Variant("cons"),
    "IQL": Variant("iql"),
    "IQL, 14,000 steps of exploration": Variant("iql", {"epsilon_anneal_steps": 14_000}),
    "AdHocTD": Variant("adhoc-td"),
    "AdHocTD, asking as rarely as in the paper": Variant("adhoc-td", {"share.ask_scale": 0.5}),
    "SEQL": Variant("seql"),
    "SEQL whose agents also share as in CONS": Variant("seql", {"sharing": "cons"}),
    "IQL, three updates per episode": Variant("iql", {"updates_per_episode": 3}),
    "CONS, three updates per episode": Variant("cons", {"updates_per_episode": 3}),
    "teachers with the student's memory": Variant("cons", {"share.teacher_memory": "student"}),
    "teachers with their own memory": Variant("cons", {"share.teacher_memory": "own"}),
    "always asking": Variant("cons", {"share.ask_gate": "always"}),
    "asking when exploring": Variant("cons", {"share.ask_gate": "exploring"}),
    "asking as rarely as in the paper": Variant("cons", {"share.ask_scale": 0.5}),
    "asking in all episodes": Variant("cons", {"share.ask_share": 1.0}),
    "anyone teaches": Variant("cons", {"share.eligibility": "anyone"}),
    "more familiar teachers": Variant("cons", {"share.eligibility": "more-familiar"}),
    "Eq. 6 as in the paper": Variant("cons", {"share.eligibility": "either"}),
    "teachers expect 1 more": Variant("cons", {"share.hope_margin": 1.0}),
    "kappa 1": Variant("cons", {"share.temperature": 1.0}),
    "kappa 0.02": Variant("cons", {"share.temperature": 0.02}),
    "positive knowledge only": Variant("cons", {"share.knowledge": "positive-only"}),
    "negative knowledge only": Variant("cons", {"share.knowledge": "negative-only"}),
    "no targeted exploration": Variant("cons", {"share.sampling": "plain"}),
    "a tenth of the budget": Variant("cons", {"share.budget_requests": 5_000}),
    "start after 400 episodes": Variant("cons", {"share.start_episode": 400}),
}
# Seeds in which an agent of IQL's team never learns to mine, and CONS variants that may or may not teach it.
RESCUE_ENV, RESCUE_SEEDS = "pgm-3ag", (130, 131, 136, 137)
RESCUE = (
    "teachers with the student's memory",
    "asking when exploring",
    "asking as rarely as in the paper",
    "more familiar teachers",
    "negative knowledge only",
    "positive knowledge only",
    "kappa 1",
)


def run(variant: Variant, env: str, seeds: Sequence[int], out: Path, workers: int) -> None:
    """Run a method with all seeds that are missing."""
    name, changes = variant
    options = {"episodes": SETTINGS[env].episodes, "evaluation_episodes": 200, **changes}
    sweep([name], [env], seeds, options=options, out=out, workers=workers)


def run_variant(name: str, seeds: Sequence[int], out: Path, workers: int) -> None:
    """Run a variant of the ablation with all seeds that are missing."""
    method, changes = ABLATION[name]
    options = {**ABLATION_OPTIONS, **changes}
    if method in ("iql", "seql") and "sharing" not in changes:  # methods that do not share refuse its options
        options = {key: value for key, value in options.items() if not key.startswith("share.")}
    sweep([method], [ABLATION_ENV], seeds, options=options, set=DEMO["set"], out=out, workers=workers)


def main() -> None:
    """Execute the requested runs: all methods or variants with the first seeds before those with the next."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=("methods", OF_ABLATION, OF_RESCUE), default="methods")
    parser.add_argument("--envs", nargs="+", choices=list(SETTINGS), default=list(SETTINGS))
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--variants", nargs="+", choices=list(ABLATION))
    parser.add_argument("--seeds", nargs="+", type=int)
    parser.add_argument("--out", type=Path, default=Path("runs/sharing"))
    parser.add_argument("--workers", type=int, default=2)
    asked = parser.parse_args()
    if asked.what == OF_ABLATION:
        for seeds in batches(asked.seeds or ABLATION_SEEDS, asked.workers):
            for name in asked.variants or ABLATION:
                run_variant(name, seeds, asked.out / OF_ABLATION / folder_of(name), asked.workers)
        return
    if asked.what == OF_RESCUE:
        for name in asked.variants or RESCUE:
            out = asked.out / OF_RESCUE / folder_of(name)
            run(ABLATION[name], RESCUE_ENV, asked.seeds or RESCUE_SEEDS, out, asked.workers)
        return
    for env in asked.envs:
        for seeds in batches(asked.seeds or SETTINGS[env].seeds, asked.workers):
            for method in (each for each in asked.methods if env in ENVS_OF.get(each, SETTINGS)):
                run(METHODS[method], env, seeds, asked.out / method, asked.workers)


if __name__ == "__main__":
    main()
