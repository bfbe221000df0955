"""Core-minutes until IQL with the recommended settings reaches and holds the return of the authors' released CONS.

`python -m benchmarks.time_to_return`, with `--envs pgm-3ag` for a part of it. The number of episodes is read from the
recorded runs of results/learning: a run reaches the level at the first of three consecutive evaluations that are at or
above it. The time per episode is measured now, on one core, without compilation and evaluations.

The authors' release cannot be run here. The time of its whole run on this machine is estimated: in an earlier
measurement, its episodes and ours (preset `paper`) were timed side by side on one core, and their ratio is multiplied
by the time that our episodes with that preset take now.
"""

import argparse
import json
import statistics
from pathlib import Path
from typing import NamedTuple

import consmarl
from consmarl.experiments.bench import measure

RUNS = Path(__file__).parents[1] / "results" / "learning" / "runs.json"
NUM_HELD = 3  # consecutive evaluations


class SideBySide(NamedTuple):
    """The time of a training episode of the release and of ours, preset `paper`, measured in one run on one core."""

    method: str  # CONS if it was timed; otherwise IQL, which is faster, so that the estimate is too low
    theirs: float  # milliseconds
    ours: float

    @property
    def ratio(self) -> float:
        """How many times as long as ours their episode takes."""
        return self.theirs / self.ours


class Release(NamedTuple):
    """The authors' release: the return of its CONS, and how long it is trained."""

    level: float  # greedy return of the released weights (`reports.reference`; in Cleanup between its two figures)
    episodes: int  # of its whole run
    speed: SideBySide | None  # None: not measured


RELEASES = {
    "pgm-3ag": Release(14.1, 100_000, SideBySide("iql", 77, 8.3)),
    "pgm-6ag": Release(19.7, 80_000, SideBySide("cons", 485, 43)),
    "ft": Release(2.9, 50_000, SideBySide("iql", 144, 24)),
    "cleanup": Release(75.0, 80_000, None),
}


def arrival(evaluations: list[tuple[int, float]], level: float) -> int | None:
    """Return the episode of the first of `NUM_HELD` consecutive evaluations that reach the level, or None."""
    for first in range(len(evaluations) - NUM_HELD + 1):
        if all(value >= level for _, value in evaluations[first : first + NUM_HELD]):
            return evaluations[first][0]
    return None


def arrivals(env: str, level: float) -> dict[int, int | None]:
    """Return, by seed, the episode at which recorded runs with recommended settings reached the level.

    Of today's settings and those of an earlier version, it takes those with more seeds, and of these the longest runs.
    """
    recorded = [run for run in json.loads(RUNS.read_text()) if run["world"] == env]
    by_variant = [[run for run in recorded if run["variant"] == variant] for variant in ("recommended", "former")]
    runs = max(by_variant, key=len)
    longest = max((run["episodes"] for run in runs), default=0)
    return {run["seed"]: arrival(run["evaluations"], level) for run in runs if run["episodes"] == longest}


def milliseconds(env: str, method: str, preset: consmarl.Preset) -> float:
    """Return the duration of a training episode on one core."""
    config = consmarl.TrainConfig(env=env, method=method, preset=preset)
    return measure(config).seconds_per_episode * 1_000


def print_environment(env: str) -> None:
    """Measure and print the core-minutes for one environment."""
    level, num_episodes, speed = RELEASES[env]
    found = arrivals(env, level)
    episode = milliseconds(env, "iql", consmarl.Preset.RECOMMENDED)
    print(f"\n{env}: the released CONS returns {level}; our training episode takes {episode:.1f} ms")
    for seed, there in found.items():
        took = "not reached" if there is None else f"{there:,} episodes, {there * episode / 60_000:.1f} min"
        print(f"  seed {seed}: {took}")
    reached = [there * episode / 60_000 for there in found.values() if there is not None]
    if not reached or len(reached) < len(found):
        return
    print(f"  mean of {len(reached)} seeds: {statistics.mean(reached):.1f} min, longest {max(reached):.1f} min")
    if speed is not None:
        paper = milliseconds(env, speed.method, consmarl.Preset.PAPER)
        minutes = paper * speed.ratio * num_episodes / 60_000
        print(f"  the release: {speed.ratio:.1f} times as long an episode as our preset paper ({speed.method}, "
              f"{paper:.1f} ms), {num_episodes:,} episodes: {minutes:,.0f} min")  # fmt: skip
        print(f"  {minutes / statistics.mean(reached):.0f} times less core time", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--envs", nargs="+", choices=list(RELEASES), default=list(RELEASES))
    for name in parser.parse_args().envs:
        print_environment(name)
