"""Recorded episodes as files: who asked whom on what, what was answered, and what was done.

One compressed NumPy archive an episode, `exchanges/episode-000007500.npz`, that needs no code of ours to read: arrays
by step (`steps/…`, [step, agent, …]), by request (`requests/…`, [request, …]) and by request and teacher
(`teachers/…`, [request, teacher, …]), the worlds' states (`world/…`, [step, …]), and a header in JSON. The fields are
those of `sharing.record`.
"""

import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from consmarl.errors import UsageError
from consmarl.files import replacing

FORMAT = "consmarl-exchange-1"
Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class RecordedEpisode:
    """One episode, as its file holds it."""

    header: dict[str, Any]  # format, episode, configuration
    steps: Arrays  # [step, agent, …]; epsilon [step]
    requests: Arrays  # [request, …], with `step` and `student`
    teachers: Arrays  # [request, teacher, …]
    world: Arrays  # [step, …]

    @property
    def episode(self) -> int:
        """The number of the episode."""
        return int(self.header["episode"])

    @property
    def num_steps(self) -> int:
        """How many steps it had."""
        return len(self.steps["rewards"])


def episode_path(run: Path, episode: int) -> Path:
    """Return where a run keeps a recorded episode."""
    return run / "exchanges" / f"episode-{episode:09d}.npz"


def recorded_episode(records: Any, number: int, num_envs: int, header: Mapping[str, Any]) -> RecordedEpisode:
    """Cut one episode out of a chunk's records, `rollout.Recorded` of [round, step, …]; its number counts from 0."""
    at_round, env = divmod(number, num_envs)
    of_round = jax.tree.map(lambda leaf: np.asarray(leaf[at_round]), records)
    is_live = of_round.is_live[:, env]
    by_agent = jax.tree.map(lambda leaf: leaf[is_live][:, :, env], of_round.step)  # [step, agent, …]
    steps = {"rewards": of_round.rewards[is_live][:, env], "epsilon": of_round.epsilon[is_live]}
    requests: Arrays = {}
    teachers: Arrays = {}
    if by_agent:
        fields = by_agent._asdict()
        student, teacher = fields.pop("student"), fields.pop("teachers")
        steps |= fields
        at_step, who = np.nonzero(fields["is_asking"])
        requests = {"step": at_step.astype(np.int32), "student": who.astype(np.int32)}
        requests |= {name: rows[at_step, who] for name, rows in student._asdict().items()}
        teachers = {name: rows[at_step, who] for name, rows in teacher._asdict().items()}
    world = {
        jax.tree_util.keystr(path).lstrip("."): leaf[is_live][:, env]
        for path, leaf in jax.tree_util.tree_leaves_with_path(of_round.states)
    }
    return RecordedEpisode(dict(header), steps, requests, teachers, world)


def write_episode(path: Path, recorded: RecordedEpisode) -> Path:
    """Write a recorded episode; the file is whole or not there."""
    arrays = {"header": np.array(json.dumps({"format": FORMAT} | recorded.header))}
    for group in ("steps", "requests", "teachers", "world"):
        arrays |= {f"{group}/{name}": rows for name, rows in getattr(recorded, group).items()}
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)
    return path


def read_episode(path: Path) -> RecordedEpisode:
    """Read what `write_episode` wrote."""
    if not path.is_file():
        raise UsageError(f"there is no recorded episode {path}: record some by `consmarl train --record NUMBER …`.")
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        header = json.loads(str(arrays.pop("header")))
    except (OSError, ValueError, KeyError, zipfile.BadZipFile, EOFError) as error:
        raise UsageError(f"{path} is not a recorded episode, or it is damaged ({error}).") from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise UsageError(f"{path} is not a recorded episode: its header should say {json.dumps(FORMAT)}.")
    groups: dict[str, Arrays] = {"steps": {}, "requests": {}, "teachers": {}, "world": {}}
    for name, rows in arrays.items():
        group, _, field = name.partition("/")
        groups.setdefault(group, {})[field] = rows
    return RecordedEpisode(header, *(groups[name] for name in ("steps", "requests", "teachers", "world")))
