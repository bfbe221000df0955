"""Which ingredient of CONS does what: a newcomer among experts on a small Patient Gold Miner. From the repository:

    python -m results.sharing.ablation runs/sharing-ablation    # trains what is missing, writes ablation.json, prints
    python -m results.sharing.ablation                          # prints what ablation.json holds

Words after the folder select variants (their folders' names) and seeds, to train only some of the runs.

The experts are three agents of one IQL run, of which agent 0 is replaced by an untrained agent, as in `newcomers.py`:
there is certainly something to learn from them, so that the variants differ in how well it is passed on. Each variant
is the preset recommended with the settings below changed; all but IQL and SEQL explore for a tenth of IQL's time, and
share from the first episode on.
"""

from pathlib import Path
from typing import Any

from results.collecting import ABLATION_HEAD, Run, ablation_row, groups, train_and_show
from results.learning.run import SIZES, folder_of
from results.sharing.newcomers import joining, train_missing

import consmarl

HERE = Path(__file__).parent
SMALL = SIZES["small"]
SEEDS = (300, 301, 302, 303, 304)
EPISODES = 2_000
ASKING = {"epsilon_anneal_steps": 1_500, "share.start_episode": 0}
WHOLE = "CONS"
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    WHOLE: ("cons", ASKING),
    "IQL": ("iql", {}),
    "IQL, exploring as briefly as CONS": ("iql", {"epsilon_anneal_steps": 1_500}),
    "SEQL": ("seql", {}),
    "AdHocTD": ("adhoc-td", ASKING),
    "teachers with the student's memory": ("cons", {**ASKING, "share.teacher_memory": "student"}),
    "teachers with their own memory": ("cons", {**ASKING, "share.teacher_memory": "own"}),
    "always asking": ("cons", {**ASKING, "share.ask_gate": "always"}),
    "asking when exploring": ("cons", {**ASKING, "share.ask_gate": "exploring"}),
    "asking in all episodes": ("cons", {**ASKING, "share.ask_share": 1.0}),
    "asking as rarely as in the paper": ("cons", {**ASKING, "share.ask_scale": 0.5}),
    "anyone teaches": ("cons", {**ASKING, "share.eligibility": "anyone"}),
    "Eq. 6 as in the paper": ("cons", {**ASKING, "share.eligibility": "either"}),
    "more familiar teachers": ("cons", {**ASKING, "share.eligibility": "more-familiar"}),
    "teachers expect 1 more": ("cons", {**ASKING, "share.hope_margin": 1.0}),
    "kappa 0.02": ("cons", {**ASKING, "share.temperature": 0.02}),
    "kappa 0.3": ("cons", {**ASKING, "share.temperature": 0.3}),
    "kappa 1": ("cons", {**ASKING, "share.temperature": 1.0}),
    "positive knowledge only": ("cons", {**ASKING, "share.knowledge": "positive-only"}),
    "negative knowledge only": ("cons", {**ASKING, "share.knowledge": "negative-only"}),
    "no targeted exploration": ("cons", {**ASKING, "share.sampling": "plain"}),
    "a tenth of the budget": ("cons", {**ASKING, "share.budget_requests": 5_000}),
    "starting after 500 episodes": ("cons", {**ASKING, "share.start_episode": 500}),
}
FOLDERS = {folder_of(variant): variant for variant in VARIANTS}


def make_runs(out: Path, folders: list[str], seeds: list[int]) -> None:
    """Train the experts and then the newcomers, except for finished runs."""
    world = consmarl.TrainConfig(env="pgm-3ag", set=SMALL.set).with_options(SMALL.options)
    experts = train_missing(world.with_options({"seed": 0}), out / "experts")
    for seed in seeds:
        for folder in folders:
            method, options = VARIANTS[FOLDERS[folder]]
            config = joining(world, experts, method, {"episodes": EPISODES, **options}, seed)
            train_missing(config, out / folder / f"seed-{seed}")


def show(runs: list[Run]) -> None:
    """Print each variant's returns, and how they differ from CONS's."""
    by_folder = {folder: group for (_, folder, _), group in groups(runs).items()}
    print(f"experts {by_folder['experts'][0]['return']:.1f}\n\n{ABLATION_HEAD}")
    reference = {run["seed"]: run for run in by_folder[folder_of(WHOLE)]}
    for folder in (each for each in FOLDERS if each in by_folder):
        print(ablation_row(FOLDERS[folder], by_folder[folder], reference))


if __name__ == "__main__":
    train_and_show(HERE / "ablation.json", list(FOLDERS), SEEDS, make_runs, show)
