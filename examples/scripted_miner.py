"""A scripted team for Patient Gold Miner."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from playing import Ground, main
from searching import Cell


class Miner:
    """Looks for mines, digs until it has the gold, and takes stones when no more gold is possible."""

    def __init__(self, world: Any, index: int) -> None:  # noqa: ARG002
        """Begin an episode; all agents play alike, whatever their number."""
        self.world = world
        self.ground = Ground(world)
        self.is_mine = np.zeros(world.grid, bool)  # kept, because a mine that everybody has emptied vanishes
        self.steps_on = np.zeros(world.grid, int)  # how many steps ended on each cell: what has been mined or taken
        self.path: list[Cell] = []  # of a search under way

    def act(self, observation: NDArray[np.float32]) -> int:
        """Take a step towards gold, or what may lead to it, or else stones."""
        self.ground.look(observation)
        self.is_mine |= self.ground.cells[..., 1] > 0
        if self.ground.num_steps > 0:
            self.steps_on[self.ground.here] += 1
        goal = self.mine() or self.search_for_mines() or self.pile() or self.search_for_piles()
        return self.ground.towards(goal or self.ground.here)

    def mine(self) -> Cell | None:
        """Return the nearest known mine whose gold can still be had."""
        steps_to_stay = self.world.mining_steps + 1 - self.steps_on
        steps_until_there = np.maximum(self.ground.distances, 1)  # and in this step one has already mined
        is_in_time = steps_until_there + steps_to_stay - 1 <= self.ground.steps_left
        mine = self.ground.nearest(self.is_mine & (steps_to_stay > 0) & is_in_time)
        if mine:
            self.path = []
        return mine

    def search_for_mines(self) -> Cell | None:
        """Return the next cell of a search, if there is a mine to be found in time."""
        if self.is_mine.sum() == self.world.num_mines:
            return None
        return self.search(self.ground.steps_left - self.world.mining_steps)

    def pile(self) -> Cell | None:
        """Return the nearest known pile with stones for this agent."""
        has_stones = (self.ground.cells[..., 2] > 0) & (self.steps_on < self.world.stones_per_pile)
        pile = self.ground.nearest(has_stones & (self.ground.distances <= self.ground.steps_left))
        if pile:
            self.path = []
        return pile

    def search_for_piles(self) -> Cell | None:
        """Return the next cell of a search for at least one more stone."""
        return self.search(self.ground.steps_left)

    def search(self, num_steps: int) -> Cell | None:
        """Return the next cell of the path, planning one where none is left."""
        self.path = self.path or self.ground.plan_search(num_steps)
        return self.path.pop(0) if self.path else None


if __name__ == "__main__":
    main(Miner, "pgm-3ag", "pgm-6ag")
