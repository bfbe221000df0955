"""Print what each agent of a trained team earns, on average over 200 greedy episodes. From the repository's folder:

python -m results.sharing.by_agent runs/sharing/iql/pgm-3ag/iql/seed-112
"""

import sys
from pathlib import Path

import jax
import numpy as np
from results.collecting import numbers

from consmarl.experiments.policies import load_policy

EPISODES = 200


def main() -> None:
    """Evaluate the policies of the runs named on the command line."""
    for run in map(Path, sys.argv[1:]):
        parameters, config = load_policy(run / "policy.safetensors")
        played = config.trainer().evaluate(parameters, jax.random.key(7), EPISODES)
        print(f"{config.method}, seed {config.seed}: {numbers(np.mean(played.batch.rewards.sum(axis=2), axis=1))}")


if __name__ == "__main__":
    main()
