"""Measure the cost of the workbench: metrics during training, a report on many runs, startup, and a run's first row.

`make bench`, or `python -m benchmarks.workbench`.
"""

import functools
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import pin_to_one_core

GOALS = {"metrics": 0.03, "report": 20.0, "bands": 5.0, "import": 1.0, "help": 1.0, "start": 3.0}
TURNS = 16
CHUNK_EPISODES = 40  # per row; a long run has 200


def verdict(is_met: bool) -> str:
    """Return the verdict as one word."""
    return "met" if is_met else "MISSED"


def metrics_cost() -> tuple[float, float]:
    """Time a PGM-6ag episode of CONS without and with metrics: return seconds without, and the added fraction."""
    import jax

    from consmarl.experiments.configuration.config import TrainConfig
    from consmarl.experiments.metrics import row_of
    from consmarl.experiments.rows import RowWriter
    from consmarl.sharing.options import Preset
    from consmarl.training.loop import Trainer, _run_rounds

    config = TrainConfig(
        env="pgm-6ag", method="cons", preset=Preset.PAPER, replay_episodes=512, warmup_steps=0
    )  # fmt: skip
    trainer = config.trainer()
    assert isinstance(trainer, Trainer)
    num_rounds = CHUNK_EPISODES // trainer.num_envs

    @functools.partial(jax.jit, donate_argnums=0)
    def bare(state: Any) -> Any:
        # metrics are not even computed: the compiler removes unused results
        return _run_rounds(trainer, num_rounds, False, state)[0]

    def with_nothing(state: Any) -> Any:
        return jax.block_until_ready(bare(trainer.with_room(state, num_rounds)))

    with tempfile.TemporaryDirectory() as directory, RowWriter(config, Path(directory), 0) as rows:

        def with_everything(state: Any) -> Any:
            state, report = trainer.run(state, num_rounds)
            episode = int(state.num_rounds) * trainer.num_envs
            rows.append({"episode": episode, "env_steps": int(state.num_env_steps)} | row_of(report))
            rows.flush()
            return jax.block_until_ready(state)

        states = [trainer.init(0), trainer.init(0)]
        seconds = np.zeros((TURNS + 1, 2))
        for turn in range(TURNS + 1):  # the first compiles
            for way in (0, 1) if turn % 2 else (1, 0):
                start = time.perf_counter()
                states[way] = (with_nothing, with_everything)[way](states[way])
                seconds[turn, way] = time.perf_counter() - start
    nothing, everything = seconds[1:].T / CHUNK_EPISODES
    # the median ratio of adjacent turns, so that other load on the machine spoils only some of them
    return float(np.median(nothing)), float(np.median(everything / nothing) - 1)


def write_runs(directory: Path, num_groups: int = 20, num_seeds: int = 5, num_rows: int = 1000) -> None:
    """Write files like those of training runs, with made-up numbers."""
    rng = np.random.default_rng(0)
    for group in range(num_groups):
        for seed in range(num_seeds):
            run = directory / f"group-{group}" / f"seed-{seed}"
            run.mkdir(parents=True)
            config = {"env": "pgm-6ag", "set": [], "method": "cons", "seed": seed, "episodes": 200 * num_rows,
                      "share": {"temperature": 0.1 * (group + 1)}}  # fmt: skip
            (run / "config.json").write_text(json.dumps(config))
            values = np.cumsum(rng.normal(0.02, 0.3, num_rows)).round(6).tolist()
            with (run / "metrics.jsonl").open("w") as file:
                for number, value in enumerate(values):
                    file.write(json.dumps(_row(200 * (number + 1), value)) + "\n")
            result = {"episode": 200 * num_rows, "return": values[-1], "return_error": 0.3, "gold_mined": 2.0,
                      "stones_taken": 9.0, "seconds": 1000.0, "episodes_evaluated": 400}  # fmt: skip
            (run / "result.json").write_text(json.dumps(result))


def _row(episode: int, value: float) -> dict[str, Any]:
    shared = {"requests": 3.5, "answers": 9.1, "advised": 3.0, "advised_share": 0.01, "budget_used": episode / 10,
              "requests_left": [1] * 6, "answers_left": [1] * 6, "num_observations": episode,
              "table_fill": 0.2}  # fmt: skip
    learned = {"loss": 1.0, "td_error": 0.3, "gradient_norm": 2.0, "q_value": value, "epsilon": 0.05}
    played = {"return": value, "agent_returns": [value / 6] * 6, "gold_mined": 1.0, "stones_taken": 9.0}
    evaluated = {"evaluation_return": value, "evaluation_return_error": 0.5, "evaluation_gold_mined": 1.0,
                 "evaluation_stones_taken": 9.0}  # fmt: skip
    steps = {"episode": episode, "env_steps": 50 * episode, "episode_steps": 50.0, "seconds": 6.4}
    return steps | played | learned | shared | evaluated


def seconds_of_bands(num_groups: int = 20, num_seeds: int = 5, num_rows: int = 1000) -> float:
    """Return the seconds to bootstrap the bands of as many curves as a report on a hundred long runs has."""
    from consmarl.reports.statistics import band

    values = np.random.default_rng(0).normal(size=(num_seeds, num_rows))
    start = time.perf_counter()
    for _ in range(num_groups):
        band(values)
    return time.perf_counter() - start


def seconds_of(*command: str, tries: int = 3) -> float:
    """Return the shortest duration of a command."""
    best = float("inf")
    for _ in range(tries):
        start = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        best = min(best, time.perf_counter() - start)
    return best


def seconds_to_first_row(env: str, seed: int, directory: Path) -> float:
    """Return the time from starting a CONS run's process to its first training row, after one round of episodes."""
    out = directory / f"{env}-{seed}"
    command = [sys.executable, "-m", "consmarl.cli", "train", "--env", env, "--method", "cons", "--seed", str(seed),
               "--report-every", "4", "--out", str(out)]  # fmt: skip
    start = time.perf_counter()
    # JAX's own cache, if configured, would be used instead of ours
    ours = {name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}
    with subprocess.Popen(command, env=ours | {"CONSMARL_CACHE": str(directory / "cache")}) as process:
        while not (out / "metrics.jsonl").exists() or (out / "metrics.jsonl").read_bytes().count(b"\n") < 2:
            if process.poll() is not None:
                raise RuntimeError(f"{env} ended before its first row.")
            time.sleep(0.005)
        seconds = time.perf_counter() - start
        process.kill()
    return seconds


def main() -> None:
    """Make all measurements and print them."""
    python, program = sys.executable, str(Path(sys.executable).with_name("consmarl"))
    for name, command in (("import", (python, "-c", "import consmarl")), ("help", (program, "--help"))):
        seconds = seconds_of(*command)
        print(f"{name:<8} {seconds:.2f} s   goal {GOALS[name]:.0f} s: {verdict(seconds <= GOALS[name])}")
    for env in ("pgm-3ag", "pgm-6ag"):
        with tempfile.TemporaryDirectory() as directory:
            first, *others = (seconds_to_first_row(env, seed, Path(directory)) for seed in range(6))
        print(f"start    {min(others):.1f} s to the first row of {env} CONS with another seed, {first:.1f} s with the "
              f"first   goal {GOALS['start']:.0f} s: {verdict(min(others) <= GOALS['start'])}")  # fmt: skip
    with tempfile.TemporaryDirectory() as directory:
        write_runs(Path(directory) / "runs")
        out = str(Path(directory) / "report.html")
        seconds = seconds_of(program, "report", f"{directory}/runs", "--out", out, "--no-gifs", tries=1)
    print(f"report   {seconds:.1f} s on 100 runs of 1,000 rows   "
          f"goal {GOALS['report']:.0f} s: {verdict(seconds <= GOALS['report'])}")  # fmt: skip
    pin_to_one_core()
    seconds = seconds_of_bands()
    print(f"bands    {seconds:.1f} s around the curves of those 100 runs   "
          f"goal {GOALS['bands']:.0f} s: {verdict(seconds <= GOALS['bands'])}")  # fmt: skip
    seconds, cost = metrics_cost()
    print(f"metrics  {cost:+.1%} on {seconds * 1e3:.1f} ms, a PGM-6ag episode of CONS; "
          f"a row every {CHUNK_EPISODES} episodes   "
          f"goal {GOALS['metrics']:.0%}: {verdict(cost <= GOALS['metrics'])}")  # fmt: skip


if __name__ == "__main__":
    main()
