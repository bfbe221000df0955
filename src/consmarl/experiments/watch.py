"""Watch an environment: play episodes at random or with a learned policy, and draw them as a GIF or MP4."""

import functools
import itertools
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from consmarl.environments import validation
from consmarl.environments.compiled import CompiledWorld
from consmarl.environments.draw import Status, draw_frame
from consmarl.environments.draw.ring import draw_beside
from consmarl.environments.film import Film, rendering_world
from consmarl.environments.foreign import ForeignWorld, is_foreign
from consmarl.environments.grid import GridWorld
from consmarl.environments.playback import play, play_at_random, random_actions
from consmarl.environments.registry import make
from consmarl.environments.trust import Trust
from consmarl.errors import UsageError
from consmarl.experiments.configuration.pairs import settings_from
from consmarl.experiments.consult import consulting
from consmarl.experiments.frames import Frame, write_small_gif, writer_for
from consmarl.experiments.learned import learned_policy, named_environment
from consmarl.files import POLICY, POLICY_GIF, replacing
from consmarl.sharing.options import Consult
from consmarl.training.exploration import Greedy
from consmarl.training.programs import Program
from consmarl.training.python_loop import own_keys
from consmarl.training.python_loop import play_episodes as play_in_python
from consmarl.training.rollout import Actors, play_episodes

FRAMES_HELD_AT_END = 6  # so that a looping GIF shows how the episode ended
MOST_FPS = 50
MOST_EPISODES = 1_000  # per file; all of them are played before the first is drawn

World = GridWorld[Any, Any, Any] | CompiledWorld | ForeignWorld


class Played(NamedTuple):
    """An episode, cut to its actual length."""

    states: Any  # [step + 1, …], from the initial state on; in Python, a list of pictures, None if there is none
    actions: NDArray[Any]  # [step, agent, …]
    rewards: NDArray[Any]  # [step, agent]

    @property
    def num_steps(self) -> int:
        """Number of steps."""
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
    consult: Consult | str | None = None,
    trust: Trust = False,
) -> Path:
    """Play an environment at random or a learned policy greedily, and write a GIF or MP4 to `out`; return its path.

    `policy` is a policy.safetensors or the directory of a run. It plays in the environment that it was learned in,
    and its episodes are those of an evaluation with the same seed and number of episodes. Its agents act on their own
    unless `consult` says how they use their teammates' values. A third-party environment named by a policy is a
    program and is run only if `trust` is True or its id, or if `env` is its id.
    """
    out = Path(out)
    write = writer_for(out)
    num_episodes = validation.whole_number("episodes", episodes, least=1, most=MOST_EPISODES)
    seed = validation.whole_number("seed", seed, least=0)
    if validation.whole_number("fps", fps, least=1) > MOST_FPS:
        raise UsageError(f"fps can be at most {MOST_FPS}, the fastest that players show a GIF, not {fps}.")
    if policy is None:
        if consult is not None:
            raise UsageError("agents that act at random cannot consult each other: name a policy.")
        world = _world_of(env, parameters)
        played = random_episodes(world, num_episodes, seed)
    else:
        is_consent = env is not None and is_foreign(env)
        if (env is not None and not is_consent) or parameters:
            raise UsageError("a policy plays where it was learned: name an environment or a policy, not both.")
        world, actors, weights = _policy_parts(Path(policy), consult, trust=(env or "") if is_consent else trust)
        played = greedy_episodes(world, actors, weights, num_episodes, seed)
    if view_of is not None and validation.whole_number("view_of", view_of, least=0) >= world.num_agents:
        raise UsageError(f"view_of must be an agent from 0 to {world.num_agents - 1}, not {view_of}.")

    with replacing(out) as temporary, _progress() as progress:
        write(temporary, _shown(progress, world, played, num_episodes, view_of), fps)
    return out


def policy_gif(run_directory: Path) -> Path:
    """Draw an episode of a finished run's policy as policy.gif in its directory, small enough for a report.

    Return the path of the file.
    """
    run_directory = Path(run_directory)
    if is_foreign(id := named_environment(run_directory / POLICY)):  # only finished runs have this file
        raise UsageError(f"{id} is not drawn for reports, since that would run a program that a file names.")
    world, actors, weights = _policy_parts(run_directory / POLICY)
    (played,) = greedy_episodes(world, actors, weights, num_episodes=1, seed=0)
    out = run_directory / POLICY_GIF
    with replacing(out) as temporary:
        write_small_gif(temporary, list(film(world, played, view_of=0)), fps=6)
    return out


def _world_of(env: str | None, parameters: Mapping[str, Any] | None) -> World:
    if env is None:
        raise UsageError("there is nothing to watch: name an environment, such as pgm-6ag, or a policy.")
    return rendering_world(env, **(parameters or {})) if is_foreign(env) else make(env, **(parameters or {}))


def _policy_parts(
    policy: Path, consult: Consult | str | None = None, *, trust: Trust = False
) -> tuple[World, Actors, Any]:
    """Return the environment, the greedy agents and the weights of a policy file, or of a run's policy."""
    weights, config = learned_policy(policy, trust=trust)
    trainer: Any = config.trainer()
    world = rendering_world(config.env, **settings_from(config.set)) if is_foreign(config.env) else trainer.world
    return world, Actors(trainer.learner, Greedy(), consulting(consult, config, trainer)), weights


def random_episodes(world: World, num_episodes: int, seed: int) -> Iterator[Played]:
    """Yield episodes with uniformly random actions among those that are allowed."""
    if isinstance(world, ForeignWorld):
        yield from _random_in_python(world, num_episodes, seed)
        return
    for episode in range(num_episodes):
        key = jax.random.fold_in(jax.random.key(seed), episode)
        if world.masks_actions:
            trajectory, actions = jax.device_get(play_at_random(world, key))
        else:
            key_actions, key_play = jax.random.split(key)
            actions = random_actions(world, key_actions)
            trajectory = jax.device_get(play(world, key_play, actions))
        length = trajectory.num_steps
        states = jax.tree.map(lambda rows, length=length: rows[: length + 1], trajectory.states)
        yield Played(states, np.asarray(actions)[:length], trajectory.outcomes.rewards[:length])


def greedy_episodes(world: World, actors: Actors, parameters: Any, num_episodes: int, seed: int) -> Iterator[Played]:
    """Yield episodes of greedy actions: the same ones as an evaluation with this seed and number of episodes."""
    if isinstance(world, ForeignWorld):
        yield from _greedy_in_python(world, actors, parameters, num_episodes, seed)
        return
    played = _play_greedily(world, actors, num_episodes, parameters, jax.random.key(seed))
    states, batch = jax.device_get(played)
    for episode, length in enumerate(batch.num_steps.tolist()):
        yield Played(
            states=jax.tree.map(lambda rows, at=episode, length=length: rows[: length + 1, at], states),
            actions=batch.actions[:, episode, :length].swapaxes(0, 1),
            rewards=batch.rewards[:, episode, :length].T,
        )


def _random_in_python(world: ForeignWorld, num_episodes: int, seed: int) -> Iterator[Played]:
    film = Film(world)
    for episode in range(num_episodes):
        rng = np.random.default_rng((seed, episode))
        rows = film.reset([int(rng.integers(2**31))])
        actions: list[NDArray[Any]] = []
        rewards: list[NDArray[Any]] = []
        while len(actions) < world.episode_limit and not rows["is_over"][0]:
            actions.append(world.random_actions(rng))
            rows = film.step(actions[-1][None])
            rewards.append(rows["rewards"][0].copy())
        yield Played(film.pictures, np.stack(actions), np.stack(rewards))


def _greedy_in_python(
    world: ForeignWorld, actors: Actors, parameters: Any, num_episodes: int, seed: int
) -> Iterator[Played]:
    film, limit = Film(world), world.episode_limit
    keys = jax.random.split(jax.random.key(seed), num_episodes)
    for episode in range(num_episodes):
        key = own_keys(limit, keys[episode : episode + 1])
        batch: Any = play_in_python(film, actors, parameters, (), jnp.zeros(limit), 0, key).batch
        length = int(batch.num_steps[0])
        yield Played(film.pictures, batch.actions[:, 0, :length].swapaxes(0, 1), batch.rewards[:, 0, :length].T)


@functools.partial(Program, num_static=3)
def _play_greedily(world: Any, actors: Actors, num_episodes: int, parameters: Any, key: jax.Array) -> Any:
    """Return states [step + 1, episode, …] and the batch of episodes."""
    no_epsilon, first_episode = jnp.zeros(world.episode_limit), jnp.zeros((), jnp.int32)
    episodes = play_episodes(
        world, actors, parameters, (), no_epsilon, first_episode, key, num_episodes, is_recording=True
    )
    return episodes.records.states, episodes.batch


def draw_step(world: GridWorld[Any, Any, Any], played: Played, step: int, view_of: int | None) -> Frame:
    """Draw an episode as it is after `step` steps."""
    return draw_frame(world, _state(played, step), _status(played, step), view_of)


def _state(played: Played, step: int) -> Any:
    return jax.tree.map(lambda rows: rows[step], played.states)


def _status(played: Played, step: int) -> Status:
    return Status(
        actions=played.actions[step - 1] if step else None,
        returns=played.rewards[:step].sum(axis=0, dtype=np.float64),
        num_steps=step,
    )


def _frames(world: World, played: Played, view_of: int | None) -> Iterator[Frame]:
    if isinstance(world, ForeignWorld):
        yield from (draw_beside(world, _status(played, step), each) for step, each in enumerate(played.states))
        return
    if isinstance(world, CompiledWorld):
        yield from _of_package(world, played)
        return
    for step in range(played.num_steps + 1):
        yield draw_step(world, played, step, view_of)


def _of_package(world: CompiledWorld, played: Played) -> Iterator[Frame]:
    """Draw an episode in an environment of another package, with that package's own pictures if it has any."""
    states = [_state(played, step).inner for step in range(played.num_steps + 1)]
    pictures: Iterable[Any] = world.game.pictures(states) or itertools.repeat(None, len(states))
    for step, picture in enumerate(pictures):
        yield draw_beside(world, _status(played, step), picture)


def film(world: World, played: Played, view_of: int | None) -> Iterator[Frame]:
    """Yield the frames of an episode; the last one is repeated, so that it stays visible for a while."""
    for step, frame in enumerate(_frames(world, played, view_of)):
        for _ in range(1 + FRAMES_HELD_AT_END * (step == played.num_steps)):
            yield frame


def _progress() -> Progress:
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("frames, remaining"),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=console, disable=not console.is_terminal)


def _shown(
    progress: Progress, world: World, episodes: Iterable[Played], num_episodes: int, view_of: int | None
) -> Iterator[Frame]:
    """Yield the frames of episodes and show the progress; the total shrinks with every episode that ends early."""
    total = num_episodes * (world.episode_limit + 1 + FRAMES_HELD_AT_END)
    task = progress.add_task(f"drawing {world.id}", total=total)
    for played in episodes:
        total -= world.episode_limit - played.num_steps
        progress.update(task, total=total)
        for frame in film(world, played, view_of):
            progress.advance(task)
            yield frame
