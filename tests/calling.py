"""Commands in this process: most tests ask what a command does, not how a process starts, and JAX loads for seconds."""

import contextlib
import io
from typing import NamedTuple

from consmarl.cli import main


class Done(NamedTuple):
    """What a command has come to, named as `subprocess` names it."""

    returncode: int
    stdout: str
    stderr: str


def consmarl(*words, cwd="."):
    """Run one command as `consmarl` would, with its output caught."""
    stdout, stderr = io.StringIO(), io.StringIO()
    with contextlib.chdir(cwd), contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
        returncode = main([str(word) for word in words])
    return Done(returncode, stdout.getvalue(), stderr.getvalue())
