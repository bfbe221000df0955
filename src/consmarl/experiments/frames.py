"""Write frames to files: GIF with Pillow, MP4 with the ffmpeg that imageio-ffmpeg ships."""

import contextlib
import functools
import importlib
import itertools
import subprocess
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from consmarl.errors import UsageError

# For GIFs in reports, chosen by eye: text is legible, and an episode of pgm-6ag takes less than 200 kB.
SMALL_SCALE, SMALL_COLOURS = 0.7, 64
FRAMES_FOR_PALETTE = 8

Frame = NDArray[np.uint8]  # [row, column, RGB]


def writer_for(out: Path) -> Callable[[Path, Iterable[Frame], int], None]:
    """Return the function that writes frames to files of this type, .gif or .mp4."""
    suffix = out.suffix.lower()
    if suffix not in (".gif", ".mp4"):
        raise UsageError(f"out must be a file ending in .gif or .mp4, not {str(out)!r}.")
    return write_gif if suffix == ".gif" else functools.partial(write_mp4, _ffmpeg())


def write_gif(path: Path, frames: Iterable[Frame], fps: int) -> None:
    """Write frames as a GIF, each with its own palette."""
    kind, dither = Image.Quantize.FASTOCTREE, Image.Dither.NONE
    _save_gif(path, (Image.fromarray(frame).quantize(method=kind, dither=dither) for frame in frames), fps)


def write_small_gif(path: Path, frames: list[Frame], fps: int) -> None:
    """Write frames as a reduced GIF with one small palette for all frames, so that static parts take no space."""
    some = np.linspace(0, len(frames) - 1, FRAMES_FOR_PALETTE).round().astype(int)
    palette = _small(np.concatenate([frames[number] for number in some])).quantize(
        SMALL_COLOURS, Image.Quantize.FASTOCTREE
    )
    _save_gif(path, (_small(frame).quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames), fps)


def _small(frame: Frame) -> Image.Image:
    height, width = (round(side * SMALL_SCALE) for side in frame.shape[:2])
    return Image.fromarray(frame).resize((width, height), Image.Resampling.BOX)


def _save_gif(path: Path, images: Iterator[Image.Image], fps: int) -> None:
    with path.open("wb") as file:  # Pillow would not close it on an interrupt
        next(images).save(file, "GIF", save_all=True, append_images=images, duration=round(1000 / fps), loop=0)


def _ffmpeg() -> str:
    """Return the path of ffmpeg."""
    try:
        return str(importlib.import_module("imageio_ffmpeg").get_ffmpeg_exe())
    except ImportError as error:
        raise UsageError("MP4 needs imageio-ffmpeg: pip install 'consmarl[video]', or write a .gif.") from error
    except RuntimeError as error:  # on some systems, the package comes without the program
        raise UsageError("MP4 needs ffmpeg, and there is none on this system: install it, or write a .gif.") from error


def write_mp4(program: str, path: Path, frames: Iterable[Frame], fps: int) -> None:
    """Write frames as a video that all browsers and players can show: H.264 in the most common colour format."""
    even = map(_even, frames)
    first = next(even)
    size = f"{first.shape[1]}x{first.shape[0]}"
    # imageio is not used because it forks, which can break JAX's threads, and ignores a failure of ffmpeg at the end
    taken = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", size, "-framerate", str(fps), "-i", "-"]
    given = ["-c:v", "libx264", "-pix_fmt", "yuv420p", "-crf", "18", "-movflags", "+faststart", "-f", "mp4", str(path)]
    command = [program, "-y", "-loglevel", "error", *taken, *given]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # ffmpeg's error output says why
            for frame in itertools.chain([first], even):
                process.stdin.write(frame.tobytes())
        said = process.communicate()[1].decode(errors="replace").strip().splitlines()
    if process.returncode:
        reason = said[-1] if said else f"exit code {process.returncode}"
        raise UsageError(f"ffmpeg could not write the video: {reason.rstrip('.')}.")


def _even(frame: Frame) -> Frame:
    """Pad a frame to even height and width, since the colour format stores one colour per 2 × 2 pixels."""
    height, width, _ = frame.shape
    return np.pad(frame, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
