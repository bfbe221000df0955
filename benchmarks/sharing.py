"""What knowledge sharing costs on one core: of a training episode, and of a step as teams grow.

`make bench`, or `python -m benchmarks.sharing`. Everything is compared within one process, in turns.
"""

import argparse
import functools
import time
from typing import Any

from benchmarks.machine import pin_to_one_core

GOAL = 0.15  # of a PGM-6ag episode
TURNS = 6


def episode_seconds(sharings: dict[str, Any], id: str = "pgm-6ag", num_rounds: int = 4) -> dict[str, tuple[float, Any]]:
    """Time a whole training episode with each way of sharing, in turns; with the last round's report."""
    import jax

    import consmarl
    from consmarl.learners.interface import TeamSpec
    from consmarl.learners.iql import IQL
    from consmarl.training.loop import Trainer

    world = consmarl.make(id)
    parts: dict[str, Any] = dict(world=world, learner=IQL(TeamSpec.of(world)), replay_episodes=512, warmup_steps=0)
    trainers = {name: Trainer(sharing=sharing, **parts) for name, sharing in sharings.items()}
    states = {name: trainer.run(trainer.init(0), num_rounds)[0] for name, trainer in trainers.items()}
    best = dict.fromkeys(sharings, float("inf"))
    reports = {}
    for _ in range(TURNS):
        for name, trainer in trainers.items():
            start = time.perf_counter()
            states[name], reports[name] = trainer.run(states[name], num_rounds)
            jax.block_until_ready(states[name])
            best[name] = min(best[name], time.perf_counter() - start)
    return {name: (best[name] / (num_rounds * 4), jax.device_get(reports[name])) for name in sharings}


def step_seconds(num_agents: int, sharings: dict[str, Any]) -> dict[str, tuple[float, float]]:
    """Time a step of playing alone, four teams at once, in turns: (seconds, requests a step)."""
    import jax
    import jax.numpy as jnp

    import consmarl
    from consmarl.learners.interface import TeamSpec
    from consmarl.learners.iql import IQL
    from consmarl.training.exploration import EpsilonGreedy
    from consmarl.training.rollout import Actors, play_episodes

    world = consmarl.make("pgm-6ag", num_agents=num_agents, grid=(24, 24))
    learner = IQL(TeamSpec.of(world))
    parameters = learner.parameters(learner.init(jax.random.key(0)))
    epsilons = jnp.full(world.episode_limit, 0.05)
    programs, states = {}, {}
    for name, sharing in sharings.items():
        actors = Actors(learner, EpsilonGreedy(), sharing)
        play = functools.partial(play_episodes, world, actors, num_envs=4)
        programs[name] = jax.jit(play, donate_argnums=1)
        states[name] = sharing.init(num_agents, world.num_actions)
    best, requests = dict.fromkeys(sharings, float("inf")), {}
    for turn in range(TURNS + 1):
        for name, program in programs.items():
            start = time.perf_counter()
            episodes = program(parameters, states[name], epsilons, jnp.int32(10_000), jax.random.key(turn))
            jax.block_until_ready(episodes)
            if turn:  # the first one compiles
                best[name] = min(best[name], time.perf_counter() - start)
            states[name] = episodes.sharing
            requests[name] = float(episodes.traffic.requests.sum()) / world.episode_limit
    return {name: (best[name] / world.episode_limit, requests[name]) for name in sharings}


def print_episodes() -> None:
    """Print the share that sharing adds to a training episode."""
    from consmarl import AdHocTD, Cons
    from consmarl.sharing.none import NoSharing

    sharings = {
        "IQL": NoSharing(),
        "counting alone": Cons(start_episode=10**9),
        "CONS, paper": Cons(start_episode=0),
        "AdHocTD, paper": AdHocTD(start_episode=0),
    }
    print("\nPGM-6ag, a whole training episode on one core; agents ask in every step they may")
    results = episode_seconds(sharings)
    alone = results["IQL"][0]
    for name, (seconds, report) in results.items():
        added = seconds / alone - 1
        asked = report.sharing["requests"].sum(axis=1).mean() if report.sharing else 0.0
        verdict = "" if name == "IQL" else f"  {added:+6.1%}   goal {GOAL:.0%}: {'met' if added <= GOAL else 'MISSED'}"
        print(f"{name:16s} {seconds * 1e3:6.2f} ms  {asked:6.1f} requests{verdict}")


def print_growth() -> None:
    """Print what a step costs as teams grow."""
    from consmarl import Cons
    from consmarl.sharing.none import NoSharing
    from consmarl.sharing.options import AskGate

    sharings = {
        "none": NoSharing(),
        "rare": Cons(start_episode=0, ask_gate=AskGate.EXPLORING, ask_scale=3.0),
        "many": Cons(start_episode=0),
    }
    print("\nPlaying alone, four teams at once: µs a step, and what sharing adds, by the request")
    print("agents   no sharing |  rare requests: a step   added  each |  many requests: a step   added  each")
    for num_agents in (6, 12, 25, 50, 100):
        results = step_seconds(num_agents, sharings)
        alone = results["none"][0] * 1e6
        line = f"{num_agents:6d} {alone:12.0f}"
        for name in ("rare", "many"):
            seconds, requests = results[name]
            added = seconds * 1e6 - alone
            line += f" | {requests:13.1f} {added:15.0f} {added / max(requests, 1e-9):5.0f}"
        print(line)


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    pin_to_one_core()
    print_episodes()
    print_growth()
