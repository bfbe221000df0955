"""Agents over several devices: the same results as on one, up to rounding."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

PROGRAM = """
import json, sys, jax
num_cpus, num_agents, method, weights = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
jax.config.update("jax_num_cpu_devices", num_cpus)
import consmarl
from consmarl.learners.interface import TeamSpec
from consmarl.experiments.configuration.methods import METHODS
from consmarl.learners.team_networks import Weights
from consmarl.training.loop import Trainer

world = consmarl.make("pgm-3ag", num_agents=num_agents, grid=(4, 4), view=(3, 3), episode_limit=6, mining_steps=1)
learner = METHODS[method].learner(TeamSpec.of(world), weights=Weights(weights), hidden_size=8)
results = []
for num_devices in map(int, sys.argv[5:]):
    trainer = Trainer(world=world, learner=learner, num_envs=2, replay_episodes=16, batch_episodes=4, warmup_steps=10,
                      num_devices=num_devices)
    state, report = trainer.run(trainer.init(0), 6)
    results.append({
        "devices": len(state.replay.episodes.codes.sharding.device_set),
        "codes": int(state.replay.episodes.codes.astype(int).sum()),
        "loss": report.learning["loss"].tolist(),
        "weights": learner.parameters(state.learner).head_weights.tolist(),
    })
jax.block_until_ready(trainer.evaluate(learner.parameters(state.learner), jax.random.key(1), 4))
print(json.dumps(results))
"""
QUICKLY = {"JAX_DISABLE_MOST_OPTIMIZATIONS": "true"}  # one of three is optimised as runs are


def program(num_cpus, num_agents, method, weights, *device_counts):
    return [sys.executable, "-c", PROGRAM, *map(str, (num_cpus, num_agents, method, weights, *device_counts))]


@pytest.mark.parametrize(
    ("num_agents", "method", "weights", "settings"),
    [
        (4, "iql", "separate", {}),
        (3, "iql", "separate", QUICKLY),
        (4, "iql", "shared", QUICKLY),
        (3, "qmix", "shared", QUICKLY),
        (4, "seql", "separate", QUICKLY),
    ],
)
def test_two_devices_learn_what_one_does(num_agents, method, weights, settings):
    command = program(2, num_agents, method, weights, 1, 2)
    printed = subprocess.check_output(command, text=True, timeout=300, env=os.environ | settings)
    single, double = json.loads(printed.splitlines()[-1])
    assert (single["devices"], double["devices"]) == (1, 2)
    assert single["codes"] == double["codes"]
    np.testing.assert_allclose(double["loss"], single["loss"], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(double["weights"], single["weights"], atol=1e-4)
    assert np.any(single["loss"][-1])


def test_more_devices_than_there_are_get_one_clear_sentence():
    result = subprocess.run(program(1, 4, "iql", "separate", 2), capture_output=True, text=True, timeout=300)
    assert result.returncode != 0
    assert "2 devices were asked for and JAX sees 1" in result.stderr
