"""A scripted team for Patient Gold Miner, which shows what is possible with agents' own observations and no learning.

Each agent searches for mines along the path that brings most cells into view while there is still time to mine. It goes
to the nearest mine it knows, stays until it has the gold, and searches for the next; when no more gold is possible, it
takes stones. Agents ignore each other.

    python examples/scripted_miner.py --env pgm-3ag --episodes 400 --seed 1    23.69 ± 0.27, 2.83 of 3 pieces of gold
    python examples/scripted_miner.py --env pgm-6ag --episodes 400 --seed 1    176.2 ± 1.3, 11.23 of 12 pieces of gold

(mean team return ± standard error; the script was tuned on seed 0)
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from playing import Ground, main
from searching import Cell


class Miner:
    """Looks for mines, digs until it has the gold, and takes stones when no more gold is possible."""

    def __init__(self, world: Any, index: int) -> None:  # noqa: ARG002
        """Start an episode; all agents follow the same rules, whatever their number."""
        self.world = world
        self.ground = Ground(world)
        self.is_mine = np.zeros(world.grid, bool)  # remembered, since a mine disappears when all agents have emptied it
        self.steps_on = np.zeros(world.grid, int)  # steps that ended on each cell, i.e. time mined or stones taken
        self.path: list[Cell] = []  # rest of the current search path

    def act(self, observation: NDArray[np.float32]) -> int:
        """Return a step towards a known mine or in search of one; if that is hopeless, the same for piles."""
        self.ground.look(observation)
        self.is_mine |= self.ground.cells[..., 1] > 0
        if self.ground.num_steps > 0:
            self.steps_on[self.ground.here] += 1
        goal = self.mine() or self.search_for_mines() or self.pile() or self.search_for_piles()
        return self.ground.towards(goal or self.ground.here)

    def mine(self) -> Cell | None:
        """Return the nearest known mine whose gold this agent can still get in time."""
        steps_to_stay = self.world.mining_steps + 1 - self.steps_on
        steps_until_there = np.maximum(self.ground.distances, 1)  # the step that arrives already counts as mining
        is_in_time = steps_until_there + steps_to_stay - 1 <= self.ground.steps_left
        mine = self.ground.nearest(self.is_mine & (steps_to_stay > 0) & is_in_time)
        if mine:
            self.path = []
        return mine

    def search_for_mines(self) -> Cell | None:
        """Return the next cell of a search for mines; None if all are known or there is no time left to mine."""
        if self.is_mine.sum() == self.world.num_mines:
            return None
        return self.search(self.ground.steps_left - self.world.mining_steps)

    def pile(self) -> Cell | None:
        """Return the nearest known pile with stones left for this agent, if it can be reached in time."""
        has_stones = (self.ground.cells[..., 2] > 0) & (self.steps_on < self.world.stones_per_pile)
        pile = self.ground.nearest(has_stones & (self.ground.distances <= self.ground.steps_left))
        if pile:
            self.path = []
        return pile

    def search_for_piles(self) -> Cell | None:
        """Return the next cell of a search for piles of stones, if any can be found in time."""
        return self.search(self.ground.steps_left)

    def search(self, num_steps: int) -> Cell | None:
        """Return the next cell of the search path, planning a new path if none is left."""
        self.path = self.path or self.ground.plan_search(num_steps)
        return self.path.pop(0) if self.path else None


if __name__ == "__main__":
    main(Miner, "pgm-3ag", "pgm-6ag")
