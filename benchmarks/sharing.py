"""Measure the cost of knowledge sharing on one core: per training episode, and per step as teams grow.

`make bench`, or `python -m benchmarks.sharing`, with `--part memory` for a part of it. All variants are timed in one
process, alternating; times are processor times, and ratios are medians over the turns.
"""

import argparse
import functools
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from benchmarks.machine import pin_to_one_core

GOAL = 0.15  # maximum added time, as a fraction of a PGM-6ag episode
TURNS = 7
NUM_ENVS = 4


class Measured(NamedTuple):
    """The seconds per unit (episode or step) in every turn, and the requests per unit in the last turn."""

    seconds: list[float]
    requests: float

    @property
    def median(self) -> float:
        """The median over turns."""
        return statistics.median(self.seconds)

    def over(self, other: "Measured") -> float:
        """Return how many times as long as another it takes, as the median over turns."""
        return statistics.median(mine / its for mine, its in zip(self.seconds, other.seconds, strict=True))

    def beyond(self, other: "Measured") -> float:
        """Return how many seconds longer than another it takes, as the median over turns."""
        return statistics.median(mine - its for mine, its in zip(self.seconds, other.seconds, strict=True))


def in_turns(programs: dict[str, Callable[[int], float]], num_units: int, turns: int = TURNS) -> dict[str, Measured]:
    """Time programs in alternation; each runs `num_units` units per turn and returns its number of requests."""
    seconds: dict[str, list[float]] = {name: [] for name in programs}
    requests = dict.fromkeys(programs, 0.0)
    for turn in range(turns + 1):
        for name, program in programs.items():
            start = time.process_time()
            requests[name] = program(turn) / num_units
            if turn:  # the first one compiles
                seconds[name].append((time.process_time() - start) / num_units)
    return {name: Measured(seconds[name], requests[name]) for name in programs}


def episodes(sharings: dict[str, Any], num_rounds: int = 4, turns: int = TURNS) -> dict[str, Measured]:
    """Time whole training episodes of PGM-6ag with each sharing mechanism."""
    import jax

    import consmarl
    from consmarl.learners.interface import TeamSpec
    from consmarl.learners.iql import IQL
    from consmarl.training.loop import Trainer

    world = consmarl.make("pgm-6ag")
    parts: dict[str, Any] = dict(world=world, learner=IQL(TeamSpec.of(world)), replay_episodes=512, warmup_steps=0)
    trainers = {name: Trainer(sharing=sharing, num_envs=NUM_ENVS, **parts) for name, sharing in sharings.items()}
    states = {name: trainer.init(0) for name, trainer in trainers.items()}

    def some_rounds(name: str, _turn: int) -> float:
        states[name], report = trainers[name].run(states[name], num_rounds)
        jax.block_until_ready(states[name])
        return float(report.sharing["requests"].sum()) if report.sharing else 0.0

    programs: dict[str, Callable[[int], float]] = {name: functools.partial(some_rounds, name) for name in sharings}
    return in_turns(programs, num_rounds * NUM_ENVS, turns)


def steps(world: Any, sharings: dict[str, Any]) -> dict[str, Measured]:
    """Time steps of acting without learning, with four teams at once."""
    import jax
    import jax.numpy as jnp

    from consmarl.learners.interface import TeamSpec
    from consmarl.learners.iql import IQL
    from consmarl.training.exploration import EpsilonGreedy
    from consmarl.training.rollout import Actors, play_episodes

    learner = IQL(TeamSpec.of(world))
    parameters = learner.parameters(learner.init(jax.random.key(0)))
    epsilons = jnp.full(world.episode_limit, 0.05)
    programs, states = {}, {}
    for name, sharing in sharings.items():
        actors = Actors(learner, EpsilonGreedy(), sharing)
        play = functools.partial(play_episodes, world, actors, num_envs=NUM_ENVS)
        programs[name] = jax.jit(play, donate_argnums=1)
        states[name] = sharing.init(world.num_agents, world.num_actions)

    def one_round(name: str, turn: int) -> float:
        played = programs[name](parameters, states[name], epsilons, jnp.int32(10_000), jax.random.key(turn))
        jax.block_until_ready(played)
        states[name] = played.sharing
        return float(played.traffic.requests.sum())

    return in_turns({name: functools.partial(one_round, name) for name in sharings}, world.episode_limit)


def every_pair(world: Any) -> Measured:
    """Time a step that updates every teacher's memory of every student."""
    import jax
    import jax.numpy as jnp

    from consmarl.learners.interface import TeamSpec
    from consmarl.learners.iql import IQL
    from consmarl.sharing.options import TeacherMemory
    from consmarl.training.teaching import Teachers, first_recall

    learner = IQL(TeamSpec.of(world))
    parameters = learner.parameters(learner.init(jax.random.key(0)))
    codes = jnp.zeros((world.num_agents, NUM_ENVS, world.observation_size), world.observation_dtype)
    first = first_recall(TeacherMemory.HISTORY, learner.begin(parameters, jax.random.key(0), codes), codes, 1)

    @functools.partial(jax.jit, donate_argnums=1)
    def go_on(parameters: Any, memory: Any) -> Any:
        teachers = Teachers(learner, parameters, TeacherMemory.HISTORY, jax.random.key(0))
        return teachers.act(memory, first.codes[0], first.last_actions[0])[0]

    memories, num_steps = [first.memory], 10

    def some_steps(_turn: int) -> float:
        for _ in range(num_steps):
            memories.append(go_on(parameters, memories.pop()))
        jax.block_until_ready(memories)
        return 0.0

    return in_turns({"every pair": some_steps}, num_steps)["every pair"]


def print_episodes() -> None:
    """Print how much time sharing adds to a training episode."""
    from consmarl import AdHocTD, Cons
    from consmarl.sharing.none import NoSharing

    sharings = {
        "IQL": NoSharing(),
        "counting only": Cons(start_episode=10**9),
        "CONS, paper": Cons(start_episode=0),
        "AdHocTD, paper": AdHocTD(start_episode=0),
    }
    print("\nPGM-6ag, a whole training episode on one core; agents ask in every step in which they may")
    results = episodes(sharings)
    for name, result in results.items():
        added = result.over(results["IQL"]) - 1
        verdict = "" if name == "IQL" else f"  {added:+6.1%}   goal {GOAL:.0%}: {'met' if added <= GOAL else 'MISSED'}"
        print(f"{name:16s} {result.median * 1e3:6.2f} ms  {result.requests:6.1f} requests{verdict}")


def print_growth() -> None:
    """Print how much time sharing adds to a step, for teams of different sizes."""
    import consmarl
    from consmarl import Cons
    from consmarl.sharing.none import NoSharing

    sharings = {"none": NoSharing(), "rare": Cons(**_rarely()), "many": Cons(start_episode=0)}
    print("\nActing only, four teams at once: µs per step, and what sharing adds per request")
    print("agents   no sharing |  rare requests:  /step   added  each |  many requests:  /step   added  each")
    for num_agents in (6, 12, 25, 50, 100):
        results = steps(consmarl.make("pgm-6ag", num_agents=num_agents, grid=(24, 24)), sharings)
        line = f"{num_agents:6d} {results['none'].median * 1e6:12.0f}"
        for name in ("rare", "many"):
            added, requests = results[name].beyond(results["none"]) * 1e6, results[name].requests
            line += f" | {requests:13.1f} {added:15.0f} {added / max(requests, 1e-9):5.0f}"
        print(line)


def print_memory() -> None:
    """Print how much time teachers' memories of students' episodes add to a training episode."""
    from consmarl.sharing.options import AskGate

    print("\nPGM-6ag, a whole training episode: with the student's memory, and the cost of teachers' own")
    rates: dict[str, dict[str, Any]] = {
        "always": dict(start_episode=0),
        "exploiting": dict(start_episode=0, ask_gate=AskGate.EXPLOITING),
        "exploring": _rarely(),
    }
    for rate, settings in rates.items():
        results = episodes(_both_memories(settings), turns=3 * TURNS)
        student, history = results["student"], results["history"]
        added = history.over(student) - 1
        verdict = f"{added:+6.1%}   goal {GOAL:.0%}: {'met' if added <= GOAL else 'MISSED'}"
        print(
            f"asking {rate:12s} {student.median * 1e3:6.2f} ms  {history.requests:6.1f} requests  {verdict}", flush=True
        )


def print_memory_growth() -> None:
    """Print how much time teachers' memories of students' episodes add to a step, for teams of different sizes."""
    import consmarl

    print("\nActing only, four teams at once: µs that teachers' memories add to a step; 'every pair' updates all")
    print("agents   every pair |  nobody asks: added |  rare requests:  /step   added |  many requests:  /step   added")
    worlds = {
        6: consmarl.make("pgm-6ag"),
        20: consmarl.make("ft-20"),
        100: consmarl.make("pgm-6ag", num_agents=100, grid=(24, 24)),
    }
    for num_agents, world in worlds.items():
        line = f"{num_agents:6d} {every_pair(world).median * 1e6:12.0f}"
        for rate, settings in (("", dict(start_episode=10**9)), ("rare", _rarely()), ("many", dict(start_episode=0))):
            results = steps(world, _both_memories(settings))
            requests = f"{results['history'].requests:22.1f}" if rate else " " * 11
            line += f" | {requests} {results['history'].beyond(results['student']) * 1e6:7.0f}"
        print(line, flush=True)


def _both_memories(settings: dict[str, Any]) -> dict[str, Any]:
    from consmarl import Cons
    from consmarl.sharing.options import TeacherMemory

    return {
        kind.value: Cons(teacher_memory=kind, **settings) for kind in (TeacherMemory.STUDENT, TeacherMemory.HISTORY)
    }


def _rarely() -> dict[str, Any]:
    from consmarl.sharing.options import AskGate

    return dict(start_episode=0, ask_gate=AskGate.EXPLORING, ask_scale=3.0)


PARTS = {
    "episodes": print_episodes,
    "growth": print_growth,
    "memory": print_memory,
    "memory-growth": print_memory_growth,
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=PARTS, nargs="*", default=list(PARTS))
    chosen = parser.parse_args().part
    pin_to_one_core()
    for part in chosen:
        PARTS[part]()
