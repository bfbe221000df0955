"""The quantities that the x-axis of a curve can show."""

import enum


class Across(enum.Enum):
    """The quantity on a curve's x-axis."""

    EPISODES = "episodes"
    STEPS = "steps"
    TIME = "time"


TITLES = {Across.EPISODES: "episode", Across.STEPS: "environment steps", Across.TIME: "training time"}
CHOICES = {Across.EPISODES: "Episodes", Across.STEPS: "Steps", Across.TIME: "Time"}  # button labels
