"""The message at the end of a run: its final return, and useful next commands."""

import shlex
from collections.abc import Iterator
from pathlib import Path

from consmarl.environments.foreign import confirmation, is_foreign
from consmarl.environments.packages import is_of_package
from consmarl.environments.registry import can_be_drawn
from consmarl.experiments.directory import read_config
from consmarl.experiments.exchanges import recorded_numbers
from consmarl.files import RESULT
from consmarl.json_files import read_json_object
from consmarl.plugins import OPTION, in_use


def ending(run: Path) -> str:
    """Return the final message of a finished run."""
    lines = [f"finished {run}: {_reached(run)}", "next:", *(f"  {command}" for command in _next_commands(run))]
    return "\n".join(lines)


def _reached(run: Path) -> str:
    result = read_json_object(run / RESULT)
    return (
        f"team return {result['return']:.3f} ± {result['return_error']:.3f} "
        f"(mean and standard error of {result['episodes_evaluated']:,} greedy episodes)"
    )


def _next_commands(run: Path) -> Iterator[str]:
    place, env = shlex.quote(str(run)), read_config(run).env
    consmarl = " ".join(["consmarl", *(f"{OPTION} {shlex.quote(each)}" for each in in_use())])
    yield f"{consmarl} evaluate {place}{confirmation(env)}"
    if can_be_drawn(env) or is_of_package(env) or is_foreign(env):
        yield f"{consmarl} watch {place}{confirmation(env)}"
    if recorded_numbers(run):
        yield f"{consmarl} view {place}"
    yield f"{consmarl} report {place}"
