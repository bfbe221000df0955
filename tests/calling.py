"""Run commands in this process: most tests check what a command does, and a new process loads JAX for seconds."""

import contextlib
import io
from typing import NamedTuple

from consmarl.cli import main


class Done(NamedTuple):
    """The outcome of a command, with the field names of `subprocess`."""

    returncode: int
    stdout: str
    stderr: str


def consmarl(*words, cwd="."):
    """Run one command as `consmarl` would, and capture its output."""
    stdout, stderr = io.StringIO(), io.StringIO()
    with contextlib.chdir(cwd), contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
        returncode = main([str(word) for word in words])
    return Done(returncode, stdout.getvalue(), stderr.getvalue())
