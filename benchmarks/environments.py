"""Measure environment steps per second on one core with random actions, including observations and resets.

`make bench`, or `python -m benchmarks.environments --batch 512`.
"""

import argparse

from benchmarks.machine import pin_to_one_core, sgemm_rate, steps_per_second

TARGETS = {"pgm-6ag": 200_000, "pgm-3ag": 500_000}
TEAM_SIZES = (6, 12, 25, 50, 100)


def main() -> None:
    """Measure all environments and print tables of their speeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=128, help="episodes played side by side")
    batch = parser.parse_args().batch
    pin_to_one_core()

    import consmarl

    print(f"One core, {batch} episodes side by side; this core's sgemm: {sgemm_rate() / 1e9:.0f} GFLOP/s\n")
    print(f"{'env':<10}{'steps/s':>12}{'agent steps/s':>16}{'µs/step':>12}")
    for id in consmarl.world_ids():
        rate = steps_per_second(consmarl.make(id), num_episodes=batch)
        goal = f"   goal {TARGETS[id]:,}: {'met' if rate >= TARGETS[id] else 'MISSED'}" if id in TARGETS else ""
        agents = consmarl.make(id).num_agents
        print(f"{id:<10}{rate:>12,.0f}{rate * agents:>16,.0f}{1e6 / rate:>12.2f}{goal}")

    print("\nScaling with the team: pgm-6ag on a 24×24 grid")
    print(f"{'agents':<10}{'steps/s':>12}{'µs/step':>12}{'µs/agent':>14}")
    for agents in TEAM_SIZES:
        rate = steps_per_second(consmarl.make("pgm-6ag", grid=(24, 24), num_agents=agents), num_episodes=batch)
        print(f"{agents:<10}{rate:>12,.0f}{1e6 / rate:>12.2f}{1e6 / rate / agents:>14.3f}")


if __name__ == "__main__":
    main()
