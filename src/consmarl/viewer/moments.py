"""Prepare an episode for replay on the page: its recorded arrays, drawings of the environment, and observations."""

import functools
import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from consmarl.environments.draw.painter import Gauge
from consmarl.environments.draw.scene import Scene, draw_scene
from consmarl.environments.draw.svg import hexadecimal
from consmarl.environments.grid import GridWorld
from consmarl.errors import UsageError
from consmarl.experiments.exchanges import RecordedEpisode
from consmarl.viewer.absorbed import Absorbed
from consmarl.viewer.packing import packed

World = GridWorld[Any, Any, Any]


def episode_block(
    recorded: RecordedEpisode, world: World | None, found: Absorbed | None, pictures: Sequence[str] = ()
) -> str:
    """Return the packed data for replaying an episode; `world` is None if none of our painters can draw it.

    `pictures` are the environment's own pictures, as data URLs, before each step and at the end.
    """
    facts: dict[str, Any] = {"pictures": list(pictures)} if pictures else {}
    arrays: dict[str, NDArray[Any]] = {}
    for group in ("steps", "requests", "teachers"):
        arrays |= {f"{group}/{name}": rows for name, rows in getattr(recorded, group).items()}
    if found is not None:
        arrays |= {f"absorbed/{name}": rows for name, rows in found._asdict().items()}
    if world is not None:
        states = states_of(recorded, world)
        shown, drawn = _drawn([draw_scene(world, state) for state in _one_by_one(states, recorded.num_steps + 1)])
        facts |= shown
        arrays |= drawn | {
            "scene/cells": np.asarray(states.agents, np.uint16),
            "sees/codes": _seen(world, states, recorded.num_steps),
        }
    return packed(facts, arrays)


def start_of(recorded: RecordedEpisode) -> str:
    """Return a hash of an episode's initial state; an empty string if the state was not recorded."""
    if not recorded.world:
        return ""
    digest = hashlib.sha256()
    for name in sorted(recorded.world):
        digest.update(name.encode() + np.ascontiguousarray(recorded.world[name][0]).tobytes())
    return digest.hexdigest()[:16]


def states_of(recorded: RecordedEpisode, world: World) -> Any:
    """Return the environment's states, [step + 1, …], rebuilt from the record."""
    if recorded.num_steps > world.episode_limit:
        raise UsageError(
            f"the record of episode {recorded.episode} does not fit {world.id}: it has {recorded.num_steps} steps of "
            f"at most {world.episode_limit}, so it is damaged or from another version."
        )
    shapes = jax.eval_shape(world.reset, jax.ShapeDtypeStruct((), jax.eval_shape(jax.random.key, 0).dtype))
    leaves, structure = jax.tree_util.tree_flatten_with_path(shapes)
    rows = []
    for path, like in leaves:
        name = jax.tree_util.keystr(path).lstrip(".")
        found = recorded.world.get(name)
        if found is None or found.shape[1:] != like.shape or found.dtype != like.dtype:
            raise UsageError(
                f"the record of episode {recorded.episode} does not fit {world.id}: its state has no {name} of "
                f"{like.dtype}{list(like.shape)}, so it is damaged or from another version."
            )
        rows.append(found)
    return jax.tree_util.tree_unflatten(structure, rows)


def _one_by_one(states: Any, count: int) -> Iterable[Any]:
    for step in range(count):
        yield jax.tree.map(lambda rows, at=step: rows[at], states)


def _seen(world: World, states: Any, num_steps: int) -> NDArray[Any]:
    """Return the agents' observations in every step, as codes: [step, agent, code]."""
    missing = world.episode_limit - num_steps
    # all episodes are padded to one length, so that they share one compiled program
    whole = jax.tree.map(lambda rows: np.concatenate([rows, np.repeat(rows[-1:], missing, axis=0)]), states)
    return np.asarray(_observe(world, whole))[:num_steps]


@functools.partial(jax.jit, static_argnums=0)
def _observe(world: World, states: Any) -> jax.Array:
    return jax.vmap(world.observe)(states)


class _Table:
    """Assigns numbers to distinct objects, in order of appearance."""

    def __init__(self) -> None:
        self.numbers: dict[Any, int] = {}

    def __call__(self, thing: Any) -> int:
        return self.numbers.setdefault(thing, len(self.numbers))


def _drawn(scenes: Sequence[Scene]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return scenes as tables of distinct shapes and arrays of indices into them, since most shapes recur."""
    shapes, gauges, lines = _Table(), _Table(), _Table()
    arrays: dict[str, NDArray[Any]] = {}
    for layer in ("below", "above"):
        rows = [[shapes(element) for element in getattr(scene, layer)] for scene in scenes]
        arrays[f"scene/{layer}"] = np.array([number for row in rows for number in row], np.uint16)
        arrays[f"scene/{layer}_ends"] = np.cumsum([len(row) for row in rows], dtype=np.uint32)
    arrays["scene/agents"] = np.stack([scene.agents for scene in scenes])
    measured = [[[gauges(each) for each in of_agent] for of_agent in scene.gauges] for scene in scenes]
    arrays["scene/gauges"] = np.array(measured, np.uint16)
    arrays["scene/lines"] = np.array([lines(tuple(scene.lines)) for scene in scenes], np.uint16)
    facts = {
        "shapes": list(shapes.numbers),
        "gauges": [_described(each) for each in gauges.numbers],
        "lines": [list(each) for each in lines.numbers],
    }
    return facts, arrays


def _described(gauge: Gauge) -> dict[str, Any]:
    return {"colour": hexadecimal(gauge.colour), "share": round(gauge.share, 4), "number": gauge.number,
            "is_complete": gauge.is_complete}  # fmt: skip
