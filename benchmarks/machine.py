"""The reference for all benchmarks: one pinned core, and its rate for a large matrix multiplication in the same run."""

from consmarl.experiments.bench import best_seconds, pin_to_one_core, sgemm_rate, steps_per_second, update_flop

__all__ = ["best_seconds", "pin_to_one_core", "sgemm_rate", "steps_per_second", "update_flop"]
