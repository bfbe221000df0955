"""Agents over several devices: the same results as on one, up to rounding."""

import json
import subprocess
import sys

import numpy as np
import pytest

PROGRAM = """
import json, sys, jax
num_devices, num_agents, weights = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
jax.config.update("jax_num_cpu_devices", max(num_devices, 2))
import consmarl
from consmarl.learners.interface import TeamSpec
from consmarl.learners.iql import IQL
from consmarl.learners.networks import Weights
from consmarl.training.loop import Trainer

world = consmarl.make("pgm-3ag", num_agents=num_agents, grid=(4, 4), view=(3, 3), episode_limit=6, mining_steps=1)
learner = IQL(TeamSpec.of(world), weights=Weights(weights), hidden_size=8)
trainer = Trainer(world=world, learner=learner, num_envs=2, replay_episodes=16, batch_episodes=4, warmup_steps=10,
                  num_devices=num_devices)
state, report = trainer.run(trainer.init(0), 6)
evaluation = trainer.evaluate(learner.parameters(state.learner), jax.random.key(1), 4)
print(json.dumps({
    "devices": len(state.replay.episodes.codes.sharding.device_set),
    "codes": int(state.replay.episodes.codes.astype(int).sum()),
    "loss": report.learning["loss"].tolist(),
    "weights": state.learner.online.head_weights.tolist(),
    "evaluation": float(evaluation.batch.rewards.sum()),
}))
"""


def run_on(num_devices, num_agents, weights):
    command = [sys.executable, "-c", PROGRAM, str(num_devices), str(num_agents), weights]
    return json.loads(subprocess.check_output(command, text=True, timeout=300).splitlines()[-1])


@pytest.mark.parametrize(("num_agents", "weights"), [(4, "separate"), (3, "separate"), (4, "shared")])
def test_two_devices_learn_what_one_does(num_agents, weights):
    single, double = (run_on(count, num_agents, weights) for count in (1, 2))
    assert (single["devices"], double["devices"]) == (1, 2)
    assert single["codes"] == double["codes"]
    np.testing.assert_allclose(double["loss"], single["loss"], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(double["weights"], single["weights"], atol=1e-4)
    assert single["loss"][-1][0]


def test_more_devices_than_there_are_get_one_clear_sentence():
    command = [sys.executable, "-c", PROGRAM.replace("max(num_devices, 2)", "1"), "2", "4", "separate"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert result.returncode != 0
    assert "2 devices were asked for and JAX sees 1" in result.stderr
