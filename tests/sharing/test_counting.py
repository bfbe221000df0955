"""A custom way to count is one class: registered by name, it determines n in asking and teaching."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import consmarl
from consmarl import Cons, TrainConfig, UsageError
from consmarl.sharing.counting import COUNTINGS, Counting, ExactCounting

pytestmark = pytest.mark.usefixtures("unregistered")
MOST_SEATS = 8


class Coarse(NamedTuple):
    """Visits by agent and row of the grid."""

    visits: jax.Array  # int32 [seat, row]


@dataclass(frozen=True)
class ByRow(Counting):
    """All observations in the same row of the grid count as one."""

    def init(self, num_places, num_agents, observation_size):
        del num_places, num_agents, observation_size
        return Coarse(jnp.zeros((MOST_SEATS, 16), jnp.int32))

    def marks(self, codes):
        return codes[..., :1].astype(jnp.int32)

    def count(self, state, marks, seats, amounts):
        visits = state.visits.at[seats, marks[..., 0]].add(amounts)
        return Coarse(visits), visits[seats, marks[..., 0]]

    def lookup(self, state, marks, seats):
        return state.visits[seats, marks[..., 0]]


@dataclass
class Loose(Counting):
    """Not frozen."""

    init = marks = count = lookup = None


def test_a_run_can_use_a_registered_way_to_count(tmp_path):
    consmarl.register_counting("by-row", ByRow)
    config = TrainConfig(
        method="cons", episodes=24, set=("grid=4,4", "episode_limit=6", "view=3,3"), hidden_size=8, warmup_steps=10,
        replay_episodes=24, share={"counting": "by-row", "start_episode": 0, "ask_gate": "always"},
        evaluation_episodes=2, final_episodes=2, report_every=24,  # so that both runs below share a compiled program
    )  # fmt: skip
    trainer = config.trainer()
    state, report = trainer.run(trainer.init(0), 24 // trainer.num_envs)
    assert int(state.sharing.table.visits.sum()) == int(report.num_steps.sum()) * trainer.world.num_agents
    assert int(report.sharing["requests"].sum()) > 0
    assert "num_observations" not in report.sharing
    consmarl.train(config, tmp_path / "run")  # a whole run: metrics, checkpoints, result
    assert (tmp_path / "run" / "result.json").is_file()


def test_exact_counting_counts_each_agents_own_observations():
    exact = ExactCounting()
    codes = jnp.array([[1, 2], [1, 2], [3, 4]], jnp.uint8)
    seats, once = jnp.array([0, 1, 0]), jnp.ones(3, jnp.int32)
    state, counts = exact.count(exact.init(64, 2, 2), exact.marks(codes), seats, once)
    np.testing.assert_array_equal(counts, [1, 1, 1])
    state, counts = exact.count(state, exact.marks(codes), jnp.zeros(3, jnp.int32), once)
    np.testing.assert_array_equal(counts, [3, 3, 2])
    np.testing.assert_array_equal(exact.lookup(state, exact.marks(codes), jnp.ones(3, jnp.int32)), [1, 1, 0])


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (
            lambda: Cons(counting="by-colour"),
            "counting has no value 'by-colour': choose from .exact., .simhash., .codebook.",
        ),
        (lambda: consmarl.register_counting("exact", ByRow), "there is a way to count 'exact' already"),
        (lambda: consmarl.register_counting("loose", Loose), "the way to count 'loose' must be a frozen dataclass"),
    ],
)
def test_unknown_and_invalid_ways_to_count_are_refused(wrong, sentence):
    with pytest.raises(UsageError, match=sentence):
        wrong()
    assert set(COUNTINGS) == {"exact", "simhash", "codebook"}
