"""Evaluation of a learned policy."""

from pathlib import Path

import jax
from rich.console import Console
from rich.table import Table

from consmarl.environments import validation
from consmarl.environments.trust import Trust
from consmarl.experiments.configuration.config import TrainConfig
from consmarl.experiments.configuration.limits import num_evaluated
from consmarl.experiments.consult import EXECUTION, consulting
from consmarl.experiments.evaluation import evaluation_summary
from consmarl.experiments.learned import learned_policy
from consmarl.experiments.memory import check_evaluation_memory
from consmarl.experiments.policies import held_weights
from consmarl.sharing.options import Consult


def evaluate(
    policy: Path | str,
    episodes: int = 400,
    seed: int = 0,
    *,
    consult: Consult | str | None = None,
    trust: Trust = False,
) -> dict[str, float]:
    """Play a policy greedily; return means over episodes.

    `policy` is a file or the directory of a run; for an unfinished run, its newest checkpoint is used. Agents act on
    their own, as in the paper, unless `consult` says how they use their teammates' values; requests and answers per
    episode are then counted, too. A third-party environment is a program and is run only if `trust` is True or the id
    that the policy names.
    """
    return _evaluated(policy, episodes, seed, consult, trust)[0]


def print_evaluation(
    policy: Path, episodes: int, seed: int, *, consult: Consult | None = None, trust: Trust = False
) -> None:
    """Evaluate a policy and print the means as a table."""
    summary, config = _evaluated(policy, episodes, seed, consult, trust)
    table = Table("mean per episode", "value", box=None, pad_edge=False)
    table.add_row("team return", f"{summary.pop('return'):.3f} ± {summary.pop('return_error'):.3f}")
    for name, value in summary.items():
        table.add_row(name.replace("_", " "), f"{value:.3f}")
    Console().print(table)
    Console().print(f"agents: {EXECUTION[consult]}", style="dim", highlight=False, soft_wrap=True)
    Console().print(f"weights: {held_weights(config).value}", style="dim")


def _evaluated(
    policy: Path | str, episodes: int, seed: int, consult: Consult | str | None, trust: Trust
) -> tuple[dict[str, float], TrainConfig]:
    num_episodes = num_evaluated("episodes", episodes)
    seed = validation.whole_number("seed", seed, least=0)
    parameters, config = learned_policy(policy, trust=trust)
    trainer = config.trainer()
    sharing = consulting(consult, config, trainer)
    check_evaluation_memory(trainer, num_episodes, sharing)
    return evaluation_summary(trainer, parameters, jax.random.key(seed), num_episodes, sharing), config
