"""Draw the pictures of the documentation from recorded episodes: `.venv/bin/python docs/make_pictures.py`."""

from pathlib import Path

import numpy as np
from PIL import Image

import consmarl

DOCS = Path(__file__).parent
TRACES = DOCS.parent / "tests" / "parity" / "data"
MINER, BOXES = ("agents", "golds", "stones"), ("agents", "yellow", "red", "treasure")
# world, parts of its layout, recorded episode, step at which something is to be seen
SCENES = (("pgm-6ag", MINER, 2, 41), ("pgm-3ag", MINER, 1, 20), ("ft", BOXES, 5, 25), ("cleanup", (), 1, 31))


def picture(id: str, parts: tuple[str, ...], episode: int, num_steps: int) -> Image.Image:
    """Return one moment of a recorded episode."""
    trace = {name: rows[episode] for name, rows in np.load(TRACES / f"{id}.npz").items()}
    env = consmarl.parallel_env(id, render_mode="rgb_array")
    layout = {"layout": {part: trace[part] for part in parts}}
    env.reset(options=layout if parts else {"draws": {name: trace[name] for name in ("order", "spawned")}})
    for actions in trace["actions"][:num_steps]:
        env.step(dict(zip(env.agents, actions, strict=True)))
    return Image.fromarray(env.render())


def main() -> None:
    """Write a picture for each scene, and all of them on one."""
    pictures = []
    for scene in SCENES:
        pictures.append(picture(*scene))
        pictures[-1].save(DOCS / "images" / f"{scene[0]}.png", optimize=True)
    width, height = (max(sizes) for sizes in zip(*(each.size for each in pictures), strict=True))
    together = Image.new("RGB", (2 * width, 2 * height), pictures[0].getpixel((0, 0)))
    for place, each in enumerate(pictures):
        together.paste(each, (place % 2 * width, place // 2 * height))
    together.save(DOCS / "images" / "worlds.png", optimize=True)


if __name__ == "__main__":
    main()
