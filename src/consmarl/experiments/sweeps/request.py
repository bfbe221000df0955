"""A sweep as it is asked for on the command line; light to load, as whatever the command line shows in its help."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

Pairs = Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME=VALUE ...")]


@dataclass(frozen=True)
class SweepRequest:
    """Run methods × worlds × seeds × options, or a study of the paper; what is finished is not run again."""

    study: str | None = None
    """A figure of the paper by name; `consmarl list` shows them."""
    scale: float = 1.0
    """Shorten a study to this part of its episodes, with exploration, start of sharing and budgets."""
    methods: tuple[str, ...] = ()
    """Methods to compare."""
    envs: tuple[str, ...] = ()
    """Worlds to compare them in."""
    seeds: tuple[int, ...] = ()
    """Seeds to run each with; a study brings its own."""
    options: Pairs = ()
    """Settings of all runs, named as in `consmarl train --help`: episodes=4000 share.temperature=0.3."""
    vary: Pairs = ()
    """Settings to run with each of several values: share.temperature=0.1,0.3."""
    set: Pairs = ()
    """Parameters of the worlds, such as num_agents=4 grid=9,9."""
    config: Path | None = None
    """A file with all of these: {"methods": [...], "envs": [...], "seeds": [...], "vary": {...}, "options": {...}}."""
    trust: bool = False
    """Run others' environments that the file names, which are programs; naming them with --envs does the same."""
    out: Path | None = None
    """Directory of the sweep [runs/sweep, or runs/paper and the scale for studies]."""
    workers: int | None = None
    """Runs at once on this machine [as many as there are cores]."""
    ray: str | None = None
    """Run on a Ray cluster instead: its address, or auto."""
    dry_run: bool = False
    """Only print what would be run."""
