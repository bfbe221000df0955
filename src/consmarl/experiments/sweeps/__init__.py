"""Sweeps of many runs: plans, the paper's studies, and the workers that execute them."""
