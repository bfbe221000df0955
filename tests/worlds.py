"""Environments for tests: every registered one, and small crowded ones where a lot happens within a few steps."""

import consmarl

SMALL_WORLDS = {
    "tiny-mine": ("pgm-6ag", dict(grid=(2, 3), num_agents=2, num_mines=1, num_piles=1, mining_steps=2,
                                  stones_per_pile=3, view=(3, 5), episode_limit=20)),
    "corridor-mine": ("pgm-3ag", dict(grid=(1, 6), num_agents=2, view=(1, 13), mining_steps=1)),
    "tiny-treasure": ("ft-multi", dict(grid=(2, 4), num_agents=3, num_yellow=1, num_red=2, num_green=2, view=(3, 3))),
    "one-opener": ("ft", dict(grid=(3, 3), num_agents=2, num_yellow=2, num_red=3, openers_needed=1)),
    "crowded-cleanup": ("cleanup", dict(grid=(5, 9), num_agents=8, view=(3, 5), waste_limit=0.9)),
    "paper-cleanup": ("cleanup", dict(waste_rule="per-step")),
}  # fmt: skip


def all_worlds():
    small = {name: consmarl.make(id, **parameters) for name, (id, parameters) in SMALL_WORLDS.items()}
    return {id: consmarl.make(id) for id in consmarl.world_ids()} | small
