"""Write the table of guide/other-packages.md, by trying: `.venv/bin/python docs/make_environment_table.py`.

Names of environments as arguments try those alone, and leave the other rows as they are. Whoever does not want to wait
for the compiler sets JAX_DISABLE_MOST_OPTIMIZATIONS=true; then no steps a second are written.
"""

import functools
import itertools
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from consmarl import TrainConfig
from consmarl.environments.compiled import CompiledWorld
from consmarl.environments.film import Film, rendering_world
from consmarl.experiments.configuration.pairs import settings_from
from consmarl.experiments.watch import film, random_episodes
from consmarl.training import checkpoints

PAGE = Path(__file__).parent / "guide" / "other-packages.md"
BEGIN, END = "<!-- docs/make_environment_table.py writes from here -->\n", "<!-- to here -->\n"
HEAD = ("environment", "agents", "actions", "steps", "masks", "IQL", "CONS", "drawn", "steps/s, IQL", "steps/s, CONS")
ENVIRONMENTS: dict[str, tuple[str, ...]] = {  # with their settings
    "jaxmarl:MPE_simple_spread_v3": (),
    "jaxmarl:MPE_simple_speaker_listener_v4": (),
    "jaxmarl:switch_riddle": (),
    "jaxmarl:HeuristicEnemySMAX": ("scenario=3m",),
    "jaxmarl:overcooked": (),
    "jumanji:LevelBasedForaging-v0": (),
    "jumanji:RobotWarehouse-v0": ("time_limit=100",),
    "jumanji:Cleaner-v0": (),
    "jumanji:Connector-v3": (),
    "pettingzoo:mpe2.simple_spread_v3": (),
    "lbforaging:Foraging-8x8-2p-2f-v3": (),
    "rware:rware-tiny-2ag-v2": ("max_steps=100",),
}
# enough to learn from, and small enough to try all of them
SMALL: dict[str, Any] = dict(
    episodes=64, batch_episodes=4, replay_episodes=32, warmup_steps=0, evaluation_episodes=1, final_episodes=1
)
NUM_ROUNDS = 2  # before the checkpoint, and after it


def tried(id: str, settings: tuple[str, ...]) -> dict[str, str]:
    """Return a row of the table."""
    row: dict[str, str] = {"environment": f"`{id}`" + "".join(f" `{each}`" for each in settings)}
    for method in ("iql", "cons"):
        share = {"start_episode": 0} if method == "cons" else {}
        config = TrainConfig().with_options(
            {"env": id, "set": settings, "method": method, **SMALL}
            | {f"share.{name}": value for name, value in share.items()}
        )
        trainer: Any = config.trainer()
        world = trainer.world
        row |= {
            "agents": str(world.num_agents), "actions": str(world.num_actions), "steps": str(world.episode_limit),
            "masks": "yes" if world.masks_actions else "no",
        }  # fmt: skip
        row[method.upper()], row[f"steps/s, {method.upper()}"] = _trained(trainer)
    row["drawn"] = _drawn(world) if isinstance(world, CompiledWorld) else _drawn_in_python(id, settings)
    return row


def _trained(trainer: Any) -> tuple[str, str]:
    """Return what became of a short run, and its steps a second once it was compiled."""
    state, first = trainer.run(trainer.init(0), NUM_ROUNDS)
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        checkpoints.save(place, 1, state, trainer.sharing.facts(state.sharing), keep=1)
        before = int(state.num_env_steps)
        started = time.monotonic()
        state, went_on = jax.block_until_ready(trainer.run(state, NUM_ROUNDS))
        seconds = time.monotonic() - started
        rate = (int(state.num_env_steps) - before) / seconds
        restored = checkpoints.restore(place, functools.partial(trainer.init, 0))
        _, resumed = trainer.run(restored.state, NUM_ROUNDS)
    losses = [np.asarray(report.learning["loss"]) for report in (first, went_on)]
    learns = all(np.isfinite(each).all() for each in losses)
    same = all(
        np.array_equal(one, other)
        for one, other in zip(jax.tree.leaves(went_on), jax.tree.leaves(resumed), strict=True)
    )
    outcome = ("trains" if learns else "does not train") + (", resumes" if same else ", does not resume")
    is_slow = jax.config.values["jax_disable_most_optimizations"]  # compiled quickly, so that speed means nothing
    return outcome, "–" if is_slow else f"{rate:,.0f}"


def _drawn(world: CompiledWorld) -> str:
    """Return what `watch` shows: the package's own picture, or agents in a ring."""
    (played,) = random_episodes(world, 1, seed=0)
    frames = list(itertools.islice(film(world, played, view_of=None), 2))
    assert frames[0].ndim == 3
    first = jax.tree.map(lambda rows: rows[0], played.states).inner
    return "ring" if world.game.pictures([first]) is None else "own picture"


def _drawn_in_python(id: str, settings: tuple[str, ...]) -> str:
    """Return what `watch` shows of an environment that steps in Python, here and now."""
    film = Film(rendering_world(id, **settings_from(settings)))
    film.reset([0])
    return "ring" if film.pictures[0] is None else "own picture"


def rows_of(page: str) -> dict[str, dict[str, str]]:
    """Return the rows that a page has."""
    lines = page.partition(BEGIN)[2].partition(END)[0].strip().splitlines()[2:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: dict(zip(HEAD, row, strict=True)) for row in cells}


def with_rows(page: str, rows: Mapping[str, Mapping[str, str]]) -> str:
    """Return the page with these rows, in the order of `ENVIRONMENTS`."""
    order = [f"`{id}`" for id in ENVIRONMENTS]
    found = sorted(rows.values(), key=lambda row: order.index(row["environment"].split(" ")[0]))
    lines = [HEAD, ["---"] * len(HEAD), *([row[name] for name in HEAD] for row in found)]
    table = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n{table}\n{END}{rest.partition(END)[2]}"


def main() -> None:
    """Try one environment after the other; each row is written as soon as it is known."""
    for id in sys.argv[1:] or ENVIRONMENTS:
        row = tried(id, ENVIRONMENTS[id])
        print(row, flush=True)
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(with_rows(page, rows_of(page) | {row["environment"]: row}), encoding="utf-8")


if __name__ == "__main__":
    main()
