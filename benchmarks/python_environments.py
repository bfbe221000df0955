"""Measure how much faster training is with several copies of an environment that steps in Python than with one.

`make bench`, or `python -m benchmarks.python_environments`. IQL trains in `pettingzoo:mpe2.simple_spread_v3`; both
arrangements alternate in one process and its workers. `--all` measures more arrangements.
"""

import argparse
import dataclasses
import time
from typing import Any

ENV = "pettingzoo:mpe2.simple_spread_v3"
GOAL = 1.6  # times the steps per second of a single environment, on two cores
EPISODES = 48  # per turn; every number of environments below divides it
TURNS = 8
ONE, GOAL_ENVS = (1, 0), 16
MORE = ((1, 0), (4, 0), (4, None), (8, None), (16, 0), (16, None), (24, None))  # (environments, worker processes)


def trainer_of(num_envs: int, num_workers: int | None) -> Any:
    """Return a trainer that learns from the first episode on."""
    from consmarl.experiments.bench import without_warmup
    from consmarl.experiments.configuration.config import TrainConfig

    config = TrainConfig(env=ENV, episodes=EPISODES * 100, num_envs=num_envs, replay_episodes=EPISODES * 20)
    trainer: Any = without_warmup(config).trainer()
    return dataclasses.replace(trainer, num_workers=num_workers)


def measure(arrangements: tuple[tuple[int, int | None], ...]) -> dict[tuple[int, int | None], list[float]]:
    """Return the steps per second in every turn, by arrangement."""
    import jax

    trainers = {each: trainer_of(*each) for each in arrangements}
    states, rates = {}, {each: [] for each in arrangements}  # type: ignore[var-annotated]
    for each, trainer in trainers.items():
        states[each], _ = trainer.run(trainer.init(0), EPISODES // trainer.num_envs)  # compiles, and starts processes
    for _ in range(TURNS):
        for each, trainer in trainers.items():
            before, start = int(states[each].num_env_steps), time.perf_counter()
            states[each], _ = trainer.run(states[each], EPISODES // trainer.num_envs)
            jax.block_until_ready(states[each])
            rates[each].append((int(states[each].num_env_steps) - before) / (time.perf_counter() - start))
    for trainer in trainers.values():
        trainer.copies.close()
    return rates


def main() -> None:
    """Print the steps per second of each arrangement, and their ratios."""
    from consmarl.environments.pool import num_cores

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="measure more arrangements")
    arrangements = MORE if parser.parse_args().all else (ONE, (GOAL_ENVS, None))
    rates = measure(arrangements)
    slowest = max(rates[ONE])
    print(f"\n{ENV}, IQL: environment steps a second of training, {num_cores()} cores, best of {TURNS} turns")
    for (num_envs, num_workers), of_turns in rates.items():
        where = "in one process" if num_workers == 0 else f"in {min(num_cores(), num_envs)} processes"
        ratio = max(of_turns) / slowest
        goal = f", goal {GOAL}" if (num_envs, num_workers) == (GOAL_ENVS, None) else ""
        print(f"num_envs {num_envs:2d}, {where:14s} {max(of_turns):8,.0f}   {ratio:.2f} times{goal}")


if __name__ == "__main__":
    main()
