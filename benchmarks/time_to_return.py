"""Core-minutes until IQL with the recommended settings reaches and holds the return of the authors' released CONS.

`python -m benchmarks.time_to_return`, `--envs pgm-3ag --seeds 10 11 12` for a part of it. A run has arrived at the
first of three consecutive evaluations that reach the level. Time is the processor time of training on one pinned core,
without compilation and evaluations.

The authors' release cannot be run here. What its whole run would take on this machine is estimated from a run in which
it and ours were timed side by side on one core: so many times what our own preset `paper` takes now.
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


class SideBySide(NamedTuple):
    """A training episode of the release and of ours, preset `paper`, timed in one run on one core."""

    method: str  # CONS where it was timed; IQL elsewhere, which is quicker, so that the estimate is too low
    theirs: float  # milliseconds
    ours: float

    @property
    def ratio(self) -> float:
        """How many times as long theirs takes."""
        return self.theirs / self.ours


class Release(NamedTuple):
    """The authors' release: the return of its CONS, and how long that trains."""

    level: float  # greedy return of the released weights (docs/guide/worlds.md names the file)
    episodes: int  # of its whole run
    speed: SideBySide | None  # None: not measured


RELEASES = {
    "pgm-3ag": Release(14.1, 100_000, SideBySide("iql", 77, 8.3)),
    "pgm-6ag": Release(19.7, 80_000, SideBySide("cons", 485, 43)),
    "ft": Release(2.9, 50_000, SideBySide("iql", 144, 24)),
    "cleanup": Release(75.0, 80_000, None),
}
TIMED_ROUNDS = 400  # of the preset `paper`


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


def paper_milliseconds(env: str, method: str) -> float:
    """Return the processor time of a training episode of ours with the preset `paper`, once it learns."""
    import jax

    import consmarl

    pin_to_one_core()
    config = consmarl.TrainConfig(env=env, method=method, seed=0, preset=consmarl.Preset.PAPER).resolved()
    trainer = config.trainer()
    rounds = TIMED_ROUNDS // config.round_episodes
    state, _ = trainer.run(trainer.init(0), rounds)  # compiles, and fills replay until learning begins
    jax.block_until_ready(state)
    start = time.process_time()
    jax.block_until_ready(trainer.run(state, rounds))
    return (time.process_time() - start) * 1_000 / (rounds * config.round_episodes)


def in_own_process(*words: str) -> Any:
    """Do one part in a separate process, which has the core to itself."""
    command = [sys.executable, "-m", "benchmarks.time_to_return", "--one", *words]
    environment = os.environ | {"PYTHONWARNINGS": "ignore"}
    return json.loads(subprocess.check_output(command, text=True, env=environment).splitlines()[-1])


def release_minutes(release: Release, env: str) -> float | None:
    """Print and return the estimated core-minutes of the release's whole run on this machine."""
    if release.speed is None:
        return None
    ours = in_own_process("paper", env, release.speed.method)
    theirs = ours * release.speed.ratio
    method, ratio = release.speed.method, release.speed.ratio
    print(f"  {env:8s} preset paper, {method}: {ours:.1f} ms an episode; the release {ratio:.1f} "
          f"times as long (side by side), about {theirs:.0f} ms", flush=True)  # fmt: skip
    return theirs * release.episodes / 60_000


def main(envs: list[str], seeds: list[int], episodes: int | None) -> None:
    """Print the table."""
    print("Time to the released CONS's return, IQL with the recommended settings, one core:")
    for env in envs:
        release = RELEASES[env]
        theirs = release_minutes(release, env)
        results = []
        for seed in seeds:
            each = in_own_process("run", env, str(seed), str(episodes or EPISODES[env]))
            there = f"{each['episodes']:,} episodes, {each['minutes']:.1f} min" if each["minutes"] else "not reached"
            print(f"  {env:8s} {release.level:5.1f}  seed {seed}: {there}", flush=True)
            results.append(each["minutes"])
        if None in results:
            continue
        mean = statistics.mean(results)
        compared = f"; the release's whole run {theirs:,.0f} min: {theirs / mean:.0f} times less" if theirs else ""
        print(f"  {env:8s} mean {mean:.1f} min{compared}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--envs", nargs="+", choices=list(RELEASES), default=list(RELEASES))
    parser.add_argument("--seeds", nargs="+", type=int, default=[100, 101, 102])
    parser.add_argument("--episodes", type=int, help="per run, instead of the environment's default")
    parser.add_argument("--one", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if not arguments.one:
        main(arguments.envs, arguments.seeds, arguments.episodes)
    elif arguments.one[0] == "paper":
        print(json.dumps(paper_milliseconds(*arguments.one[1:])))
    else:
        env, seed, episodes = arguments.one[1:]
        print(json.dumps(time_to(env, int(seed), int(episodes))))
