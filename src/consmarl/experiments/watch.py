"""Watch a world: play episodes at random or by a learned policy, draw them, and write a GIF or an MP4."""

import contextlib
import functools
import importlib
import itertools
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from PIL import Image
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from consmarl.environments import validation
from consmarl.environments.draw import Status, draw_frame
from consmarl.environments.foreign import is_foreign
from consmarl.environments.grid import GridWorld
from consmarl.environments.playback import play, random_actions
from consmarl.environments.registry import make
from consmarl.errors import UsageError
from consmarl.experiments.policies import load_policy
from consmarl.files import CONFIG, POLICY, POLICY_GIF, replacing
from consmarl.learners.interface import AnyLearner
from consmarl.sharing.none import NoSharing
from consmarl.training.exploration import Greedy
from consmarl.training.rollout import Actors, play_episodes

FRAMES_HELD_AT_END = 6  # so that a looping GIF shows how the episode ended
MOST_FPS = 50

# Of the GIF for reports, chosen by eye: words can be read, and an episode of pgm-6ag takes less than 200 kB.
SMALL_SCALE, SMALL_COLOURS = 0.7, 64
FRAMES_FOR_PALETTE = 8

World = GridWorld[Any, Any, Any]
Frame = NDArray[np.uint8]  # [row, column, RGB]


class Played(NamedTuple):
    """An episode, cut to the steps that it had."""

    states: Any  # [step + 1, …], the first being the start
    actions: NDArray[Any]  # [step, agent]
    rewards: NDArray[Any]  # [step, agent]

    @property
    def num_steps(self) -> int:
        """How many steps it had."""
        return len(self.rewards)


def watch(
    env: str | None = None,
    out: Path = Path("watch.gif"),
    *,
    policy: Path | None = None,
    parameters: Mapping[str, Any] | None = None,
    episodes: int = 1,
    seed: int = 0,
    fps: int = 6,
    view_of: int | None = 0,
) -> Path:
    """Play a world at random or a learned policy greedily, and write what happened to `out`; return its path.

    `policy` is a policy.safetensors or the directory of a finished run. It plays in the world that it was learned in,
    and its episodes are those of an evaluation with the same seed and number of episodes.
    """
    out = Path(out)
    write = _writer_for(out)
    num_episodes = validation.whole_number("episodes", episodes, least=1)
    seed = validation.whole_number("seed", seed, least=0)
    if validation.whole_number("fps", fps, least=1) > MOST_FPS:
        raise UsageError(f"fps can be at most {MOST_FPS}, which is as fast as players show a GIF, not {fps}.")
    if policy is None:
        world = _world_of(env, parameters)
        played = random_episodes(world, num_episodes, seed)
    else:
        if env is not None or parameters:
            raise UsageError("a policy plays in the world that it was learned in: name a world or a policy, not both.")
        world, learner, weights = _policy_parts(Path(policy))
        played = greedy_episodes(world, learner, weights, num_episodes, seed)
    if view_of is not None and validation.whole_number("view_of", view_of, least=0) >= world.num_agents:
        raise UsageError(f"view_of names an agent from 0 to {world.num_agents - 1}, not {view_of}.")

    with replacing(out) as temporary, _progress() as progress:
        write(temporary, _shown(progress, world, played, num_episodes, view_of), fps)
    return out


def policy_gif(run_directory: Path) -> Path:
    """Write an episode of a finished run's policy to its policy.gif, small enough for a report; return the path."""
    run_directory = Path(run_directory)
    world, learner, weights = _policy_parts(run_directory)
    (played,) = greedy_episodes(world, learner, weights, num_episodes=1, seed=0)
    out = run_directory / POLICY_GIF
    with replacing(out) as temporary:
        _write_small_gif(temporary, world, played, fps=6)
    return out


def _world_of(env: str | None, parameters: Mapping[str, Any] | None) -> World:
    if env is None:
        raise UsageError("there is nothing to watch: name a world, such as pgm-6ag, or a policy.")
    if is_foreign(env):
        raise _cannot_be_drawn(env)
    return make(env, **(parameters or {}))


def _policy_parts(policy: Path) -> tuple[World, AnyLearner, Any]:
    """Return the world, the learner and the weights of a policy file, or of a finished run's policy."""
    weights, config = load_policy(_policy_file(policy))
    trainer = config.trainer()
    if not isinstance(trainer.world, GridWorld):
        raise _cannot_be_drawn(config.env)
    return trainer.world, trainer.learner, weights


def _policy_file(policy: Path) -> Path:
    if not policy.is_dir():
        return policy
    if (policy / POLICY).is_file():
        return policy / POLICY
    if not (policy / CONFIG).is_file():
        raise UsageError(f"{policy} is not the directory of a run: it has no {CONFIG}.")
    raise UsageError(
        f"{policy} has not finished, so it has no {POLICY}: "
        f"write one by `consmarl export {policy} --out {POLICY}`, and watch that."
    )


def _cannot_be_drawn(id: str) -> UsageError:
    return UsageError(f"{id} cannot be drawn: only the worlds that `consmarl list` shows can be watched.")


def random_episodes(world: World, num_episodes: int, seed: int) -> Iterator[Played]:
    """Play uniformly random actions."""
    for episode in range(num_episodes):
        key_actions, key_play = jax.random.split(jax.random.fold_in(jax.random.key(seed), episode))
        actions = random_actions(world, key_actions)
        trajectory = jax.device_get(play(world, key_play, actions))
        length = trajectory.num_steps
        states = jax.tree.map(lambda rows, length=length: rows[: length + 1], trajectory.states)
        yield Played(states, np.asarray(actions)[:length], trajectory.outcomes.rewards[:length])


def greedy_episodes(
    world: World, learner: AnyLearner, parameters: Any, num_episodes: int, seed: int
) -> Iterator[Played]:
    """Play the best actions: the episodes that an evaluation with this seed and number of episodes plays."""
    played = _play_greedily(world, learner, num_episodes, parameters, jax.random.key(seed))
    states, batch = jax.device_get(played)
    for episode, length in enumerate(batch.num_steps.tolist()):
        yield Played(
            states=jax.tree.map(lambda rows, at=episode, length=length: rows[: length + 1, at], states),
            actions=batch.actions[:, episode, :length].T,
            rewards=batch.rewards[:, episode, :length].T,
        )


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def _play_greedily(world: World, learner: AnyLearner, num_episodes: int, parameters: Any, key: jax.Array) -> Any:
    """Return states [step + 1, episode, …] and the batch of episodes."""
    actors = Actors(learner, Greedy(), NoSharing())
    no_epsilon, first_episode = jnp.zeros(world.episode_limit), jnp.zeros((), jnp.int32)
    episodes = play_episodes(
        world, actors, parameters, (), no_epsilon, first_episode, key, num_episodes, is_recording=True
    )
    # what is recorded are the states before each step, so the last step is taken once more, with the same keys
    key_steps = jax.random.split(key, 3)[2]
    _, key_world = jax.random.split(jax.random.split(key_steps, world.episode_limit)[-1])
    before = jax.tree.map(lambda rows: rows[-1], episodes.records.states)
    last_actions = episodes.batch.actions[:, :, -1].T.astype(jnp.int32)
    after, _ = jax.vmap(world.step)(jax.random.split(key_world, num_episodes), before, last_actions)
    # an episode that was over before has rows to spare: their states are cut off
    states = jax.tree.map(lambda rows, last: jnp.concatenate([rows, last[None]]), episodes.records.states, after)
    return states, episodes.batch


def draw_step(world: World, played: Played, step: int, view_of: int | None) -> Frame:
    """Draw an episode after so many of its steps."""
    status = Status(
        actions=played.actions[step - 1] if step else None,
        returns=played.rewards[:step].sum(axis=0, dtype=np.float64),
        num_steps=step,
    )
    return draw_frame(world, jax.tree.map(lambda rows: rows[step], played.states), status, view_of)


def film(world: World, played: Played, view_of: int | None) -> Iterator[Frame]:
    """Draw an episode from its start to its end, which is held for a while."""
    for step in range(played.num_steps + 1):
        frame = draw_step(world, played, step, view_of)
        for _ in range(1 + FRAMES_HELD_AT_END * (step == played.num_steps)):
            yield frame


def _progress() -> Progress:
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("frames, to go"),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=console, disable=not console.is_terminal)


def _shown(
    progress: Progress, world: World, episodes: Iterable[Played], num_episodes: int, view_of: int | None
) -> Iterator[Frame]:
    """Draw episodes, and show how many frames there are and will be as far as is known."""
    total = num_episodes * (world.episode_limit + 1 + FRAMES_HELD_AT_END)
    task = progress.add_task(f"drawing {world.id}", total=total)
    for played in episodes:
        total -= world.episode_limit - played.num_steps
        progress.update(task, total=total)
        for frame in film(world, played, view_of):
            progress.advance(task)
            yield frame


def _writer_for(out: Path) -> Callable[[Path, Iterable[Frame], int], None]:
    suffix = out.suffix.lower()
    if suffix not in (".gif", ".mp4"):
        raise UsageError(f"out must be a file ending in .gif or .mp4, not {str(out)!r}.")
    return write_gif if suffix == ".gif" else functools.partial(write_mp4, _ffmpeg())


def write_gif(path: Path, frames: Iterable[Frame], fps: int) -> None:
    """Write frames as a GIF, each with colours of its own."""
    kind, dither = Image.Quantize.FASTOCTREE, Image.Dither.NONE
    _save_gif(path, (Image.fromarray(frame).quantize(method=kind, dither=dither) for frame in frames), fps)


def _write_small_gif(path: Path, world: World, played: Played, fps: int) -> None:
    """Write an episode in few colours that all frames share, so that what stands still takes no room."""
    steps = np.linspace(0, played.num_steps, FRAMES_FOR_PALETTE).round().astype(int)
    some = np.concatenate([draw_step(world, played, step, 0) for step in steps.tolist()])
    palette = _small(some).quantize(SMALL_COLOURS, Image.Quantize.FASTOCTREE)
    frames = film(world, played, view_of=0)
    _save_gif(path, (_small(frame).quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames), fps)


def _small(frame: Frame) -> Image.Image:
    height, width = (round(side * SMALL_SCALE) for side in frame.shape[:2])
    return Image.fromarray(frame).resize((width, height), Image.Resampling.BOX)


def _save_gif(path: Path, images: Iterator[Image.Image], fps: int) -> None:
    with path.open("wb") as file:  # left to itself, Pillow does not close it when it is interrupted
        next(images).save(file, "GIF", save_all=True, append_images=images, duration=round(1000 / fps), loop=0)


def _ffmpeg() -> str:
    """Return the program that writes videos."""
    try:
        return str(importlib.import_module("imageio_ffmpeg").get_ffmpeg_exe())
    except ImportError as error:
        raise UsageError("MP4 needs imageio-ffmpeg: pip install 'consmarl[video]', or name a .gif.") from error
    except RuntimeError as error:  # the package comes without the program on some systems
        raise UsageError("MP4 needs ffmpeg, and there is none on this system: install it, or name a .gif.") from error


def write_mp4(program: str, path: Path, frames: Iterable[Frame], fps: int) -> None:
    """Write frames as a video that browsers and players know: H.264, in the colour format that all of them have."""
    even = map(_even, frames)
    first = next(even)
    size = f"{first.shape[1]}x{first.shape[0]}"
    # by ourselves: imageio forks, which JAX's threads may not survive, and takes no notice when ffmpeg fails at the end
    taken = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", size, "-framerate", str(fps), "-i", "-"]
    given = ["-c:v", "libx264", "-pix_fmt", "yuv420p", "-crf", "18", "-movflags", "+faststart", "-f", "mp4", str(path)]
    command = [program, "-y", "-loglevel", "error", *taken, *given]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # who stops listening says why
            for frame in itertools.chain([first], even):
                process.stdin.write(frame.tobytes())
        said = process.communicate()[1].decode(errors="replace").strip().splitlines()
    if process.returncode:
        reason = said[-1] if said else f"exit code {process.returncode}"
        raise UsageError(f"ffmpeg could not write the video: {reason.rstrip('.')}.")


def _even(frame: Frame) -> Frame:
    """Fill up to even sides, which the colour format asks for: it has one colour for two by two points."""
    height, width, _ = frame.shape
    return np.pad(frame, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
