"""Embed episodes of learned policies in the page, one animation per group."""

import base64
import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from PIL import Image

from consmarl.errors import UsageError
from consmarl.files import POLICY_GIF
from consmarl.reports.finals import Final, final
from consmarl.reports.runs import Group, Run, shown_run

MOST_PIXELS = 4_000_000  # about a hundred times the size of our pictures


class Picture(NamedTuple):
    """An animation of a policy."""

    world: str
    label: str
    seed: int
    final: Final | None
    num_seeds: int
    is_median: bool
    moving: str  # data URI of the animation
    still: str  # data URI of its first frame
    width: int
    height: int


def pictures(groups: Sequence[Group]) -> list[Picture]:
    """Return a picture for each group that has one."""
    return [picture for group in groups if (picture := _picture(group)) is not None]


def candidates(group: Group) -> list[Run]:
    """Return the runs that may represent their group, in order of preference: the median, then those closest to it."""
    middle = shown_run(group)
    reached = {id(run): each.value for run in group.runs if (each := final(run)) is not None}
    if middle is None:
        return [run for run in group.runs if id(run) in reached] or list(group.runs)
    target = reached[id(middle)]
    return sorted(group.runs, key=lambda run: (run is not middle, abs(reached.get(id(run), math.inf) - target)))


def _picture(group: Group) -> Picture | None:
    for run in candidates(group):
        if (run.path / POLICY_GIF).is_file():
            moving = (run.path / POLICY_GIF).read_bytes()
            still, (width, height) = _first_frame(moving, run.path / POLICY_GIF)
            is_median = run is shown_run(group) and len(group.runs) > 1
            return Picture(
                group.world, group.label, run.seed, final(run), len(group.runs), is_median,
                _data_uri("image/gif", moving), _data_uri("image/png", still), width, height,
            )  # fmt: skip
    return None


def _first_frame(moving: bytes, path: Path) -> tuple[bytes, tuple[int, int]]:
    """Return the first frame as PNG and its size; only GIFs of a reasonable size are decoded."""
    try:
        # no other formats, since Pillow runs other programs for some of them
        with Image.open(io.BytesIO(moving), formats=("GIF",)) as picture:
            if picture.width * picture.height > MOST_PIXELS:
                raise UsageError(f"{path} is too large for a report: delete it or write it again.")
            written = io.BytesIO()
            picture.convert("RGB").quantize().save(written, "PNG", optimize=True)
            return written.getvalue(), picture.size
    except (OSError, EOFError, SyntaxError, Image.DecompressionBombError) as error:
        raise UsageError(f"{path} is not a picture: delete it or write it again.") from error


def _data_uri(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"
