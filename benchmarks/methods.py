"""Measure the cost of each method relative to IQL: the time of a training episode on one core, and its arithmetic.

`make bench`, or `python -m benchmarks.methods`. All methods are timed in one process per environment, alternating.
"""

import argparse
import json
import subprocess
import sys
import time
from typing import Any

from benchmarks.machine import pin_to_one_core, sgemm_rate, update_flop

WORLDS = ("pgm-6ag", "ft")
EPISODES = 16  # per turn
TURNS = 6


def measure(id: str) -> dict[str, Any]:
    """Measure every method in one environment: seconds per episode, FLOP of learning, and the sgemm rate."""
    import jax

    from consmarl.experiments.bench import without_warmup
    from consmarl.experiments.configuration.config import TrainConfig
    from consmarl.experiments.configuration.methods import METHODS
    from consmarl.sharing.options import Preset

    trainers = {
        method: without_warmup(TrainConfig(method=method, env=id, preset=Preset.PAPER)).trainer()
        for method, entry in METHODS.items()
        if entry.sharing == "none"  # the cost of sharing is in benchmarks.sharing
    }
    states, rounds = {}, {}
    for name, trainer in trainers.items():
        rounds[name] = EPISODES // trainer.num_envs
        states[name], _ = trainer.run(trainer.init(0), rounds[name])  # compiles
    seconds = dict.fromkeys(trainers, float("inf"))
    rates = [sgemm_rate()]
    for _ in range(TURNS):
        for name, trainer in trainers.items():
            start = time.perf_counter()
            states[name], _ = trainer.run(states[name], rounds[name])
            jax.block_until_ready(states[name])
            seconds[name] = min(seconds[name], (time.perf_counter() - start) / EPISODES)
        rates.append(sgemm_rate(turn_seconds=0.2))
    flop = {name: update_flop(trainer) for name, trainer in trainers.items()}
    return {"seconds": seconds, "flop": flop, "sgemm": max(rates)}


def print_world(id: str) -> None:
    """Print the measurements for one environment, made in a separate process."""
    command = [sys.executable, "-m", "benchmarks.methods", "--world", id]
    measured = json.loads(subprocess.check_output(command, text=True).splitlines()[-1])
    seconds, flop, sgemm = measured["seconds"], measured["flop"], measured["sgemm"]
    print(f"\n{id}: a whole training episode on one core; its sgemm: {sgemm / 1e9:.0f} GFLOP/s")
    print("method        ms   of IQL's | learning, GFLOP   of IQL's | learning GFLOP / total time, of sgemm")
    for name in seconds:
        time_ratio, flop_ratio = seconds[name] / seconds["iql"], flop[name] / flop["iql"]
        timed = f"{seconds[name] * 1e3:7.1f} {time_ratio:10.2f}"
        counted = f"{flop[name] / 1e9:15.2f} {flop_ratio:10.2f}"
        print(f"{name:8s} {timed} | {counted} | {flop[name] / seconds[name] / sgemm:.0%}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--world", choices=WORLDS)
    world = parser.parse_args().world
    if world:
        pin_to_one_core()
        print(json.dumps(measure(world)))
    else:
        for each in WORLDS:
            print_world(each)
