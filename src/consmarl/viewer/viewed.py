"""A run and those of its episodes that a page shows."""

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from consmarl.environments.grid import GridWorld
from consmarl.environments.registry import can_be_drawn, make
from consmarl.errors import UsageError
from consmarl.experiments.configuration.config import TrainConfig
from consmarl.experiments.configuration.pairs import settings_from
from consmarl.experiments.exchanges import RecordedEpisode
from consmarl.reports.runs import Run
from consmarl.sharing.consulting import Consulting
from consmarl.sharing.interface import Sharing
from consmarl.sharing.none import ALONE
from consmarl.sharing.options import Consult


@dataclass(frozen=True)
class Viewed:
    """A run and those of its episodes that a page shows."""

    run: Run
    config: TrainConfig
    episodes: list[RecordedEpisode]
    name: str | None = None  # by default, the page chooses one that distinguishes it from the other run
    consult: Consult | None = None  # how agents consult each other in these episodes
    is_alone: bool = False  # whether the other side of the comparison consults
    pictures: list[list[str]] | None = None  # of each episode, drawn by the environment itself
    dimension: int = 0  # the dimension of actions that is shown
    num_dimensions: int = 1

    def in_dimension(self, dimension: int) -> "Viewed":
        """Return a copy with only this dimension of the actions, since a page shows one."""
        count = self.episodes[0].num_dimensions
        if dimension >= count:
            has = "a single dimension" if count == 1 else f"dimensions 0 to {count - 1}"
            raise UsageError(f"actions in {self.config.env} have {has}: there is no dimension {dimension} to view.")
        if count == 1:
            return self
        shown = [each.in_dimension(dimension) for each in self.episodes]
        return dataclasses.replace(self, episodes=shown, dimension=dimension, num_dimensions=count)

    @cached_property
    def world(self) -> GridWorld[Any, Any, Any] | None:
        """The environment, or None if it cannot be drawn."""
        if not can_be_drawn(self.config.env):
            return None
        world: GridWorld[Any, Any, Any] = make(self.config.env, **settings_from(self.config.set))
        return world

    @cached_property
    def sharing(self) -> Sharing:
        """The sharing mechanism in these episodes."""
        if self.is_alone:
            return ALONE
        return self.config.mechanism if self.consult is None else Consulting(self.consult)
