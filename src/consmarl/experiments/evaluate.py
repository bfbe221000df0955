"""What a learned policy reaches."""

from pathlib import Path

import jax
from rich.console import Console
from rich.table import Table

from consmarl.environments import validation
from consmarl.experiments.policies import load_policy, policy_file
from consmarl.experiments.evaluation import evaluation_summary


def evaluate(policy: Path, episodes: int = 400, seed: int = 0) -> dict[str, float]:
    """Play a policy file, or a finished run's policy, greedily; return means over episodes."""
    num_episodes = validation.whole_number("episodes", episodes, least=1)
    parameters, config = load_policy(policy_file(policy))
    key = jax.random.key(validation.whole_number("seed", seed, least=0))
    return evaluation_summary(config.trainer(), parameters, key, num_episodes)


def print_evaluation(policy: Path, episodes: int, seed: int) -> None:
    """Evaluate and print a table."""
    summary = evaluate(policy, episodes, seed)
    table = Table("mean of an episode", "value", box=None, pad_edge=False)
    table.add_row("team return", f"{summary.pop('return'):.3f} ± {summary.pop('return_error'):.3f}")
    for name, value in summary.items():
        table.add_row(name.replace("_", " "), f"{value:.3f}")
    Console().print(table)
