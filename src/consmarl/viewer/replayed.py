"""Draw recorded episodes of environments that step in Python, by playing them again.

A record holds the agents' actions, and the run's seed determines the episode's start. So pictures can be made when a
page is written, and cost neither time in training nor space in records. This runs the environment, which is a program,
so it requires the user's consent.
"""

import base64
import io
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from rich.console import Console

from consmarl.environments.film import Film, rendering_world
from consmarl.experiments.configuration.config import TrainConfig
from consmarl.experiments.configuration.pairs import settings_from
from consmarl.experiments.exchanges import RecordedEpisode
from consmarl.training.python_loop import episode_seed

SIDE = 320  # pixels of a picture's longer side
COLOURS = 128


def pictures_of(config: TrainConfig, episodes: Sequence[RecordedEpisode]) -> list[list[str]]:
    """Return each episode's pictures as data URLs: one before each step and one at the end.

    The list of an episode is empty if the environment draws no pictures or does not play the episode as recorded.
    """
    film = Film(rendering_world(config.env, **settings_from(config.set)))
    pictures = [_replayed(film, config, each) for each in episodes]
    film.close()
    return pictures


def _replayed(film: Film, config: TrainConfig, recorded: RecordedEpisode) -> list[str]:
    film.reset([episode_seed(config.seed, config.round_episodes, recorded.episode)])
    for actions, rewards in zip(recorded.steps["action"], recorded.steps["rewards"], strict=True):
        rows = film.step(np.asarray(actions)[None])
        if not np.array_equal(rows["rewards"][0], rewards):
            Console(stderr=True, soft_wrap=True).print(
                f"{config.env} does not play episode {recorded.episode} as it was recorded, so there are no pictures "
                "of it: it is another version, or its seed does not decide everything.", markup=False,
            )  # fmt: skip
            return []
    return [_as_url(picture) for picture in film.pictures if picture is not None]


def _as_url(picture: NDArray[np.uint8]) -> str:
    return _encoded(picture.shape, picture.tobytes())


@lru_cache(maxsize=64)
def _encoded(shape: tuple[int, ...], pixels: bytes) -> str:
    """Return a picture as the data URL of a small PNG; cached, since many pictures of an episode may be the same."""
    image: Any = Image.fromarray(np.frombuffer(pixels, np.uint8).reshape(shape))
    image.thumbnail((SIDE, SIDE))
    file = io.BytesIO()
    image.quantize(COLOURS).save(file, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode("ascii")
