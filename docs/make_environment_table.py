"""Write the table of guide/other-packages.md, by trying: `.venv/bin/python docs/make_environment_table.py`.

Parts of rows' names as arguments ("jumanji", "mpe2") try those alone, and leave the other rows as they are. Steps per
second are measured on one core, with the method's own batch, on a quiet machine; --untimed leaves them out.
"""

import functools
import itertools
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from consmarl import TrainConfig
from consmarl.environments.compiled import CompiledWorld
from consmarl.environments.film import Film, rendering_world
from consmarl.experiments.bench import measure
from consmarl.experiments.configuration.pairs import settings_from
from consmarl.experiments.watch import film, random_episodes
from consmarl.training import checkpoints

PAGE = Path(__file__).parent / "guide" / "other-packages.md"
BEGIN, END = "<!-- docs/make_environment_table.py writes from here -->\n", "<!-- to here -->\n"
HEAD = ("environment", "agents", "actions", "steps", "masks", "IQL", "CONS", "drawn", "steps/s, IQL", "steps/s, CONS")
ENVIRONMENTS: tuple[tuple[str, tuple[str, ...]], ...] = (  # with their settings
    ("jaxmarl:MPE_simple_spread_v3", ()),
    ("jaxmarl:MPE_simple_spread_v3", ("action_type=Continuous",)),
    ("jaxmarl:MPE_simple_speaker_listener_v4", ()),
    ("jaxmarl:switch_riddle", ()),
    ("jaxmarl:HeuristicEnemySMAX", ("scenario=3m",)),
    ("jaxmarl:overcooked", ()),
    ("jumanji:LevelBasedForaging-v0", ()),
    ("jumanji:RobotWarehouse-v0", ("time_limit=100",)),
    ("jumanji:Cleaner-v0", ()),
    ("jumanji:Connector-v3", ()),
    ("pettingzoo:mpe2.simple_spread_v3", ()),
    ("pettingzoo:mpe2.simple_spread_v3", ("continuous_actions=True",)),
    ("pettingzoo:pettingzoo.sisl.multiwalker_v9", ("episode_limit=100",)),  # needs box2d
    ("lbforaging:Foraging-8x8-2p-2f-v3", ()),
    ("rware:rware-tiny-2ag-v2", ("max_steps=100",)),
)
# enough to learn from, and small enough to try all of them
SMALL: dict[str, Any] = dict(
    episodes=64, batch_episodes=4, replay_episodes=32, warmup_steps=0, evaluation_episodes=1, final_episodes=1
)
NUM_ROUNDS = 2  # before the checkpoint, and after it


def name_of(id: str, settings: tuple[str, ...]) -> str:
    """Return what a row is called."""
    return f"`{id}`" + "".join(f" `{each}`" for each in settings)


def tried(id: str, settings: tuple[str, ...], *, is_timed: bool) -> dict[str, str]:
    """Return a row of the table."""
    row = {"environment": name_of(id, settings)}
    for method in ("iql", "cons"):
        share = {"start_episode": 0} if method == "cons" else {}
        named = {"env": id, "set": settings, "method": method}
        options = named | SMALL | {f"share.{name}": value for name, value in share.items()}
        trainer: Any = TrainConfig().with_options(options).trainer()
        world = trainer.world
        choices = str(world.num_actions) if world.num_branches == 1 else f"{world.num_branches} × {world.num_actions}"
        row |= {
            "agents": str(world.num_agents), "actions": choices, "steps": str(world.episode_limit),
            "masks": "yes" if world.masks_actions else "no",
        }  # fmt: skip
        row[method.upper()] = _trained(trainer)
        row[f"steps/s, {method.upper()}"] = _speed(named, world.episode_limit) if is_timed else "–"
    row["drawn"] = _drawn(world) if isinstance(world, CompiledWorld) else _drawn_in_python(id, settings)
    return row


def _speed(named: Mapping[str, Any], limit: int) -> str:
    """Return the team's steps per second of training, if episodes last to their limit."""
    config = TrainConfig().with_options(named | {"episodes": 1_000, "replay_episodes": 512})
    return f"{limit / measure(config).seconds_per_episode:,.0f}"


def _trained(trainer: Any) -> str:
    """Return how a short run went."""
    state, first = trainer.run(trainer.init(0), NUM_ROUNDS)
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        checkpoints.save(place, 1, state, trainer.sharing.facts(state.sharing), keep=1)
        _, went_on = trainer.run(state, NUM_ROUNDS)
        restored = checkpoints.restore(place, functools.partial(trainer.init, 0))
        _, resumed = trainer.run(restored.state, NUM_ROUNDS)
    losses = [np.asarray(report.learning["loss"]) for report in (first, went_on)]
    learns = all(np.isfinite(each).all() for each in losses)
    same = all(
        np.array_equal(one, other)
        for one, other in zip(jax.tree.leaves(went_on), jax.tree.leaves(resumed), strict=True)
    )
    return ("trains" if learns else "does not train") + (", resumes" if same else ", does not resume")


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
    order = [name_of(*each) for each in ENVIRONMENTS]
    found = sorted(rows.values(), key=lambda row: order.index(row["environment"]))
    lines = [HEAD, ["---"] * len(HEAD), *([row[name] for name in HEAD] for row in found)]
    table = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n{table}\n{END}{rest.partition(END)[2]}"


def main() -> None:
    """Try one environment after the other; each row is written as soon as it is known."""
    wanted = [argument for argument in sys.argv[1:] if argument != "--untimed"]
    for each in ENVIRONMENTS:
        if wanted and not any(part in name_of(*each) for part in wanted):
            continue
        row = tried(*each, is_timed="--untimed" not in sys.argv)
        print(row, flush=True)
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(with_rows(page, rows_of(page) | {row["environment"]: row}), encoding="utf-8")


if __name__ == "__main__":
    main()
