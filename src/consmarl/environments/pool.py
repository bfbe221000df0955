"""Copies of an environment in several worker processes, each of which plays some of them.

The number of workers does not change results: an episode depends only on its seed and on the agents' actions. Workers
are started afresh (never forked from this process, which has JAX's threads), import the environment that this process
has imported and the user has confirmed, ignore Ctrl-C, and end when this process does, however it ends. See
docs/decisions/0018-python-environments.md.
"""

import ast
import itertools
import os
import signal
import socket
import struct
import subprocess
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from consmarl.environments import worker
from consmarl.environments.copies import Copies, Rows, SideBySide, action_type, row_type
from consmarl.environments.foreign import ForeignWorld, Recipe
from consmarl.errors import UsageError
from consmarl.processes import python_command, python_path

SECONDS_TO_CLOSE = 2.0  # for an environment to close by itself


def side_by_side(world: ForeignWorld, num_envs: int, num_workers: int | None = None) -> SideBySide:
    """Return copies of an environment, by default distributed over one worker per available core.

    With 0 workers, or if the environment cannot be created in another process, all copies are in this process.
    """
    if num_envs == 1:
        return Copies([world])
    wanted = min(num_cores() if num_workers is None else num_workers, num_envs)
    if wanted > (num_workers is None) and world.recipe is not None and _can_be_told(world.recipe):
        return Pool(world, world.recipe, num_envs, wanted)
    return Copies([world, *(world.another() for _ in range(num_envs - 1))])


def num_cores() -> int:
    """Return the number of cores this process may use; 1 if the system cannot pass sockets to child processes."""
    if os.name != "posix":
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _can_be_told(recipe: Recipe) -> bool:
    """Return whether the settings survive being written as text and read back, which not all Python objects do."""
    try:
        return bool(ast.literal_eval(repr(recipe.settings)) == recipe.settings)
    except (ValueError, SyntaxError):
        return False


class _Worker(NamedTuple):
    process: subprocess.Popen[bytes]
    channel: socket.socket
    rows: slice  # its part of the rows


class Pool:
    """Copies in worker processes."""

    def __init__(self, world: ForeignWorld, recipe: Recipe, num_envs: int, num_workers: int) -> None:
        """Start the workers and wait until all are ready."""
        self.world, self.num_envs = world, num_envs
        self._id = recipe.id
        self._rows: Rows = np.zeros(num_envs, row_type(world))
        self._actions = action_type(world)
        self._workers: list[_Worker] = []
        self._ending = weakref.finalize(self, _end, self._workers)
        counted = world.counted
        with self._ending_on_failure():
            ends = np.linspace(0, num_envs, num_workers + 1).astype(int).tolist()
            for first, last in itertools.pairwise(ends):
                self._workers.append(_started(slice(first, last)))
            for each in self._workers:
                setup = {"id": recipe.id, "settings": recipe.settings, "num_envs": each.rows.stop - each.rows.start,
                         "by_agent": counted.by_agent, "team": counted.team}  # fmt: skip
                self._send(each, worker.framed(repr(setup)))
            for each in self._workers:
                self._await_ready(each)

    def reset(self, seeds: Sequence[int]) -> Rows:
        """Start an episode with each seed."""
        padded = np.full(self.num_envs, worker.NO_SEED, np.int64)
        padded[: len(seeds)] = seeds
        return self._asked(worker.RESET, padded)

    def step(self, actions: NDArray[Any]) -> Rows:
        """Step every copy whose episode is not over."""
        return self._asked(worker.STEP, np.ascontiguousarray(actions, self._actions.base))

    def close(self) -> None:
        """End the workers."""
        self._ending()

    @property
    def pids(self) -> list[int]:
        """The workers' process ids."""
        return [each.process.pid for each in self._workers]

    def _asked(self, what: bytes, of_each: NDArray[Any]) -> Rows:
        """Send every worker its part of an array, in one message each, and return the rows that all of them send."""
        with self._ending_on_failure():
            for each in self._workers:
                self._send(each, what + of_each[each.rows].tobytes())
            for each in self._workers:
                self._check_answer(each)
                view = self._rows[each.rows].view(np.uint8).data
                if worker.receive_into(each.channel, view) < len(view):
                    raise self._lost(each)
        return self._rows

    @contextmanager
    def _ending_on_failure(self) -> Iterator[None]:
        """End all workers on any failure or interrupt: pending answers would be taken for those to later messages."""
        try:
            yield
        except BaseException as error:
            for each in self._workers:
                each.process.kill()
            self.close()
            if isinstance(error, OSError):
                raise UsageError(f"the processes that play {self._id} cannot be reached: {error}.") from error
            raise

    def _send(self, each: _Worker, message: bytes) -> None:
        try:
            each.channel.sendall(message)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise self._lost(each) from error

    def _await_ready(self, each: _Worker) -> None:
        self._check_answer(each)
        size = worker.receive(each.channel, 4)
        if bytes(size) != struct.pack("<I", self._rows[each.rows].nbytes):
            raise UsageError(
                f"{self._id} is not the same in another process: its observations or actions have another size there."
            )

    def _check_answer(self, each: _Worker) -> None:
        try:
            answer = bytes(worker.receive(each.channel, 1))
        except ConnectionResetError:
            answer = b""
        if answer == worker.FAILED:
            raise UsageError(worker.receive_text(each.channel))
        if answer != worker.DONE:
            raise self._lost(each)

    def _lost(self, each: _Worker) -> UsageError:
        code = each.process.wait()
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        return UsageError(
            f"a process that played {self._id} {how}: if memory ran out, set a smaller --num-envs; `consmarl resume` "
            "continues the run from its last checkpoint."
        )


def _started(rows: slice) -> _Worker:
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(
            [*python_command(), "-m", worker.__name__, str(theirs.fileno())],
            stdin=subprocess.PIPE,  # held open as long as this process lives
            env=os.environ | {"PYTHONPATH": python_path()},
            pass_fds=(theirs.fileno(),),
            process_group=0,  # Ctrl-C reaches only this process, which then finishes its chunk
        )
    return _Worker(process, ours, rows)


def _end(workers: list[_Worker]) -> None:
    """Close the channels, and kill workers that do not exit in time."""
    for each in workers:
        each.channel.close()
    for each in workers:
        try:
            each.process.wait(SECONDS_TO_CLOSE)
        except subprocess.TimeoutExpired:
            each.process.kill()
            each.process.wait()
        if each.process.stdin is not None:
            each.process.stdin.close()
    workers.clear()
