"""Measure the speed of recurrent Q-learning on one core, relative to the core's sgemm rate in the same run.

`make bench`, or `python -m benchmarks.learning`. Each measurement has its own process, so that memory and devices can
be measured, too.
"""

import argparse
import json
import resource
import subprocess
import sys
import time

from benchmarks.machine import best_seconds, pin_to_one_core, sgemm_rate, update_flop

GOALS = {"update": 0.50, "episode": 0.40, "devices": 1.6, "memory": 1.5}


def make_trainer(id: str, num_devices: int = 1, num_envs: int = 4, replay_episodes: int = 512, **parameters):  # type: ignore[no-untyped-def]
    """Return a trainer of IQL in an environment, without warm-up."""
    import consmarl
    from consmarl.learners.interface import TeamSpec
    from consmarl.learners.iql import IQL
    from consmarl.training.loop import Trainer

    world = consmarl.make(id, **parameters)
    return Trainer(
        world=world,
        learner=IQL(TeamSpec.of(world)),
        num_devices=num_devices,
        num_envs=num_envs,
        replay_episodes=replay_episodes,
        warmup_steps=0,
    )


def seconds_per_episode(trainer) -> float:  # type: ignore[no-untyped-def]
    """Return the time per episode of rollout and update together, without compilation."""
    import jax

    num_rounds = max(16 // trainer.num_envs, 1)
    state, _ = trainer.run(trainer.init(0), num_rounds)
    best = float("inf")
    for _ in range(6):
        start = time.perf_counter()
        state, _ = trainer.run(state, num_rounds)
        jax.block_until_ready(state)
        best = min(best, time.perf_counter() - start)
    return best / (num_rounds * trainer.num_envs)


def seconds_per_update(trainer) -> float:  # type: ignore[no-untyped-def]
    """Return the time of an update alone, on episodes that were actually played."""
    import jax

    state, _ = trainer.run(trainer.init(0), 16)
    batch = trainer.replay.sample(state.replay, jax.random.key(0), trainer.batch_episodes, 64)
    update = jax.jit(trainer.learner.update)
    return best_seconds(lambda: update(state.learner, batch, jax.random.key(1)))


def measure(task: str, settings: dict[str, object]) -> dict[str, float]:
    """Make one measurement in this process: seconds, share of the sgemm rate, that rate, and peak memory."""
    if int(str(settings.get("num_devices", 1))) == 1:
        pin_to_one_core()
    else:
        import jax

        jax.config.update("jax_num_cpu_devices", settings["num_devices"])
    trainer = make_trainer(**settings)  # type: ignore[arg-type]
    before = sgemm_rate()
    seconds = {"update": seconds_per_update, "episode": seconds_per_episode}[task](trainer)
    sgemm = max(before, sgemm_rate())
    flop = update_flop(trainer)
    assert flop is not None  # it is IQL
    return {
        "seconds": seconds,
        "share": flop / seconds / sgemm,
        "sgemm": sgemm,
        "gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
    }


def measured(task: str, **settings: object) -> dict[str, float]:
    """Make one measurement in a separate process."""
    command = [sys.executable, "-m", "benchmarks.learning", "--task", task, "--settings", json.dumps(settings)]
    result: dict[str, float] = json.loads(subprocess.check_output(command, text=True).splitlines()[-1])
    return result


def verdict(is_met: bool) -> str:
    """Return the verdict as one word."""
    return "met" if is_met else "MISSED"


def main() -> None:
    """Make all measurements and print them."""
    update = measured("update", id="pgm-6ag")
    share = update["share"]
    print(f"\nPGM-6ag on one core; its sgemm: {update['sgemm'] / 1e9:.0f} GFLOP/s")
    print(f"update (32 × 50 × 6)     {update['seconds'] * 1e3:6.1f} ms  {share:.0%} of sgemm   "
          f"goal {GOALS['update']:.0%}: {verdict(share >= GOALS['update'])}")  # fmt: skip
    for num_envs in (1, 4):
        episode = measured("episode", id="pgm-6ag", num_envs=num_envs, replay_episodes=10_000)
        share = episode["share"]
        print(f"whole episode, {num_envs} at once {episode['seconds'] * 1e3:6.1f} ms  {share:.0%} of sgemm   "
              f"goal {GOALS['episode']:.0%}: {verdict(share >= GOALS['episode'])}")  # fmt: skip
    print(f"peak memory with 10,000 episodes of replay: {episode['gigabytes']:.2f} GB   "
          f"goal {GOALS['memory']} GB: {verdict(episode['gigabytes'] <= GOALS['memory'])}")  # fmt: skip
    # alternating, so that other load on the machine does not affect only one of them
    tries = [[measured("episode", id="pgm-6ag", num_devices=count) for count in (1, 2)] for _ in range(3)]
    single, double = (min(each, key=lambda result: result["seconds"]) for each in zip(*tries, strict=True))
    gain = single["seconds"] / double["seconds"]
    print(f"two devices: {single['seconds'] * 1e3:.1f} → {double['seconds'] * 1e3:.1f} ms, {gain:.2f} times one   "
          f"goal {GOALS['devices']}: {verdict(gain >= GOALS['devices'])}")  # fmt: skip

    print("\nScaling of a whole episode: ms, and ms per agent and 50 steps")
    for agents in (3, 6, 12, 24):
        seconds = measured("episode", id="pgm-6ag", num_agents=agents)["seconds"]
        print(f"{agents:4d} agents, 50 steps   {seconds * 1e3:7.1f} {seconds * 1e3 / agents:6.2f}")
    for limit in (25, 50, 100, 200):
        seconds = measured("episode", id="pgm-6ag", episode_limit=limit)["seconds"]
        print(f"   6 agents, {limit:3d} steps  {seconds * 1e3:7.1f} {seconds * 1e3 / 6 * 50 / limit:6.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", choices=("update", "episode"))
    parser.add_argument("--settings", type=json.loads, default={})
    arguments = parser.parse_args()
    if arguments.task:
        print(json.dumps(measure(arguments.task, arguments.settings)))
    else:
        main()
