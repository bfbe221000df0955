"""Handle Ctrl-C and SIGTERM: a run finishes the current chunk, saves its state, and says how to continue."""

import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_CAN_BLOCK = hasattr(signal, "pthread_sigmask")


class InterruptedRun(KeyboardInterrupt):
    """A run that was asked to stop and has saved its state; the message says how to continue."""


class StopRequest:
    """Whether the run has been asked to stop."""

    is_made = False


_heeded: list[StopRequest] = []  # at most one: nested handlers share it


@contextmanager
def holding_interrupts() -> Iterator[None]:
    """Block interrupts in this process, and in child processes started in the block until they unblock them.

    An interrupt while JAX is being imported can crash the interpreter or be swallowed by an `except`.
    """
    if not _CAN_BLOCK:
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def heeding_interrupts() -> Iterator[StopRequest]:
    """Yield a request that records the first interrupt, even one blocked earlier; the second ends the process at once.

    Python runs signal handlers between bytecode instructions, which compiled code may delay for seconds. So a thread
    that listens on the wake-up socket handles the signals.
    """
    if _heeded:
        yield _heeded[0]
        return
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():  # only the main thread receives signals
        yield request
        return
    heard, told = socket.socketpair()
    told.setblocking(False)
    listener = threading.Thread(target=_listen, args=(heard, request), daemon=True)
    before = {number: signal.signal(number, lambda *_: None) for number in _SIGNALS}
    wakeup_before = signal.set_wakeup_fd(told.fileno(), warn_on_full_buffer=False)
    listener.start()
    _heeded.append(request)
    if _CAN_BLOCK:  # the parent process may have blocked them, as a sweep and Ray do
        for number in signal.sigpending() & set(_SIGNALS):
            signal.sigwait({number})  # consumed here, or the listener would count it a second time
            request.is_made = True
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    try:
        yield request
    finally:
        _heeded.clear()
        signal.set_wakeup_fd(wakeup_before)
        for number, handler in before.items():
            signal.signal(number, handler)
        told.close()  # ends the listener
        listener.join()
        heard.close()


def _listen(heard: socket.socket, request: StopRequest) -> None:
    while numbers := heard.recv(64):
        for number in numbers:
            if number not in _SIGNALS:
                continue
            if request.is_made:
                os._exit(128 + number)  # nothing is lost: checkpoints are written atomically
            request.is_made = True
            print("\nstopping after this chunk; interrupt again to stop at once.", file=sys.stderr, flush=True)
