"""Measure the cost of the viewer: recording during training, the size of a page, and the time to open it.

`make bench`, or `python -m benchmarks.viewer`.
"""

import dataclasses
import importlib
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.machine import pin_to_one_core
from benchmarks.workbench import verdict

GOALS = {"recording": 0.10, "bytes": 300_000, "seconds": 2.0}
TURNS = 8
NUM_ROUNDS = 10
NUM_EPISODES = 50
NUM_OPENINGS = 5


def config_of(episodes: int) -> Any:
    """Return a PGM-6ag run with CONS that shares from the start and records every episode."""
    from consmarl.experiments.configuration.config import TrainConfig
    from consmarl.experiments.configuration.sharings import ShareOptions
    from consmarl.sharing.options import Preset

    return TrainConfig(
        env="pgm-6ag", method="cons", preset=Preset.PAPER, episodes=episodes, replay_episodes=512, warmup_steps=0,
        num_envs=1, share=ShareOptions(start_episode=0), record=tuple(range(episodes)), evaluation_episodes=1,
        final_episodes=1,
    )  # fmt: skip


def recording_cost(directory: Path) -> dict[str, float]:
    """Return seconds per episode if it is not recorded, recorded, or recorded and written, timed in alternation."""
    import jax

    from consmarl.experiments import exchanges

    config = dataclasses.replace(config_of(40), num_envs=4)
    trainer = config.trainer()
    header = {"kind": exchanges.TRAINING, "episode": 0, "config": {}}
    num_episodes = NUM_ROUNDS * trainer.num_envs

    def play(state: Any, *, is_recording: bool, is_writing: bool) -> Any:
        state, report = trainer.run(state, NUM_ROUNDS, is_recording=is_recording)
        if is_writing:
            records = jax.device_get(report.records)
            for number in range(num_episodes):
                recorded = exchanges.recorded_episode(records, number, trainer.num_envs, header)
                exchanges.write_episode(directory / f"{number}.npz", recorded)
        return jax.block_until_ready(state)

    ways = {
        "not recorded": dict(is_recording=False, is_writing=False),
        "recorded": dict(is_recording=True, is_writing=False),
        "recorded and written": dict(is_recording=True, is_writing=True),
    }
    states = {name: play(trainer.init(0), **way) for name, way in ways.items()}
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(TURNS):
        for name, way in ways.items():
            start = time.perf_counter()
            states[name] = play(states[name], **way)
            best[name] = min(best[name], time.perf_counter() - start)
    return {name: seconds / num_episodes for name, seconds in best.items()}


def opening_seconds(page: Path) -> float | None:
    """Return the seconds that Chromium takes to draw the page, as the median of several tries; None without it."""
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        return None
    playwright = importlib.import_module("playwright.sync_api")
    with playwright.sync_playwright() as starter:
        browser = starter.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        found = []
        for _ in range(NUM_OPENINGS):
            opened = browser.new_page()
            start = time.perf_counter()
            opened.goto(page.as_uri())
            opened.wait_for_selector("html[data-drawn]")
            found.append(time.perf_counter() - start)
            opened.close()
        browser.close()
    return sorted(found)[NUM_OPENINGS // 2]


def print_recording() -> None:
    """Print how much time recording adds to an episode."""
    with tempfile.TemporaryDirectory() as directory:
        found = recording_cost(Path(directory))
    alone = found["not recorded"]
    print("\nPGM-6ag with CONS on one core, a whole training episode")
    for name, seconds in found.items():
        added, goal = seconds / alone - 1, GOALS["recording"]
        told = "" if name == "not recorded" else f"  {added:+6.1%}   goal {goal:.0%}: {verdict(added <= goal)}"
        print(f"{name:26s} {seconds * 1e3:6.2f} ms{told}")


def print_page() -> None:
    """Print the size of a page with many episodes, and the time to write and to open it."""
    from consmarl.experiments.train import train
    from consmarl.viewer.view import view

    with tempfile.TemporaryDirectory() as directory:
        run = train(config_of(NUM_EPISODES), Path(directory) / "run")
        one = view(run, Path(directory) / "one.html", episodes=[NUM_EPISODES - 1]).stat().st_size
        start = time.perf_counter()
        page = view(run, Path(directory) / "all.html")
        seconds = time.perf_counter() - start
        size = page.stat().st_size
        opened = opening_seconds(page)
    each = (size - one) / (NUM_EPISODES - 1)
    print(f"\nA page with {NUM_EPISODES} episodes of PGM-6ag, with all agents asking from the start")
    print(f"one episode       {one / 1e3:6.0f} kB including the page itself   goal {GOALS['bytes'] / 1e3:.0f} kB: "
          f"{verdict(one <= GOALS['bytes'])}")  # fmt: skip
    print(f"each further one  {each / 1e3:6.0f} kB, {size / 1e6:.1f} MB in total, written in {seconds:.1f} s")
    told = (
        "no Chromium"
        if opened is None
        else f"{opened:.2f} s   goal {GOALS['seconds']:.0f} s: {verdict(opened <= GOALS['seconds'])}"
    )
    print(f"opens after       {told}")


if __name__ == "__main__":
    pin_to_one_core()
    print_recording()
    print_page()
