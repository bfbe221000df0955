"""A scripted team for Find the Treasure: everybody meets, and from then on they move as one.

Agents cannot talk, and a box takes two who open it in the same step. So they agree beforehand on a meeting place in the
middle and on the rules from there on. On one cell all see the same; as soon as the count on it is the whole team, each
forgets what it saw alone and follows the same rules on the same memory. No two then ever decide differently.

    python examples/scripted_treasure.py --episodes 400 --seed 1    8.73 ± 0.21, treasure in 98 % of episodes

(mean team return ± standard error; written with seed 0 in view). Finding every coin and the treasure, red boxes in
random order, would bring 15 − 7 + 3 − 2 = 9 on average.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from playing import Ground, main
from searching import Cell

OPEN, PICK = 5, 6
YELLOW, RED = 0.5, 1.0  # how closed boxes look
TREASURE = 1.0  # how it looks once uncovered
AGENTS, BOXES, ITEMS = range(3)  # channels of a cell


class Seeker:
    """Meets the others in the middle, then does what they do: all see the same and follow the same rules."""

    def __init__(self, world: Any, index: int) -> None:  # noqa: ARG002
        """Begin an episode; all agents play alike, whatever their number."""
        self.world = world
        self.ground = Ground(world)
        self.meeting_place = (world.grid[0] - 1) // 2, (world.grid[1] - 1) // 2
        self.have_met = False
        self.has_treasure = False
        self.path: list[Cell] = []  # of a search under way

    def act(self, observation: NDArray[np.float32]) -> int:
        """Go to the meeting place, and from there on as one."""
        self.ground.look(observation)
        if not self.have_met:
            self.have_met = self.is_complete()
            if not self.have_met:
                return self.ground.towards(self.meeting_place)
            # what each saw on its way is not known to the others, who could not follow
            self.ground = Ground(self.world)
            self.ground.look(observation)
        return self.act_as_one()

    def is_complete(self) -> bool:
        """Tell whether the whole team is on this cell; the counts are shares of the team."""
        return bool(np.isclose(self.ground.cells[self.ground.here][AGENTS], 1))

    def act_as_one(self) -> int:
        """Take what lies here, open what stands here, else walk to the next box."""
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
        """Return the nearest box worth opening, if there is time to open it and to pick up what it holds.

        A yellow box always pays: a coin of 2 for 1. A red one pays until the treasure is found: even the first of six
        is worth 15 / 6 − 2 on average, and each that was empty makes the next a better bet.
        """
        boxes, ground = self.ground.cells[..., BOXES], self.ground
        pays = (boxes == YELLOW) | ((boxes == RED) & (not self.has_treasure))
        return ground.nearest(pays & (ground.distances + 2 <= ground.steps_left))


if __name__ == "__main__":
    main(Seeker, "ft")
