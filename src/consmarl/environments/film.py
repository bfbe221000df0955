"""A single environment that steps in Python, with the pictures that it renders during an episode."""

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from consmarl.environments.copies import Copies, Rows
from consmarl.environments.foreign import ForeignWorld, foreign_world
from consmarl.errors import UsageError

RGB_ARRAY = {"render_mode": "rgb_array"}


def rendering_world(id: str, /, **settings: Any) -> ForeignWorld:
    """Return the environment named by an id, in render mode `rgb_array` if it has that mode."""
    try:
        return foreign_world(id, **(RGB_ARRAY | settings))
    except UsageError:  # it may not have render modes; any other problem is raised again here
        return foreign_world(id, **settings)


class Film(Copies):
    """A copy that keeps its pictures, one of the start and one after each step; None if it cannot draw."""

    def __init__(self, world: ForeignWorld) -> None:
        """Take the environment."""
        super().__init__([world])
        self.pictures: list[NDArray[np.uint8] | None] = []
        self._can_draw = getattr(world.env, "render_mode", None) == RGB_ARRAY["render_mode"]

    def reset(self, seeds: Sequence[int]) -> Rows:
        """Start an episode and its list of pictures."""
        rows = super().reset(seeds)
        self.pictures = [self._picture()]
        return rows

    def step(self, actions: NDArray[Any]) -> Rows:
        """Step and keep the new picture."""
        rows = super().step(actions)
        self.pictures.append(self._picture())
        return rows

    def _picture(self) -> NDArray[np.uint8] | None:
        if not self._can_draw:
            return None
        try:
            made = np.asarray(self.world.env.render())
        except Exception as error:  # noqa: BLE001 - many need a screen, and raise different errors without one
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:200].rstrip(".: ")
            made = np.zeros(0)
        else:
            reason = f"its picture is of {made.dtype}{list(made.shape)}"
        if made.dtype == np.uint8 and made.ndim == 3 and made.shape[2] in (3, 4):
            return np.ascontiguousarray(made[:, :, :3])
        self._can_draw = False
        print(
            f"{self.world.id} cannot draw itself here ({reason}), so its agents are shown in a ring: environments that "
            "need a screen can be given one by xvfb-run.",
            file=sys.stderr,
        )
        return None
