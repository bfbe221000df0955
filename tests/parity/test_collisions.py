"""The compiled collision rules against a slow version that follows the authors' loop one move at a time."""

import jax
import numpy as np
import pytest

from consmarl.environments.collisions import resolve_moves

resolve = jax.jit(resolve_moves)

STEPS = np.array([(0, -1), (0, 1), (-1, 0), (1, 0), (0, 0)])


def resolve_slowly(cells, wanted, takes_part, order):
    """Apply the social-dilemma games' rules with dictionaries, agent by agent; `order` lists agents by priority."""
    stands = dict(enumerate(cells))
    moves = {agent: wanted[agent] for agent in range(len(cells)) if takes_part[agent]}

    def occupant_of(cell):
        return next((agent for agent, place in stands.items() if place == cell), None)

    def cannot_clear(cell, agent):
        occupant = occupant_of(cell)
        if occupant is None:
            return False
        stays = occupant == agent or occupant not in moves or moves[occupant] == stands[occupant]
        return stays or moves[occupant] == stands[agent]

    asked_for = dict(moves)
    for cell in sorted(set(asked_for.values())):
        rivals = [agent for agent in order if asked_for.get(agent) == cell]
        if len(rivals) > 1:
            if not any(cannot_clear(cell, agent) for agent in rivals):
                stands[rivals[0]] = cell
            moves |= {agent: stands[agent] for agent in rivals}

    while moves:
        num_before = len(moves)
        for agent in sorted(moves):
            if agent not in moves:
                continue
            occupant = occupant_of(moves[agent])
            if occupant is None:
                stands[agent] = moves.pop(agent)
            elif occupant == agent or occupant not in moves or moves[occupant] == stands[occupant]:
                del moves[agent]
            elif moves[occupant] == stands[agent]:
                del moves[occupant], moves[agent]
        if len(moves) == num_before:
            stands |= moves
            break

    # the one deviation from those rules: an agent that moved onto another agent goes back
    while intruders := [a for a in stands if [*stands.values()].count(stands[a]) > 1 and stands[a] != cells[a]]:
        stands |= {agent: cells[agent] for agent in intruders}
    return [stands[agent] for agent in range(len(cells))]


def crowded_situations(rng, side, num_agents, count):
    for _ in range(count):
        places = rng.permutation(side * side)[:num_agents]
        rows, columns = np.divmod(places, side)
        steps = STEPS[rng.integers(0, 5, num_agents)]
        wanted = np.clip(np.stack([rows, columns], 1) + steps, 0, side - 1)
        takes_part = rng.random(num_agents) < 0.85
        yield places, wanted[:, 0] * side + wanted[:, 1], takes_part, rng.permutation(num_agents)


@pytest.mark.parametrize(("side", "num_agents"), [(2, 1), (2, 3), (2, 4), (3, 4), (3, 7), (4, 9), (4, 16)])
def test_compiled_rules_match_the_slow_version_in_crowds(side, num_agents):
    situations = list(crowded_situations(np.random.default_rng(side * 100 + num_agents), side, num_agents, 1500))
    cells, wanted, takes_part, order = (np.stack(part) for part in zip(*situations, strict=True))
    priority = np.argsort(order, axis=1).astype(np.float32)
    fast = np.asarray(jax.jit(jax.vmap(resolve_moves))(cells, wanted, takes_part, priority))
    for index, (places, goals, movers, ranks) in enumerate(situations):
        assert fast[index].tolist() == resolve_slowly(places.tolist(), goals.tolist(), movers, ranks.tolist())
    assert all(len(set(row)) == num_agents for row in fast.tolist())
    if num_agents > 1:
        assert (fast != cells).any()
        assert (fast != np.where(takes_part, wanted, cells)).any()


def resolved(cells, wanted, takes_part=None, priority=None):
    takes_part = np.ones(len(cells), bool) if takes_part is None else np.array(takes_part)
    priority = np.arange(len(cells)) if priority is None else priority
    return resolve(np.array(cells), np.array(wanted), takes_part, np.array(priority, np.float32)).tolist()


def test_two_agents_never_swap():
    assert resolved([0, 1], [1, 0]) == [0, 1]


def test_a_ring_of_four_agents_can_rotate():
    assert resolved([0, 1, 3, 2], [1, 3, 2, 0]) == [1, 3, 2, 0]


def test_a_queue_moves_forward_together():
    assert resolved([2, 1, 0], [3, 2, 1]) == [3, 2, 1]


def test_the_agent_with_the_lowest_priority_number_wins_a_free_cell():
    assert resolved([0, 2], [1, 1], priority=[1, 0]) == [0, 1]


def test_nobody_enters_the_cell_of_an_agent_that_is_cleaning():
    assert resolved([0, 1, 2], [1, 1, 1], takes_part=[True, False, True]) == [0, 1, 2]


def test_a_winner_moves_back_if_the_occupant_cannot_leave():
    # agents 0 and 1 both want the cell of agent 2, which wants to move to the cell of agent 3, which is cleaning
    cells, wanted = [0, 2, 1, 5], [1, 1, 5, 5]
    assert resolved(cells, wanted, takes_part=[True, True, True, False]) == cells
