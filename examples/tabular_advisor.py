"""Knowledge sharing for a tabular Q-learner; only the lines marked with ← are needed for it.

Four agents each try to open their own copy of a lock by four turns to one of four sides; a wrong turn ends the attempt.
An agent that finds the combination can teach it. `python examples/tabular_advisor.py` takes some seconds.
"""

import numpy as np

from consmarl import Advisor, Cons

COMBINATION = (2, 0, 3, 1)
NUM_AGENTS, NUM_SIDES, EXPLORING = 4, 4, 0.1


def openings(num_episodes: int = 300, *, shares: bool, seed: int = 0) -> tuple[float, int]:
    """Return the mean number of locks opened per episode, of four, and how many turns were advised."""
    chance = np.random.default_rng(seed)
    tables = np.zeros((NUM_AGENTS, len(COMBINATION) + 1, NUM_SIDES))  # Q-values [agent, turn, side]
    sharing = Cons(ask_scale=0.05, start_episode=50, policy_temperature=0.05, temperature=0.1)  # ←
    advisor = Advisor(NUM_AGENTS, NUM_SIDES, sharing, seed=seed)  # ←
    num_opened = num_advised = 0

    for _ in range(num_episodes):
        advisor.begin_episode()  # ←
        turns = np.zeros(NUM_AGENTS, int)  # right turns of each agent so far; −1 once it failed
        for turn, right in enumerate(COMBINATION):
            values = tables[np.arange(NUM_AGENTS), turns]
            best = (values + 1e-9 * chance.random(values.shape)).argmax(axis=1)  # random ties
            explores = chance.random(NUM_AGENTS) < EXPLORING
            sides = np.where(explores, chance.integers(NUM_SIDES, size=NUM_AGENTS), best)
            if shares:
                sides = advisor.advise(turns, values, sides, lambda j, _i, turn: tables[j, turn])  # ←
                num_advised += advisor.is_advised.sum()
            for agent in np.flatnonzero(turns == turn):
                is_right = sides[agent] == right
                is_open = is_right and turn + 1 == len(COMBINATION)
                target = float(is_open) if is_open or not is_right else 0.9 * tables[agent, turn + 1].max()
                tables[agent, turn, sides[agent]] += 0.5 * (target - values[agent, sides[agent]])
                turns[agent] = turn + 1 if is_right else -1
        num_opened += int((turns == len(COMBINATION)).sum())
    return num_opened / num_episodes, int(num_advised)


if __name__ == "__main__":
    for seed in range(3):
        (alone, _), (together, advised) = (openings(shares=shares, seed=seed) for shares in (False, True))
        print(
            f"seed {seed}: {alone:.2f} of 4 locks opened alone, {together:.2f} with sharing ({advised} advised turns)"
        )
