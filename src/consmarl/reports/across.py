"""What curves are drawn over."""

import enum


class Across(enum.Enum):
    """What the axis of a curve counts."""

    EPISODES = "episodes"
    STEPS = "steps"
    TIME = "time"


TITLES = {Across.EPISODES: "episode", Across.STEPS: "environment steps", Across.TIME: "training time"}
CHOICES = {Across.EPISODES: "Episodes", Across.STEPS: "Steps", Across.TIME: "Time"}  # as buttons call them
