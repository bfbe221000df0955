"""A scripted team for Find the Treasure: all agents meet, and from then on they move as one.

Agents cannot communicate, and two of them have to open a box in the same step. So they agree beforehand on a meeting
place in the middle and on rules for the time after. On the same cell, all agents see the same; as soon as the whole
team is there, each forgets what it saw before and follows the same rules with the same memory. So all agents always
decide alike.

    python examples/scripted_treasure.py --episodes 400 --seed 1    8.73 ± 0.21, treasure in 98 % of episodes

(mean team return ± standard error; the script was developed on seed 0). Finding every coin and the treasure, with red
boxes opened in random order, would give 15 − 7 + 3 − 2 = 9 on average.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from playing import Ground, main
from searching import Cell

OPEN, PICK = 5, 6
YELLOW, RED = 0.5, 1.0  # values of closed boxes in observations
TREASURE = 1.0  # value of the uncovered treasure
AGENTS, BOXES, ITEMS = range(3)  # channels of a cell


class Seeker:
    """Meets the others in the middle, then acts like them: all see the same and follow the same rules."""

    def __init__(self, world: Any, index: int) -> None:  # noqa: ARG002
        """Start an episode; all agents follow the same rules, whatever their number."""
        self.world = world
        self.ground = Ground(world)
        self.meeting_place = (world.grid[0] - 1) // 2, (world.grid[1] - 1) // 2
        self.have_met = False
        self.has_treasure = False
        self.path: list[Cell] = []  # rest of the current search path

    def act(self, observation: NDArray[np.float32]) -> int:
        """Return a step towards the meeting place or, once the team has met, the action that all agents take."""
        self.ground.look(observation)
        if not self.have_met:
            self.have_met = self.is_complete()
            if not self.have_met:
                return self.ground.towards(self.meeting_place)
            # forget cells seen on the way here, which the others do not know
            self.ground = Ground(self.world)
            self.ground.look(observation)
        return self.act_as_one()

    def is_complete(self) -> bool:
        """Return whether the whole team is on this cell; observations contain the share of the team on each cell."""
        return bool(np.isclose(self.ground.cells[self.ground.here][AGENTS], 1))

    def act_as_one(self) -> int:
        """Pick up the item on this cell, open the box on it, or walk to the next box or search for one."""
        ground = self.ground
        item = ground.cells[ground.here][ITEMS]
        if item > 0:
            self.has_treasure |= bool(item == TREASURE)
            return PICK
        goal = self.next_box()
        if goal == ground.here:
            return OPEN
        if goal:
            self.path = []
        else:
            self.path = self.path or ground.plan_search(ground.steps_left)
            goal = self.path.pop(0) if self.path else ground.here
        return ground.towards(goal)

    def next_box(self) -> Cell | None:
        """Return the nearest box worth opening, if there is time to open it and to pick up its contents.

        A yellow box always pays: a coin of 2 for a cost of 1. A red one pays until the treasure is found: even the
        first of six is worth 15 / 6 − 2 on average, and every empty one increases the value of the next.
        """
        boxes, ground = self.ground.cells[..., BOXES], self.ground
        pays = (boxes == YELLOW) | ((boxes == RED) & (not self.has_treasure))
        return ground.nearest(pays & (ground.distances + 2 <= ground.steps_left))


if __name__ == "__main__":
    main(Seeker, "ft")
