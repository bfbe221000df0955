"""Resolve moves when only one agent fits into a cell (Cleanup).

The rules are those of the sequential social dilemma games that Cleanup comes from. First, every cell that several
agents want goes to the one with the highest priority, unless the cell cannot become free; then all of them stay where
they are. The remaining moves are made one by one, in rounds, and moves into an agent that stays are dropped.
In those games a winner enters before the occupant has left. If the occupant is then blocked elsewhere, both end on one
cell (2 of 40,000 random Cleanup episodes). Here the agent that entered goes back, so no two agents share a cell.

Cells are given as numbers. Axes: `[agent]`.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp


class Moves(NamedTuple):
    """Partially resolved moves."""

    cells: jax.Array  # int32 [agent], where each agent stands
    targets: jax.Array  # int32 [agent], where each agent wants to be
    is_pending: jax.Array  # bool [agent], whose move is not resolved yet


def resolve_moves(cells: jax.Array, targets: jax.Array, takes_part: jax.Array, priority: jax.Array) -> jax.Array:
    """Return the cells that the agents end up on: int32 [agent].

    An agent with `takes_part` False (it fires its beam) stays and, unlike one that chooses to stay, never competes
    for its own cell. Among the competitors for a cell, the one with the smallest priority number wins.
    """
    moves = Moves(cells, jnp.where(takes_part, targets, cells), takes_part)
    moves = _settle_contested_cells(moves, priority)
    return _send_intruders_back(cells, _make_remaining_moves(moves).cells)


def _settle_contested_cells(moves: Moves, priority: jax.Array) -> Moves:
    """Give each contested cell to one competitor, cell by cell in row-major order."""
    wanted, takes_part = moves.targets, moves.is_pending
    num_agents = len(wanted)
    competes = (wanted[:, None] == wanted[None, :]) & takes_part[:, None] & takes_part[None, :]
    is_contested = competes.sum(axis=1) > 1
    is_spokesman = is_contested & (jnp.argmax(competes, axis=1) == jnp.arange(num_agents))
    by_cell = jnp.argsort(wanted)

    def settle(rank: jax.Array, moves: Moves) -> Moves:
        spokesman = by_cell[rank]
        cell, rivals = wanted[spokesman], competes[spokesman]
        stands_there = moves.cells == cell
        stays = (moves.targets == moves.cells) | ~takes_part
        goes_to = jnp.sum(jnp.where(stands_there, moves.targets, 0))
        would_swap = rivals & (moves.cells == goes_to)
        is_blocked = stands_there.any() & ((stands_there & (rivals | stays)).any() | would_swap.any())
        winner = jnp.argmin(jnp.where(rivals, priority, jnp.inf))
        enters = rivals & (jnp.arange(num_agents) == winner) & ~is_blocked
        stand = jnp.where(enters, cell, moves.cells)
        settled = moves._replace(cells=stand, targets=jnp.where(rivals, stand, moves.targets))
        return jax.tree.map(lambda new, old: jnp.where(is_spokesman[spokesman], new, old), settled, moves)

    return jax.lax.fori_loop(0, num_agents, settle, moves)


def _make_remaining_moves(moves: Moves) -> Moves:
    """Make the uncontested moves in rounds; if a round changes nothing, the rest form rings, which move together."""

    def turn(agent: jax.Array, moves: Moves) -> Moves:
        target = moves.targets[agent]
        stands_there = moves.cells == target
        is_free = ~stands_there.any()
        occupant = jnp.argmax(stands_there)
        occupant_stays = ~moves.is_pending[occupant] | (moves.targets[occupant] == moves.cells[occupant])
        would_swap = moves.targets[occupant] == moves.cells[agent]
        is_hopeless = ~is_free & (occupant_stays | would_swap)  # an occupant that is the agent itself stays

        acts = moves.is_pending[agent]
        everyone = jnp.arange(len(moves.cells))
        enters = (everyone == agent) & acts & is_free
        settles = (everyone == agent) & acts & (is_free | is_hopeless)
        settles |= (everyone == occupant) & acts & ~is_free & would_swap
        return moves._replace(cells=jnp.where(enters, target, moves.cells), is_pending=moves.is_pending & ~settles)

    def play_round(moves: Moves) -> Moves:
        after = jax.lax.fori_loop(0, len(moves.cells), turn, moves)
        is_stuck = after.is_pending.sum() == moves.is_pending.sum()
        turned = after._replace(
            cells=jnp.where(after.is_pending, after.targets, after.cells),
            is_pending=jnp.zeros_like(after.is_pending),
        )
        return jax.tree.map(lambda ring, plain: jnp.where(is_stuck, ring, plain), turned, after)

    return jax.lax.while_loop(lambda moves: moves.is_pending.any(), play_round, moves)


def _send_intruders_back(origins: jax.Array, cells: jax.Array) -> jax.Array:
    """Send agents that share a cell back to their origins, repeatedly, until every agent has its own cell."""

    def shares_cell(cells: jax.Array) -> jax.Array:
        return (cells[:, None] == cells[None, :]).sum(axis=1) > 1

    def send_back(cells: jax.Array) -> jax.Array:
        return jnp.where(shares_cell(cells), origins, cells)

    return jax.lax.while_loop(lambda cells: shares_cell(cells).any(), send_back, cells)
