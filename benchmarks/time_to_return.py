"""Core-minutes until IQL with the recommended settings reaches and holds the return of the authors' released CONS.

`python -m benchmarks.time_to_return`, `--envs pgm-3ag --seeds 10 11 12` for a part of it. A run has arrived at the
first of three consecutive evaluations that reach the level. Time is the processor time of training on one pinned core,
without compilation and evaluations, like the release's figure.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from typing import Any, NamedTuple

from benchmarks.machine import pin_to_one_core

NUM_HELD = 3  # consecutive evaluations
EPISODES = {"pgm-3ag": 20_000, "pgm-6ag": 14_000, "ft": 30_000, "cleanup": 24_000}  # of our runs; schedules fit these
EVALUATION_EPISODES = 200


class Release(NamedTuple):
    """The authors' release: the return of its CONS, and how long that trains."""

    level: float  # greedy return of the released weights (docs/guide/worlds.md names the file)
    episodes: int  # of its whole run
    milliseconds: float | None  # per training episode on one core, next to ours in one run; None: not measured

    @property
    def minutes(self) -> float | None:
        """Core-minutes of the whole run."""
        return None if self.milliseconds is None else self.milliseconds * self.episodes / 60_000


RELEASES = {
    "pgm-3ag": Release(14.1, 100_000, 77),  # IQL's speed: CONS is slower, and was not measured
    "pgm-6ag": Release(19.7, 80_000, 485),
    "ft": Release(2.9, 50_000, 144),  # IQL's speed
    "cleanup": Release(75.0, 80_000, None),
}
# The release next to ours, in one run on one core: milliseconds per training episode (release, ours).
SIDE_BY_SIDE = {
    "pgm-3ag, IQL": (77, 8.3), "pgm-6ag, IQL": (305, 36), "pgm-6ag, CONS": (485, 43), "ft, IQL": (144, 24),
}  # fmt: skip


def time_to(env: str, seed: int, episodes: int) -> dict[str, Any]:
    """Train in this process until the level is held; episodes and minutes are None if it is not."""
    import jax

    import consmarl

    pin_to_one_core()
    config = consmarl.TrainConfig(env=env, seed=seed, episodes=episodes, preset=consmarl.Preset.RECOMMENDED).resolved()
    trainer = config.trainer()
    rounds = config.evaluation_period // config.round_episodes
    state, level = trainer.init(seed), RELEASES[env].level
    # compiles, and is not counted; on a state of its own, since the state is consumed
    jax.block_until_ready(trainer.run(trainer.init(seed), rounds))
    seconds, returns, times = 0.0, [], []
    for number in range(config.episodes // config.evaluation_period):
        start = time.process_time()
        state, _ = trainer.run(state, rounds)
        jax.block_until_ready(state)
        seconds += time.process_time() - start
        parameters = trainer.learner.evaluated_parameters(state.learner)
        played = trainer.evaluate(parameters, jax.random.fold_in(jax.random.key(seed), number), EVALUATION_EPISODES)
        returns.append(float(played.batch.rewards.sum(axis=(0, 2)).mean()))
        times.append(seconds)
        if len(returns) >= NUM_HELD and min(returns[-NUM_HELD:]) >= level:
            first = len(returns) - NUM_HELD
            return {"episodes": (first + 1) * config.evaluation_period, "minutes": times[first] / 60}
    return {"episodes": None, "minutes": None, "last": returns[-1]}


def measured(env: str, seed: int, episodes: int) -> dict[str, Any]:
    """Do it in a separate process."""
    command = [sys.executable, "-m", "benchmarks.time_to_return", "--one", env, str(seed), str(episodes)]
    environment = os.environ | {"PYTHONWARNINGS": "ignore"}
    result: dict[str, Any] = json.loads(subprocess.check_output(command, text=True, env=environment).splitlines()[-1])
    return result


def main(envs: list[str], seeds: list[int], episodes: int | None) -> None:
    """Print the table."""
    print("A training episode side by side, release and ours, one core, one run:")
    for name, (theirs, ours) in SIDE_BY_SIDE.items():
        print(f"  {name:14s} {theirs:4.0f} and {ours:4.1f} ms, {theirs / ours:.0f} times as fast")
    print("\nTime to the released CONS's return, IQL with the recommended settings, one core:")
    for env in envs:
        release = RELEASES[env]
        results = [measured(env, seed, episodes or EPISODES[env]) for seed in seeds]
        for seed, each in zip(seeds, results, strict=True):
            there = f"{each['episodes']:,} episodes, {each['minutes']:.1f} min" if each["minutes"] else "not reached"
            print(f"  {env:8s} {release.level:5.1f}  seed {seed}: {there}", flush=True)
        reached = [each["minutes"] for each in results if each["minutes"] is not None]
        if reached and release.minutes is not None and len(reached) == len(results):
            mean = statistics.mean(reached)
            print(f"  {env:8s} mean {mean:.1f} min; the release's whole run {release.minutes:,.0f} min: "
                  f"{release.minutes / mean:.0f} times less")  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--envs", nargs="+", choices=list(RELEASES), default=list(RELEASES))
    parser.add_argument("--seeds", nargs="+", type=int, default=[100, 101, 102])
    parser.add_argument("--episodes", type=int, help="per run, instead of the environment's default")
    parser.add_argument("--one", nargs=3, metavar=("ENV", "SEED", "EPISODES"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        env, seed, episodes = arguments.one
        print(json.dumps(time_to(env, int(seed), int(episodes))))
    else:
        main(arguments.envs, arguments.seeds, arguments.episodes)
