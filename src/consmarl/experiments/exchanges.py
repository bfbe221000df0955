"""Files of recorded episodes: every request, the teachers' answers, and the actions that agents took.

One NumPy archive per episode, `exchanges/episode-000007500.npz`, readable without our code: arrays by step
(`steps/…`, [step, agent, …]), by request (`requests/…`, [request, …]) and by request and teacher (`teachers/…`,
[request, teacher, …]), the environment's states (`world/…`, [step + 1, …], the last being the final state), and a JSON
header. Teachers are all agents, followed by experts beside the team if there are any. The fields are those of
`sharing.record`. If actions have several dimensions, every array about choices has an additional axis for them, after
those for agents and requests, and the header names the choices.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from consmarl.errors import UsageError
from consmarl.experiments.archives import read_arrays
from consmarl.files import EXCHANGES, replacing
from consmarl.json_files import parse_json_object
from consmarl.sharing.record import Reply

FORMAT = "consmarl-exchange-2"
# kinds of episodes
TRAINING, EVALUATION, STAGED, SILENT, CONSULTED = "training", "evaluation", "staged", "silent", "consulted"
KINDS = (TRAINING, EVALUATION, STAGED, SILENT, CONSULTED)
CHOICES = "choices"  # header entry: the names of the choices in each dimension
Arrays = dict[str, NDArray[Any]]

# The arrays of a record: one letter per axis (step, agent, action k, request, teacher, dimension), and the kind of
# number.
_ALWAYS = {"steps/rewards": "sa f", "steps/epsilon": "s f", "steps/values": "sak f", "steps/is_exploring": "sa b",
           "steps/own_action": "sa u", "steps/action": "sa u"}  # fmt: skip
_WHERE_SHARED = {
    "steps/is_asking": "sa b", "steps/ask_probability": "sa f", "steps/num_visits": "sa i",
    "steps/requests_left": "sa i", "steps/answers_left": "sa i",
    "requests/step": "r i", "requests/student": "r i", "requests/policy_before": "rk f", "requests/modified": "rk f",
    "requests/policy_after": "rk f", "requests/confidence_after": "r f", "requests/negative_weight": "r f",
    "requests/is_best": "r b", "requests/num_excluded": "r u", "requests/is_advised": "r b", "requests/action": "r u",
    "teachers/reply": "rt u", "teachers/num_visits": "rt i", "teachers/best_action": "rt u",
    "teachers/worst_action": "rt u", "teachers/best_probability": "rt f", "teachers/worst_probability": "rt f",
    "teachers/confidence": "rt f", "teachers/prestige": "rt f", "teachers/max_value": "rt f",
}  # fmt: skip
_WHERE_MASKED = {"steps/allowed": "sak b"}
# Arrays of requests and teachers have an axis for an action's dimensions, except _OF_ALL_DIMENSIONS; of the arrays of
# steps, only _OF_CHOICES have one.
_OF_ALL_DIMENSIONS = ("requests/step", "requests/student", "teachers/reply", "teachers/num_visits")
_OF_CHOICES = ("steps/values", "steps/own_action", "steps/action", "steps/allowed")
_TYPES = {"f": ("float32", "float64"), "i": ("int32",), "u": ("uint8", "uint16", "uint32"), "b": ("bool",)}
# arrays of indices, and the axes that they index
_BELOW = {"steps/own_action": "k", "steps/action": "k", "requests/action": "k", "requests/step": "s",
          "requests/student": "a", "teachers/best_action": "k", "teachers/worst_action": "k"}  # fmt: skip


@dataclass(frozen=True)
class RecordedEpisode:
    """One episode as stored in its file."""

    header: dict[str, Any]  # format, kind, episode, configuration
    steps: Arrays  # [step, agent, …]; epsilon [step]
    requests: Arrays  # [request, …], with `step` and `student`; empty if nobody shares
    teachers: Arrays  # [request, teacher, …]
    world: Arrays  # [step + 1, …], the last row being the final state; empty if the state is not known

    @property
    def episode(self) -> int:
        """The number of the episode."""
        return int(self.header["episode"])

    @property
    def kind(self) -> str:
        """The kind of episode."""
        return str(self.header["kind"])

    @property
    def num_steps(self) -> int:
        """Number of steps."""
        return len(self.steps["rewards"])

    @property
    def num_agents(self) -> int:
        """Number of agents."""
        return int(self.steps["rewards"].shape[1])

    @property
    def num_experts(self) -> int:
        """Number of experts beside the team, who follow the agents on the teacher axis."""
        return int(self.teachers["reply"].shape[1]) - self.num_agents if self.teachers else 0

    @property
    def num_actions(self) -> int:
        """Number of actions, or of choices in each dimension of an action."""
        return int(self.steps["values"].shape[-1])

    @property
    def num_dimensions(self) -> int:
        """Number of dimensions of an action."""
        return int(self.steps["values"].shape[2]) if self.steps["values"].ndim > 3 else 1

    @property
    def action_names(self) -> list[str]:
        """The names of the actions; if they have several dimensions, call `in_dimension` first."""
        return self.header.get(CHOICES) or [f"action {number}" for number in range(self.num_actions)]

    def in_dimension(self, dimension: int) -> "RecordedEpisode":
        """Return the record with only one dimension of the actions, as if they had no other."""

        def sliced(group: str, arrays: Arrays) -> Arrays:
            return {
                name: np.take(rows, dimension, axis=at) if (at := _axis_of_dimensions(f"{group}/{name}")) else rows
                for name, rows in arrays.items()
            }

        header = self.header | {CHOICES: self.header[CHOICES][dimension]}
        steps, requests, teachers = (sliced(group, getattr(self, group)) for group in ("steps", "requests", "teachers"))
        return RecordedEpisode(header, steps, requests, teachers, self.world)

    @property
    def is_sharing(self) -> bool:
        """Whether agents could share knowledge in this episode."""
        return bool(self.requests)


def names_of(world: Any) -> dict[str, Any]:
    """Return the header entry with the names of choices; empty unless actions have several dimensions."""
    return {CHOICES: [list(names) for names in world.choice_names]} if world.num_branches > 1 else {}


def _axis_of_dimensions(name: str) -> int:
    """Return which axis of an array indexes the dimensions of actions that have several; 0 if it has no such axis."""
    if name in _OF_CHOICES:
        return 2
    group = name.partition("/")[0]
    return 0 if name in _OF_ALL_DIMENSIONS else {"requests": 1, "teachers": 2}.get(group, 0)


def episode_path(run: Path, episode: int) -> Path:
    """Return the path of a run's recorded episode."""
    return run / EXCHANGES / f"episode-{episode:09d}.npz"


def recorded_numbers(run: Path) -> list[int]:
    """Return the numbers of a run's recorded episodes in ascending order."""
    found = (re.fullmatch(r"episode-(\d{9})\.npz", path.name) for path in (run / EXCHANGES).glob("episode-*.npz"))
    return sorted(int(match[1]) for match in found if match)


def recorded_episode(records: Any, number: int, num_envs: int, header: Mapping[str, Any]) -> RecordedEpisode:
    """Extract one episode from a chunk's `rollout.Recorded`, [round, step, …]; `number` counts from 0 in the chunk."""
    at_round, env = divmod(number, num_envs)
    of_round = jax.tree.map(lambda leaf: np.asarray(leaf[at_round]), records)
    is_live = of_round.is_live[:, env]
    by_agent = jax.tree.map(lambda leaf: leaf[is_live][:, :, env], of_round.step)  # [step, agent, …]
    steps = {"rewards": of_round.rewards[is_live][:, env], "epsilon": of_round.epsilon[is_live]}
    requests: Arrays = {}
    teachers: Arrays = {}
    fields = by_agent._asdict()
    if fields["allowed"] is None:  # nothing is forbidden
        del fields["allowed"]
    if "student" in fields:
        student, teacher = fields.pop("student"), fields.pop("teachers")
        at_step, who = np.nonzero(fields["is_asking"])
        requests = {"step": at_step.astype(np.int32), "student": who.astype(np.int32)}
        requests |= {name: rows[at_step, who] for name, rows in student._asdict().items()}
        teachers = {name: rows[at_step, who] for name, rows in teacher._asdict().items()}
    num_states = int(is_live.sum()) + 1
    world = {
        jax.tree_util.keystr(path).lstrip("."): leaf[:num_states, env]
        for path, leaf in jax.tree_util.tree_leaves_with_path(of_round.states)
    }
    return RecordedEpisode({"format": FORMAT} | dict(header), steps | fields, requests, teachers, world)


def write_episode(path: Path, recorded: RecordedEpisode) -> Path:
    """Write a recorded episode atomically; return the path."""
    arrays = {"header": np.array(json.dumps(recorded.header))}
    for group in ("steps", "requests", "teachers", "world"):
        arrays |= {f"{group}/{name}": rows for name, rows in getattr(recorded, group).items()}
    # uncompressed: compression would double the time and save less than half
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)
    return path


def read_episode(path: Path) -> RecordedEpisode:
    """Read a file written by `write_episode`, and check that it is complete and consistent."""
    if not path.is_file():
        raise UsageError(f"there is no recorded episode {path}: record some with `consmarl train --record NUMBER …`.")
    try:
        arrays = read_arrays(path)
        header = parse_json_object(str(arrays.pop("header", "")), "its header")
    except UsageError as error:
        raise UsageError(f"{path} is not a recorded episode, or it is damaged ({str(error).rstrip('.')}).") from error
    _check_header(path, header)
    _check_arrays(path, arrays)
    _check_choices(path, header, arrays["steps/values"].shape[2:])
    groups: dict[str, Arrays] = {"steps": {}, "requests": {}, "teachers": {}, "world": {}}
    for name, rows in arrays.items():
        group, _, field = name.partition("/")
        groups.setdefault(group, {})[field] = rows
    return RecordedEpisode(header, *(groups[name] for name in ("steps", "requests", "teachers", "world")))


def _check_header(path: Path, header: dict[str, Any]) -> None:
    found = header.get("format")
    if isinstance(found, str) and found.startswith(FORMAT.rpartition("-")[0]) and found != FORMAT:
        raise UsageError(f"{path} was recorded by another version in format {found}: this one reads {FORMAT}.")
    if found != FORMAT:
        raise UsageError(f"{path} is not a recorded episode: its header should say {json.dumps(FORMAT)}.")
    missing = [name for name in ("kind", "episode", "config") if name not in header]
    if missing or not isinstance(header["episode"], int) or not isinstance(header["config"], dict):
        raise UsageError(f"{path} is damaged: its header lacks {', '.join(missing) or 'a number or a configuration'}.")
    if header["kind"] not in KINDS or not isinstance(header.get("after", 0), int):
        raise UsageError(f"{path} is damaged: its header names an unknown kind of episode.")


def _check_choices(path: Path, header: dict[str, Any], shape: tuple[int, ...]) -> None:
    """Raise an error unless the header names all choices, [dimension, choice], or none if there is one dimension."""
    named: Any = header.get(CHOICES)
    if len(shape) == 1 and named is None:
        return
    is_named = isinstance(named, list) and all(isinstance(row, list) and len(row) == shape[-1] for row in named)
    if len(shape) == 1 or not is_named or len(named) != shape[0]:
        raise UsageError(f"{path} is damaged: its header does not name the choices in every dimension of an action.")
    if not all(isinstance(each, str) for row in named for each in row):
        raise UsageError(f"{path} is damaged: its header has names of choices that are not words.")


def _check_arrays(path: Path, arrays: Arrays) -> None:
    """Raise an error if arrays are missing or unknown, or have inconsistent shapes, wrong types or invalid values."""
    expected = dict(_ALWAYS)
    for sometimes in (_WHERE_SHARED, _WHERE_MASKED):
        expected |= sometimes if sometimes.keys() & arrays.keys() else {}
    if missing := sorted(expected.keys() - arrays.keys()):
        raise UsageError(f"{path} is damaged: it lacks {missing[0]}.")
    if unknown := sorted(name for name in arrays.keys() - expected.keys() if not name.startswith("world/")):
        raise UsageError(f"{path} is damaged: it has an unknown array {unknown[0]}.")
    sizes: dict[str, int] = {}
    has_dimensions = arrays["steps/values"].ndim > 3
    for name, form in expected.items():
        axes, kind = form.split()
        if has_dimensions and (at := _axis_of_dimensions(name)):
            axes = f"{axes[:at]}d{axes[at:]}"
        shape = arrays[name].shape
        if len(shape) != len(axes) or any(sizes.setdefault(*each) != each[1] for each in zip(axes, shape, strict=True)):
            raise UsageError(f"{path} is damaged: {name} has shape {shape}, which does not fit the others.")
        if arrays[name].dtype.name not in _TYPES[kind]:
            raise UsageError(f"{path} is damaged: {name} has type {arrays[name].dtype}.")
        if kind == "f" and not np.isfinite(arrays[name]).all():
            raise UsageError(f"{path} is damaged: {name} has numbers that are not finite.")
    if not sizes["s"] or sizes.get("r", 0) > sizes["s"] * sizes["a"]:
        raise UsageError(f"{path} is damaged: it has no step, or more requests than possible.")
    if sizes.get("t", sizes["a"]) not in (sizes["a"], 2 * sizes["a"]):  # experts were a team of the same size
        raise UsageError(f"{path} is damaged: its {sizes['t']} teachers are neither a team of {sizes['a']} nor two.")
    for name, axis in _BELOW.items():
        if name in expected and arrays[name].size and not 0 <= arrays[name].min() <= arrays[name].max() < sizes[axis]:
            raise UsageError(f"{path} is damaged: {name} is out of range.")
    if "teachers/reply" in expected and not np.isin(arrays["teachers/reply"], list(Reply)).all():
        raise UsageError(f"{path} is damaged: teachers/reply has an unknown reply.")
    for name, rows in arrays.items():
        if name.startswith("world/") and rows.shape[:1] != (sizes["s"] + 1,):
            raise UsageError(f"{path} is damaged: {name} has shape {rows.shape}, which does not fit the others.")
