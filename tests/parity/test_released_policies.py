"""The weights released by the paper's authors reach the same returns in our environments as in theirs.

The weights are third-party data and not part of this repository: where their folder is missing, the tests are skipped
with a message. CONSMARL_REFERENCE overrides the default folder next to the repository.
"""

import os
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import consmarl
from consmarl.learners.interface import TeamSpec
from consmarl.learners.iql import IQL
from consmarl.learners.team_networks import Weights
from consmarl.networks.drqn import DRQNParameters
from consmarl.networks.gru import GRUParameters
from consmarl.training.loop import Trainer

BESIDE = Path(__file__).parents[3] / "shared" / "reference"
POLICIES = Path(os.environ.get("CONSMARL_REFERENCE", BESIDE)) / "policies"
# Mean team return and its standard error in the authors' own environments: two runs with different random numbers.
RELEASED = {
    "pgm-6ag-cons": ((19.7, 1.2), (20.7, 0.8)),
    "pgm-6ag-adhoctd": ((-4.7, 0.8), (-5.5, 0.6)),
    "pgm-6ag-iql": ((-14.5, 0.8), (-13.0, 0.6)),
    "pgm-3ag-cons": ((14.1, 0.6), (12.6, 0.5)),
    "pgm-3ag-adhoctd": ((7.1, 0.4), (5.3, 0.3)),
    "pgm-3ag-iql": ((1.0, 0.3), (0.3, 0.2)),
    "ft-cons": ((2.9, 0.4), (2.6, 0.4)),
    "ft-adhoctd": ((1.9, 0.4), (2.1, 0.4)),
    "ft-iql": ((1.3, 0.4), (1.9, 0.4)),
    "cleanup-cons": ((74.6, 1.7), (76.2, 1.4)),
}
# Agents of Patient Gold Miner that earn more than 0, which takes gold (results/paper/who-mines.md).
MINERS = {
    "pgm-6ag-cons": 3,
    "pgm-6ag-adhoctd": 1,
    "pgm-6ag-iql": 1,
    "pgm-3ag-cons": 3,
    "pgm-3ag-adhoctd": 2,
    "pgm-3ag-iql": 1,
}
NUM_EPISODES = 400

pytestmark = pytest.mark.usefixtures("optimised")


def read_policy(path):
    """Convert PyTorch's arrays, stacked over networks, to our parameters."""
    with np.load(path) as file:

        def turned(name):
            return jnp.asarray(np.swapaxes(file[name], -1, -2))

        return DRQNParameters(
            encoder_weights=turned("fc1_weight"),
            encoder_bias=jnp.asarray(file["fc1_bias"]),
            gru=GRUParameters(
                input_weights=turned("rnn_weight_ih"),
                input_bias=jnp.asarray(file["rnn_bias_ih"]),
                hidden_weights=turned("rnn_weight_hh"),
                hidden_bias=jnp.asarray(file["rnn_bias_hh"]),
            ),
            head_weights=turned("fc2_weight"),
            head_bias=jnp.asarray(file["fc2_bias"]),
        )  # fmt: skip


@pytest.mark.skipif(not POLICIES.is_dir(), reason=f"the authors' released weights are not at {POLICIES}")
@pytest.mark.parametrize("name", RELEASED)
def test_released_weights_reach_their_recorded_returns(name):
    world = consmarl.make(name.rsplit("-", 1)[0])
    parameters = read_policy(POLICIES / f"{name}.npz")
    spec = TeamSpec.of(world)
    weights = Weights.SHARED if len(parameters.head_bias) == 1 else Weights.SEPARATE
    trainer = Trainer(world=world, learner=IQL(spec, weights=weights))
    episodes = trainer.evaluate(parameters, jax.random.key(0), NUM_EPISODES)
    returns = np.asarray(episodes.batch.rewards.sum(axis=(0, 2)))
    ours, our_error = returns.mean(), returns.std() / np.sqrt(NUM_EPISODES)
    means, errors = np.array(RELEASED[name]).T
    theirs = np.average(means, weights=errors**-2)
    # the two recorded runs differ by more than their standard errors suggest, so their spread counts too
    their_error = max(np.sqrt(1 / np.sum(errors**-2)), abs(means[0] - means[1]) / 2)
    assert abs(ours - theirs) < 3 * np.hypot(our_error, their_error), f"{ours:.2f} ± {our_error:.2f}"
    if name in MINERS:
        earned = np.asarray(episodes.batch.rewards.sum(axis=2)).mean(axis=1)
        assert np.sum(earned > 0) == MINERS[name]
