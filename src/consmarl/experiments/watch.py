"""Watch a world: play episodes and write them as a GIF."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray
from PIL import Image
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from consmarl.environments import validation
from consmarl.environments.draw import Status, draw_frame
from consmarl.environments.grid import GridWorld
from consmarl.environments.playback import play, random_actions
from consmarl.environments.registry import make
from consmarl.errors import UsageError
from consmarl.experiments.files import replacing

FRAMES_HELD_AT_END = 6  # so that a looping GIF shows how the episode ended


def watch(
    env: str,
    out: Path,
    *,
    parameters: Mapping[str, Any] | None = None,
    episodes: int = 1,
    seed: int = 0,
    fps: int = 6,
    view_of: int | None = 0,
) -> Path:
    """Play a world at random and write what happened as a GIF; return its path."""
    world = make(env, **(parameters or {}))
    out = Path(out)
    if out.suffix.lower() != ".gif":
        raise UsageError(f"out must be a file ending in .gif, not {str(out)!r}.")
    num_episodes = validation.whole_number("episodes", episodes, least=1)
    seed = validation.whole_number("seed", seed, least=0)
    if validation.whole_number("fps", fps, least=1) > 50:
        raise UsageError(f"fps can be at most 50, which is as fast as players show a GIF, not {fps}.")
    if view_of is not None and validation.whole_number("view_of", view_of, least=0) >= world.num_agents:
        raise UsageError(f"view_of names an agent from 0 to {world.num_agents - 1}, not {view_of}.")

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("frames, to go"),
        TimeRemainingColumn(),
    )
    with replacing(out) as temporary, Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task(f"drawing {env}", total=None)

        def drawn() -> Iterator[Image.Image]:
            for done, total, frame in _frames(world, num_episodes, seed, view_of):
                progress.update(task, completed=done, total=total)
                yield Image.fromarray(frame).quantize(method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)

        frames = drawn()
        milliseconds = round(1000 / fps)
        next(frames).save(temporary, "GIF", save_all=True, append_images=frames, duration=milliseconds, loop=0)
    return out


def _frames(
    world: GridWorld[Any, Any, Any], num_episodes: int, seed: int, view_of: int | None
) -> Iterator[tuple[int, int, NDArray[np.uint8]]]:
    """Yield frames, each with its number and how many there will be as far as is known."""
    done = 0
    for episode in range(num_episodes):
        key_actions, key_play = jax.random.split(jax.random.fold_in(jax.random.key(seed), episode))
        actions = random_actions(world, key_actions)
        trajectory = jax.device_get(play(world, key_play, actions))
        length = trajectory.num_steps
        per_episode = world.episode_limit + 1 + FRAMES_HELD_AT_END
        total = done + length + 1 + FRAMES_HELD_AT_END + (num_episodes - episode - 1) * per_episode
        returns = np.cumsum(trajectory.outcomes.rewards, axis=0, dtype=np.float64)
        for step in range(length + 1):
            status = Status(
                actions=np.asarray(actions[step - 1]) if step else None,
                returns=returns[step - 1] if step else np.zeros(world.num_agents),
                num_steps=step,
            )
            frame = draw_frame(world, trajectory.state(step), status, view_of)
            for _ in range(1 + FRAMES_HELD_AT_END * (step == length)):
                done += 1
                yield done, total, frame
