"""A worker process, which plays some of a pool's copies. It does not use JAX, and ends when its parent process does.

Messages are bytes of fixed types (`copies.row_type`, `copies.action_type`), except for the first one, a text that
describes the environment, and failures, which are error messages.
"""

import ast
import os
import signal
import socket
import struct
import sys
import threading
import traceback
from typing import Any

import numpy as np

from consmarl.environments.copies import Copies, action_type
from consmarl.environments.foreign import foreign_world
from consmarl.environments.infos import Counted
from consmarl.errors import UsageError

RESET, STEP, DONE, FAILED = b"R", b"S", b"D", b"F"
NO_SEED = -1
LONGEST = 500  # characters of an environment's own error message


def receive(channel: socket.socket, count: int) -> bytearray:
    """Return `count` bytes; fewer if the other side has closed the connection."""
    data = bytearray(count)
    return data[: receive_into(channel, memoryview(data))]


def receive_into(channel: socket.socket, view: memoryview) -> int:
    """Fill a buffer; return the number of bytes received, fewer if the other side has closed the connection."""
    filled = 0
    while filled < len(view) and (num_new := channel.recv_into(view[filled:])):
        filled += num_new
    return filled


def framed(text: str) -> bytes:
    """Return a text as bytes, preceded by its length."""
    data = text.encode(errors="replace")
    return struct.pack("<I", len(data)) + data


def receive_text(channel: socket.socket) -> str:
    """Return a text sent by `framed`; an empty one if the other side has closed the connection."""
    head = receive(channel, 4)
    return receive(channel, struct.unpack("<I", head)[0]).decode() if len(head) == 4 else ""


def main() -> None:
    """Play until the parent closes the connection."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process handles interrupts
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with socket.socket(fileno=int(sys.argv[1])) as channel:
        setup = receive_text(channel)
        if setup:
            _play(channel, ast.literal_eval(setup))


def _end_with_parent() -> None:
    """Exit when standard input closes, which the parent holds open as long as it lives."""
    os.read(0, 1)
    os._exit(1)


def _play(channel: socket.socket, setup: dict[str, Any]) -> None:
    copies = None
    try:
        copies = _copies(setup)
        channel.sendall(DONE + struct.pack("<I", copies.rows.nbytes))
        while message := receive(channel, 1):
            if message == RESET:
                seeds = np.frombuffer(receive(channel, 8 * copies.num_envs), np.int64)
                rows = copies.reset([seed for seed in seeds.tolist() if seed != NO_SEED])
            else:
                kind = action_type(copies.world)
                data = receive(channel, kind.itemsize * copies.num_envs)
                rows = copies.step(np.frombuffer(data, kind.base).reshape(copies.num_envs, *kind.shape))
            channel.sendall(DONE + rows.tobytes())
    except Exception as error:  # noqa: BLE001 - any exception of an environment is reported to the user
        _tell(channel, setup["id"], error)
    finally:
        if copies is not None:
            copies.close()


def _copies(setup: dict[str, Any]) -> Copies:
    """Create copies of the environment that the parent has created before, with the user's consent."""
    worlds = [foreign_world(setup["id"], **setup["settings"]) for _ in range(setup["num_envs"])]
    for world in worlds:
        world.counted = Counted(setup["by_agent"], setup["team"])
    return Copies(worlds)


def _tell(channel: socket.socket, id: str, error: Exception) -> None:
    try:
        channel.sendall(FAILED + framed(sentence(id, error)))
    except OSError:  # the parent has gone
        return


def sentence(id: str, error: Exception) -> str:
    """Return an error message about an environment's exception."""
    if isinstance(error, UsageError):
        return str(error)
    text = " ".join(f"{type(error).__name__}: {error}".split())[:LONGEST].rstrip(".: ")
    at = traceback.extract_tb(error.__traceback__)[-1]
    return f"{id} failed with {text} (in {at.filename}, line {at.lineno}): --num-envs 1 shows the whole traceback."


if __name__ == "__main__":
    main()
