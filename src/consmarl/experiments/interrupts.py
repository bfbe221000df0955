"""Ctrl-C, and a cluster's request to end: finish the chunk under way, save, and say how to go on."""

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
    """A run that was asked to stop and has saved itself; the message says how to go on."""


class StopRequest:
    """Whether somebody has asked the run to stop."""

    is_made = False


_heeded: list[StopRequest] = []  # at most one: whoever heeds interrupts inside another heeds the same


@contextmanager
def holding_interrupts() -> Iterator[None]:
    """Hold interrupts back, here and in processes that are started meanwhile, until somebody heeds them.

    An interrupt that strikes while JAX is being imported can crash the interpreter or be lost in an `except`.
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
    """Note the first interrupt, held back or not, and let work go on; the second ends the process at once.

    Python runs its handlers between two of its own instructions, which compiled code may hold up for seconds. A thread
    that listens on the wake-up socket answers meanwhile.
    """
    if _heeded:
        yield _heeded[0]
        return
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():  # only the main thread hears signals
        yield request
        return
    heard, told = socket.socketpair()
    told.setblocking(False)
    listener = threading.Thread(target=_listen, args=(heard, request), daemon=True)
    before = {number: signal.signal(number, lambda *_: None) for number in _SIGNALS}
    wakeup_before = signal.set_wakeup_fd(told.fileno(), warn_on_full_buffer=False)
    listener.start()
    _heeded.append(request)
    if _CAN_BLOCK:  # whoever started this process may have blocked them, as a sweep and Ray do
        for number in signal.sigpending() & set(_SIGNALS):
            signal.sigwait({number})  # taken here, since the listener would take it for a second one
            request.is_made = True
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    try:
        yield request
    finally:
        _heeded.clear()
        signal.set_wakeup_fd(wakeup_before)
        for number, handler in before.items():
            signal.signal(number, handler)
        told.close()  # which the listener takes for the end
        listener.join()
        heard.close()


def _listen(heard: socket.socket, request: StopRequest) -> None:
    while numbers := heard.recv(64):
        for number in numbers:
            if number not in _SIGNALS:
                continue
            if request.is_made:
                os._exit(128 + number)  # nothing is lost: checkpoints are whole or not there
            request.is_made = True
            print("\nstopping after this chunk; once more to stop at once.", file=sys.stderr, flush=True)
