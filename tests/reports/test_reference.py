"""Reference returns that need no recording, because they follow from an environment's rules."""

from itertools import pairwise, permutations

import jax
import numpy as np
import pytest

import consmarl
from consmarl.environments.treasure import OPEN, PICK
from consmarl.reports.reference import LANDMARKS

DOWN, LEFT, UP, RIGHT = range(1, 5)


def steps_towards(start, goal):
    """Return the actions of a shortest walk."""
    down, right = np.subtract(goal, start).tolist()
    return [DOWN if down > 0 else UP] * abs(down) + [RIGHT if right > 0 else LEFT] * abs(right)


def plan_of_one(start, boxes, wait_until):
    """Return one agent's actions: open and empty boxes in turn, the first not before everybody can be there."""
    walk = steps_towards(start, boxes[0])
    plan = [*walk, *[0] * (wait_until - len(walk)), OPEN, PICK]
    for here, there in pairwise(boxes):
        plan += [*steps_towards(here, there), OPEN, PICK]
    return plan


def omniscient_plan(layout):
    """Return all agents' actions in a shortest tour of the yellow boxes and the box that holds the treasure."""
    worth_opening = [*np.asarray(layout.yellow), np.asarray(layout.red)[int(layout.treasure)]]
    agents = np.asarray(layout.agents)

    def plans(boxes):
        last_arrives = int(abs(agents - boxes[0]).sum(axis=1).max())
        return [plan_of_one(agent, boxes, last_arrives) for agent in agents]

    return min((plans(boxes) for boxes in permutations(worth_opening)), key=lambda each: len(each[0]))


def test_a_team_that_knows_what_boxes_hold_finds_all_that_pays():
    world = consmarl.make("ft")
    [best] = [mark.recorded.estimate for mark in LANDMARKS["ft"] if "knows" in mark.name]
    generate, begin, step = jax.jit(world.generate_layout), jax.jit(world.begin), jax.jit(world.step)
    for seed in range(10):
        key_layout, key_steps = jax.random.split(jax.random.key(seed))
        layout = generate(key_layout)
        plan = np.transpose(omniscient_plan(layout))
        assert len(plan) <= world.episode_limit
        actions = np.zeros((world.episode_limit, world.num_agents), np.int32)
        actions[: len(plan)] = plan
        state, total = begin(layout), 0.0
        for key_step, chosen in zip(jax.random.split(key_steps, len(actions)), actions, strict=True):
            state, outcome = step(key_step, state, chosen)
            total += float(outcome.rewards.sum())
        assert total == pytest.approx(best, abs=1e-4)
