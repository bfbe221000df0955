"""Code shared by the scripts that make runs."""

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import consmarl


def sweep(methods: Sequence[str], envs: Sequence[str], seeds: Sequence[int], **options: Any) -> None:
    """Execute the missing runs of a sweep; exit if it was interrupted, since a script's next sweep would go on."""
    states = consmarl.sweep(methods, envs, seeds, **options).states
    if states["stopped"] or states["waiting"]:
        sys.exit(130)


def batches(seeds: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    """Divide seeds into those that run at the same time."""
    return (seeds[at : at + size] for at in range(0, len(seeds), size))
