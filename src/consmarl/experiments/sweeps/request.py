"""A sweep as requested on the command line; quick to import, since the help of commands needs it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

Pairs = Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME=VALUE ...")]


@dataclass(frozen=True)
class SweepRequest:
    """Run methods × environments × seeds × options, or a study of the paper; finished runs are not repeated."""

    study: str | None = None
    """A figure of the paper, by name; `consmarl list` shows them."""
    scale: float = 1.0
    """Fraction to which a study is shortened: episodes, exploration, start of sharing and budgets."""
    methods: tuple[str, ...] = ()
    """Methods to compare."""
    envs: tuple[str, ...] = ()
    """Environments to compare them in."""
    seeds: tuple[int, ...] = ()
    """Seeds to run each with; a study has its own."""
    options: Pairs = ()
    """Settings of all runs, named as in `consmarl train --help`: episodes=4000 share.temperature=0.3."""
    vary: Pairs = ()
    """Settings to vary, with several values each: share.temperature=0.1,0.3."""
    set: Pairs = ()
    """Parameters of the environments, such as num_agents=4 grid=9,9."""
    config: Path | None = None
    """A file with all of these: {"methods": [...], "envs": [...], "seeds": [...], "vary": {...}, "options": {...}}."""
    trust: bool = False
    """Run third-party environments that the file names, which are programs; naming them with --envs does the same."""
    out: Path | None = None
    """Directory of the sweep [runs/sweep, or runs/paper and the scale for studies]."""
    workers: int | None = None
    """Number of parallel runs on this machine [the number of cores]."""
    ray: str | None = None
    """Run on a Ray cluster instead: its address, or auto."""
    dry_run: bool = False
    """Only print the runs, and report errors that would keep the sweep from starting."""
