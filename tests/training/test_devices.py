"""Agents distributed over several devices: the same results as on one, up to rounding."""

import json
import subprocess
import sys

import jax
import numpy as np
import pytest

from consmarl import UsageError
from consmarl.learners.devices import agents_mesh

# One process for all cases: importing JAX and setting up its devices takes as long as compiling one case.
PROGRAM = """
import json, sys, jax
jax.config.update("jax_num_cpu_devices", 2)
import consmarl
from consmarl.learners.interface import TeamSpec
from consmarl.experiments.configuration.methods import METHODS
from consmarl.learners.team_networks import Weights
from consmarl.training.loop import Trainer

def learned(num_agents, method, weights, num_devices, is_evaluated):
    world = consmarl.make("pgm-3ag", num_agents=num_agents, grid=(4, 4), view=(3, 3), episode_limit=6, mining_steps=1)
    learner = METHODS[method].learner(TeamSpec.of(world), weights=Weights(weights), hidden_size=8)
    trainer = Trainer(world=world, learner=learner, num_envs=2, replay_episodes=16, batch_episodes=4, warmup_steps=10,
                      num_devices=num_devices)
    state, report = trainer.run(trainer.init(0), 6)
    if is_evaluated:
        jax.block_until_ready(trainer.evaluate(learner.parameters(state.learner), jax.random.key(1), 4))
    return {
        "devices": len(state.replay.episodes.codes.sharding.device_set),
        "codes": int(state.replay.episodes.codes.astype(int).sum()),
        "loss": report.learning["loss"].tolist(),
        "weights": learner.parameters(state.learner).head_weights.tolist(),
    }

results = {}
for name, (num_agents, method, weights, is_optimised) in json.loads(sys.argv[1]).items():
    jax.config.update("jax_disable_most_optimizations", not is_optimised)
    results[name] = [learned(num_agents, method, weights, num_devices, is_optimised and num_devices == 2)
                     for num_devices in (1, 2)]
print(json.dumps(results))
"""
CASES = {  # the first one is also evaluated
    "4 agents, as runs are optimised": (4, "iql", "separate", True),
    "3 agents": (3, "iql", "separate", False),
    "shared weights": (4, "iql", "shared", False),
    "qmix": (3, "qmix", "shared", False),
    "seql": (4, "seql", "separate", False),
}


@pytest.fixture(scope="module")
def results():
    command = [sys.executable, "-c", PROGRAM, json.dumps(CASES)]
    return json.loads(subprocess.check_output(command, text=True, timeout=1800).splitlines()[-1])


@pytest.mark.parametrize("case", CASES)
def test_two_devices_learn_the_same_as_one(case, results):
    single, double = results[case]
    assert (single["devices"], double["devices"]) == (1, 2)
    assert single["codes"] == double["codes"]
    np.testing.assert_allclose(double["loss"], single["loss"], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(double["weights"], single["weights"], atol=1e-4)
    assert np.any(single["loss"][-1])


def test_more_devices_than_available_are_refused():
    num_devices = len(jax.devices())
    with pytest.raises(UsageError, match=f"{num_devices + 1} devices were asked for and JAX sees {num_devices}"):
        agents_mesh(num_devices + 1)
