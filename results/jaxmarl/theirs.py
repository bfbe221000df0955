"""Run one of JaxMARL's own Q-learning baselines, from a checkout of its repository:

    git clone https://github.com/FLAIROx/JaxMARL && pip install --no-deps flashbax
    python -m results.jaxmarl.theirs JaxMARL/baselines/QLearning vdn_rnn runs/jaxmarl/theirs.jsonl

The algorithm and its settings are those of the checkout; only the number of steps is ours. `--changes NUM_EPOCHS=8`
trains with other settings, as a separate variant. Hydra, OmegaConf and wandb, which the baseline uses for its command
line and its logs, are not needed: this script collects the rows that it logs. Seeds are trained separately, because
under `vmap` the baseline evaluates at every update.
"""

import argparse
import importlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
from results.jaxmarl.settings import ENV, EVALUATION_EPISODES, EVALUATIONS, SEEDS, STEPS

RETURN = "test_returned_episode_returns"  # MPELogWrapper: mean over agents of 3 x reward, so the sum over agents


def baseline(folder: Path, name: str, logged: list[dict[str, Any]]) -> Any:
    """Import a baseline, with stand-ins for Hydra, OmegaConf and wandb; the rows that it logs are added to `logged`."""
    stand_ins: dict[str, dict[str, Any]] = {
        "wandb": {"log": logged.append},
        "hydra": {"main": lambda **_: lambda function: function},
        "omegaconf": {"OmegaConf": None},
    }
    for package, contents in stand_ins.items():
        sys.modules[package] = ModuleType(package)
        vars(sys.modules[package]).update(contents)
    sys.path.insert(0, str(folder))
    return importlib.import_module(name)


def settings(folder: Path, changes: Sequence[str]) -> dict[str, Any]:
    """Return the baseline's own settings for MPE, with our number of steps and with `changes`."""
    import yaml

    config = yaml.safe_load((folder / "config" / "alg" / "ql_rnn_mpe.yaml").read_text())
    config |= {"TOTAL_TIMESTEPS": STEPS, "LOG_AGENTS_SEPARATELY": False, "WANDB_MODE": "kept"}
    if config["ENV_NAME"] != ENV or config["TEST_NUM_ENVS"] != EVALUATION_EPISODES:
        raise SystemExit(f"{folder} has other settings than those compared here.")
    return {**config, **yaml.safe_load("\n".join(change.replace("=", ": ") for change in changes) or "{}")}


def curve(rows: Sequence[dict[str, Any]]) -> list[tuple[int, float]]:
    """Return (environment steps, greedy team return) of every evaluation; the first is that of untrained agents."""
    in_order = sorted(rows, key=lambda row: int(row["update_steps"]))
    every = len(in_order) // EVALUATIONS
    found = [(int(row["env_step"]), round(float(row[RETURN]), 2)) for row in in_order[every - 1 :: every]]
    return [(0, round(float(in_order[0][RETURN]), 2)), *found]


def main() -> None:
    """Train every seed and append its curve to a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("baseline", choices=("vdn_rnn", "iql_rnn"))
    parser.add_argument("out", type=Path)
    parser.add_argument("--seeds", nargs="+", type=int, default=SEEDS)
    parser.add_argument("--changes", nargs="+", default=(), metavar="NAME=VALUE")
    asked = parser.parse_args()
    rows: list[dict[str, Any]] = []
    module, config = baseline(asked.folder, asked.baseline, rows), settings(asked.folder, asked.changes)
    env, _ = module.env_from_config(config)
    train = jax.jit(module.make_train(config, env))
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    for seed in asked.seeds:
        rows.clear()
        jax.block_until_ready(train(jax.random.split(jax.random.PRNGKey(seed), 1)[0]))
        jax.effects_barrier()
        run = {
            "variant": " ".join((asked.baseline, *asked.changes)),
            "seed": seed,
            "updates": max(int(row["grad_steps"]) for row in rows),
            "evaluations": curve(rows),
        }
        with asked.out.open("a") as file:
            file.write(json.dumps(run) + "\n")
        print(json.dumps(run), flush=True)


if __name__ == "__main__":
    main()
