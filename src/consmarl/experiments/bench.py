"""Measure the speed of this machine: one core's matrix products, an environment's steps, and training episodes.

Everything is measured on one pinned core in a separate process, because threads that JAX has started stay unpinned.
"""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table

from consmarl.environments.foreign import ForeignWorld
from consmarl.environments.playback import play, random_actions
from consmarl.environments.trust import passed_on
from consmarl.errors import UsageError
from consmarl.experiments.arithmetic import matmul_flop
from consmarl.experiments.configuration.config import AnyTrainer, TrainConfig
from consmarl.experiments.memory import check_memory
from consmarl.experiments.progress import duration
from consmarl.processes import python_command, python_path

TURN_SECONDS = 0.3  # minimum duration of a measurement
EPISODES_AT_ONCE = 128  # played side by side when only the environment is measured
EPISODES_A_CALL = 16  # training episodes per call
REPLAY_EPISODES = 512  # maximum; enough to learn as in a run, with less memory


@dataclass(frozen=True)
class Measured:
    """The speed of one core."""

    sgemm_rate: float  # floating-point operations per second of a large single-precision matrix multiplication
    env_steps_per_second: float  # of the environment alone, with random actions
    seconds_per_episode: float  # of training: acting, storing, learning
    compile_seconds: float  # before the first episode
    episodes: int  # of the configured run
    flop_per_episode: float | None = None  # of the update that follows an episode, if known

    @property
    def share_of_sgemm(self) -> float | None:
        """Fraction of the core's matrix-product rate that training reaches, counting only the arithmetic of updates."""
        return self.flop_per_episode and self.flop_per_episode / self.seconds_per_episode / self.sgemm_rate

    @property
    def run_seconds(self) -> float:
        """Estimated duration of the run, without compilation and evaluations."""
        return self.seconds_per_episode * self.episodes


def measure(config: TrainConfig, *, turn_seconds: float = TURN_SECONDS) -> Measured:
    """Measure the speed of a run's environment and method on one core of this machine, in a separate process."""
    if config.devices > 1:
        raise UsageError(f"speed is measured on one core: devices must be 1, not {config.devices}.")
    measured = without_warmup(config)
    check_memory(measured, measured.trainer())  # fails here, with a single sentence, if the run cannot be built
    command = [*python_command(), "-m", "consmarl.experiments.bench", str(turn_seconds), passed_on(config.env)]
    environment = os.environ | {"PYTHONPATH": python_path()}
    process = subprocess.run(
        command, input=config.to_json(), stdout=subprocess.PIPE, text=True, env=environment, check=False
    )
    if process.returncode:
        raise UsageError(f"measuring {config.env} stopped with exit code {process.returncode}: see its output above.")
    return Measured(**json.loads(process.stdout.splitlines()[-1]))


def measure_here(config: TrainConfig, *, turn_seconds: float = TURN_SECONDS) -> Measured:
    """Measure in this process, on all cores that it may use."""
    trainer = without_warmup(config).trainer()
    before = sgemm_rate(turn_seconds=turn_seconds)
    steps = steps_per_second(trainer.world, turn_seconds=turn_seconds)
    seconds, compiling = training_seconds(trainer, turn_seconds=turn_seconds)
    return Measured(
        sgemm_rate=max(before, sgemm_rate(turn_seconds=turn_seconds)),  # twice, in case something disturbs one
        env_steps_per_second=steps,
        seconds_per_episode=seconds,
        compile_seconds=compiling,
        episodes=config.episodes,
        flop_per_episode=update_flop(trainer),
    )


def without_warmup(config: TrainConfig) -> TrainConfig:
    """Return the run's configuration, changed so that learning and sharing start in the first episode."""
    there: Any = config.resolved()
    sooner = {"warmup_steps": 0, "replay_episodes": min(there.replay_episodes, REPLAY_EPISODES)}
    if config.has_setting("share.start_episode"):
        sooner["share.start_episode"] = 0
    return config.with_options(sooner)


def pin_to_one_core() -> None:
    """Pin this process to one core; call it before JAX starts its threads."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    else:
        print("This system cannot pin a process to a core, so JAX may use several.", file=sys.stderr)


def best_seconds(work: Callable[[], object], *, repeats: int = 5, at_least: float = TURN_SECONDS) -> float:
    """Return the best of `repeats` measurements of the seconds per call; each makes calls for `at_least` seconds."""
    jax.block_until_ready(work())  # compile
    best = float("inf")
    for _ in range(repeats):
        start, calls = time.perf_counter(), 0
        while (elapsed := time.perf_counter() - start) < at_least or calls == 0:
            jax.block_until_ready(work())
            calls += 1
        best = min(best, elapsed / calls)
    return best


def sgemm_rate(side: int = 1024, *, turn_seconds: float = TURN_SECONDS) -> float:
    """Return the floating-point operations per second of a large single-precision matrix multiplication."""
    left = jax.random.normal(jax.random.key(0), (side, side))
    multiply = jax.jit(jnp.matmul)
    return 2 * side**3 / best_seconds(lambda: multiply(left, left), at_least=turn_seconds)


def steps_per_second(world: Any, *, num_episodes: int = EPISODES_AT_ONCE, turn_seconds: float = TURN_SECONDS) -> float:
    """Return an environment's steps per second with random actions, including resets and observations.

    `num_episodes` are played side by side, unless the environment steps in Python.
    """
    if isinstance(world, ForeignWorld):
        return 1 / best_seconds(_foreign_steps(world), at_least=turn_seconds)

    def episode(key: jax.Array) -> object:
        key_actions, key_play = jax.random.split(key)
        trajectory = play(world, key_play, random_actions(world, key_actions))
        return trajectory.codes, trajectory.outcomes

    episodes = jax.jit(jax.vmap(episode))
    keys = jax.random.split(jax.random.key(0), num_episodes)
    return num_episodes * world.episode_limit / best_seconds(lambda: episodes(keys), at_least=turn_seconds)


def _foreign_steps(world: ForeignWorld) -> Callable[[], object]:
    """Return a function that takes one step in a third-party environment and resets it if the episode ended."""
    rng = np.random.default_rng(0)
    world.reset(0)

    def step() -> object:
        taken = world.step(world.random_actions(rng))
        return world.reset(0) if taken.is_over else taken.codes

    return step


def training_seconds(trainer: AnyTrainer, *, turn_seconds: float = TURN_SECONDS) -> tuple[float, float]:
    """Return the seconds per training episode, and the seconds spent compiling before the first episode."""
    start = time.perf_counter()
    num_rounds = max(EPISODES_A_CALL // trainer.num_envs, 1)
    num_episodes = num_rounds * trainer.num_envs
    state = trainer.init(0)

    def train() -> object:
        nonlocal state
        state, _ = trainer.run(state, num_rounds)
        return state

    jax.block_until_ready(train())
    first_seconds = time.perf_counter() - start
    seconds = best_seconds(train, at_least=turn_seconds) / num_episodes
    return seconds, max(first_seconds - num_episodes * seconds, 0.0)


def update_flop(trainer: AnyTrainer) -> float | None:
    """Return the floating-point operations of learning per episode played; None if they cannot be counted."""
    learner, key = trainer.learner, jax.random.key(0)
    num_episodes, num_updates = (
        (1, 1) if learner.is_on_policy else (trainer.batch_episodes, trainer.updates_per_episode)
    )
    batch = jax.eval_shape(dataclasses.replace(trainer.replay, capacity=num_episodes).init).episodes
    of_an_update = matmul_flop(learner.update, jax.eval_shape(learner.init, key), batch, key)
    return of_an_update and num_updates * of_an_update


def print_bench(config: TrainConfig) -> None:
    """Measure the speed of a run and print it as a table."""
    with Console(stderr=True, markup=False).status(f"measuring {config.env} on one core: half a minute or so"):
        measured = measure(config)
    share = measured.share_of_sgemm
    table = Table(f"{config.env}, {config.method}: one core of this machine", "", box=None, pad_edge=False)
    table.add_row("large matrix multiplication", f"{measured.sgemm_rate / 1e9:.1f} GFLOP/s")
    table.add_row("environment, random actions", f"{measured.env_steps_per_second:,.0f} steps/s")
    table.add_row("training episode", f"{measured.seconds_per_episode * 1e3:.2f} ms")
    if share is not None:
        table.add_row("  arithmetic of its update", f"{share:.0%} of a matrix multiplication's rate")
    table.add_row("compiling, first time only", f"{measured.compile_seconds:.1f} s")
    table.add_row(f"run of {config.episodes:,} episodes", f"{duration(measured.run_seconds)}, without evaluations")
    Console().print(table)


def main() -> None:
    """Measure the configuration given on standard input and print the results as JSON."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # the parent process reports the interruption
    pin_to_one_core()
    turn_seconds, trust = sys.argv[1:]
    config = TrainConfig.from_json(sys.stdin.read(), trust=trust)
    print(json.dumps(dataclasses.asdict(measure_here(config, turn_seconds=float(turn_seconds)))))


if __name__ == "__main__":
    main()
