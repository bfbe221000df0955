"""Pictures of Patient Gold Miner: mines and piles, and each agent's progress with them."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from consmarl.environments.draw.agents import agent_colour
from consmarl.environments.draw.canvas import Box, Canvas, Colour
from consmarl.environments.draw.painter import CellBox, Gauge, Icon, Painter
from consmarl.environments.gold_miner import GoldMiner, GoldMinerState

GOLD: Colour = (242, 183, 5)
ROCK: Colour = (92, 78, 60)
STONE: Colour = (150, 154, 160)
STONE_EDGE: Colour = (96, 100, 107)


def draw_mine(canvas: Canvas, box: Box) -> None:
    """Draw a dark hill with gold in it."""
    hill = [(0.04, 0.92), (0.24, 0.34), (0.46, 0.1), (0.72, 0.3), (0.96, 0.92)]
    corners = [box.part(x, y, x, y)[:2] for x, y in hill]
    canvas.polygon(corners, ROCK)
    for x, y, size in ((0.3, 0.62, 0.2), (0.52, 0.36, 0.18), (0.62, 0.68, 0.22)):
        nugget = [(x, y), (x + size / 2, y - size / 2), (x + size, y), (x + size / 2, y + size / 2)]
        canvas.polygon([box.part(a, b, a, b)[:2] for a, b in nugget], GOLD)


def draw_pile(canvas: Canvas, box: Box) -> None:
    """Draw three stones."""
    for left, top in ((0.06, 0.46), (0.5, 0.46), (0.28, 0.12)):
        canvas.disc(box.part(left, top, left + 0.44, top + 0.42), STONE, STONE_EDGE)


class GoldMinerPainter(Painter):
    """Draws the PGM environments."""

    def paint_board(self, canvas: Canvas, world: GoldMiner, state: GoldMinerState, cell_box: CellBox) -> None:
        """Draw the remaining mines and piles, each with one bar per agent along its bottom."""
        mined = np.asarray(state.steps_mined) / max(world.mining_steps, 1)
        has_gold = np.asarray(state.gold_mined)
        for mine, is_gone in enumerate(np.asarray(world.mine_is_gone(state))):
            if not is_gone:
                box = cell_box(*state.golds[mine])
                draw_mine(canvas, box.part(0.04, 0.0, 0.96, 0.8))
                self._bars(canvas, box, np.where(has_gold[:, mine], 1.0, mined[:, mine] * 0.9))
        taken = np.asarray(state.stones_taken) / world.stones_per_pile
        for pile, is_gone in enumerate(np.asarray(world.pile_is_gone(state))):
            if not is_gone:
                box = cell_box(*state.stones[pile])
                draw_pile(canvas, box.part(0.1, 0.02, 0.9, 0.82))
                self._bars(canvas, box, taken[:, pile])

    @staticmethod
    def _bars(canvas: Canvas, box: Box, shares: NDArray[np.floating]) -> None:
        width = 0.92 / len(shares)
        for agent, share in enumerate(shares.tolist()):
            if share > 0:
                left = 0.04 + agent * width
                bar = box.part(left, 0.98 - 0.24 * share, left + width * 0.86, 0.98)
                canvas.rectangle(bar, fill=agent_colour(agent))

    def landmarks(self, world: GoldMiner, state: GoldMinerState) -> set[tuple[int, int]]:
        """Return the cells of mines and piles."""
        del world
        return {(int(row), int(column)) for row, column in np.concatenate([state.golds, state.stones])}

    def gauge_heads(self, world: GoldMiner) -> Sequence[Icon]:
        """Return one icon for each mine and pile."""
        return [draw_mine] * world.num_mines + [draw_pile] * world.num_piles

    def gauges(self, world: GoldMiner, state: GoldMinerState, agent: int) -> Sequence[Gauge]:
        """Return one gauge per mine, for the steps paid (golden once mined), and one per pile, for its stones."""
        paid = np.asarray(state.steps_mined)[agent] / max(world.mining_steps, 1)
        stones = np.asarray(state.stones_taken)[agent] / world.stones_per_pile
        mines = [
            Gauge(GOLD, 1.0, is_complete=True) if has_gold else Gauge(ROCK, float(share) * 0.9)
            for has_gold, share in zip(state.gold_mined[agent], paid, strict=True)
        ]
        return [*mines, *(Gauge(STONE, float(share), is_complete=bool(share == 1)) for share in stones)]

    def team_lines(self, world: GoldMiner, state: GoldMinerState) -> Sequence[str]:
        """Return the gold and stones of all agents."""
        all_gold, all_stones = world.num_agents * world.num_mines, world.num_agents * world.num_piles
        stones = int(state.stones_taken.sum())
        return [
            f"gold {int(state.gold_mined.sum())} of {all_gold}",
            f"stones {stones} of {all_stones * world.stones_per_pile}",
        ]

    def legend(self, world: GoldMiner) -> Sequence[tuple[Icon, str]]:
        """Return the icons with their meanings."""
        return [
            (draw_mine, f"gold mine: {world.mining_steps} steps to pay, then gold"),
            (draw_pile, "stone pile"),
        ]
