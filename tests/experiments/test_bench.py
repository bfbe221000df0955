"""What `consmarl bench` measures: consistent figures, for a run that learns and shares from the start."""

import dataclasses
import os

import jax
import numpy as np
import pytest

from consmarl.errors import UsageError
from consmarl.experiments import bench
from consmarl.experiments.bench import Measured, measure, measure_here, print_bench, update_flop, without_warmup
from consmarl.experiments.configuration.config import TrainConfig
from consmarl.experiments.configuration.sharings import ShareOptions
from consmarl.learners.iql import IQL

SMALL = TrainConfig(
    env="pgm-3ag", set=("grid=4,4", "mining_steps=1", "episode_limit=8", "view=3,3"), episodes=400, hidden_size=8,
    batch_episodes=4, replay_episodes=40, warmup_steps=100_000, num_envs=2,
)  # fmt: skip
FOREIGN = dataclasses.replace(
    SMALL, env="pettingzoo:consmarl:parallel_env", set=("id=pgm-3ag", "episode_limit=4"), num_envs=None
)
ON_POLICY = TrainConfig(env=SMALL.env, set=SMALL.set, episodes=400, method="ga-comm", hidden_size=8)
HASTE = dict(turn_seconds=0.01)


def assert_hangs_together(measured, episodes):
    figures = dataclasses.asdict(measured)
    assert all(np.isfinite(value) and value > 0 for value in figures.values()), figures
    assert measured.run_seconds == pytest.approx(measured.seconds_per_episode * episodes)
    assert 0 < measured.share_of_sgemm < 1
    arithmetic = measured.share_of_sgemm * measured.sgemm_rate * measured.seconds_per_episode
    assert arithmetic == pytest.approx(measured.flop_per_episode)


def test_figures_are_positive_and_consistent():
    measured = measure_here(SMALL, **HASTE)
    assert_hangs_together(measured, episodes=400)
    # playing an episode is part of training with it
    assert measured.seconds_per_episode > 8 / measured.env_steps_per_second


def test_a_third_party_environment_is_measured_in_a_separate_process(monkeypatch):
    monkeypatch.setenv("JAX_DISABLE_MOST_OPTIMIZATIONS", "true")
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    assert_hangs_together(measure(FOREIGN, **HASTE), episodes=400)
    assert cores is None or os.sched_getaffinity(0) == cores  # only the other process is pinned


def test_the_timed_run_learns_from_the_first_episode():
    config = without_warmup(SMALL)
    trainer = config.trainer()
    _, report = trainer.run(trainer.init(0), 2)
    assert np.asarray(report.has_learned).all()
    assert trainer.replay.capacity == 40
    assert without_warmup(dataclasses.replace(SMALL, replay_episodes=10_000)).replay_episodes == bench.REPLAY_EPISODES


def test_the_timed_run_shares_from_the_first_episode():
    share = ShareOptions(temperature=0.5)
    config = without_warmup(dataclasses.replace(SMALL, method="cons", share=share))
    assert config.share == ShareOptions(temperature=0.5, start_episode=0)
    assert config.trainer().sharing.start_episode == 0
    assert without_warmup(SMALL).share == ShareOptions()


@pytest.mark.parametrize("change", [dict(batch_episodes=8), dict(set=("episode_limit=50",))])
def test_the_arithmetic_of_an_update_scales_with_batch_and_episode_length(change):
    # pgm-3ag has 25 steps
    small = dataclasses.replace(SMALL, set=(), preset="paper")
    assert update_flop(dataclasses.replace(small, **change).trainer()) == 2 * update_flop(small.trainer())


def test_sharing_adds_nothing_to_the_arithmetic_of_an_update():
    assert update_flop(dataclasses.replace(SMALL, method="cons").trainer()) == update_flop(SMALL.trainer())


def test_a_learner_without_replay_learns_from_each_episode_once():
    alone, several = (dataclasses.replace(ON_POLICY, num_envs=num_envs).trainer() for num_envs in (1, 2))
    assert update_flop(alone) == update_flop(several) > 0


def test_an_update_that_cannot_be_counted_has_no_share_of_sgemm():
    class Patient(IQL):
        """A learner whose update loops an unknown number of times, until its weights are small."""

        def update(self, state, batch, key):
            del batch, key
            weights = state.online.head_weights[0]
            return jax.lax.while_loop(lambda x: abs(x).max() > 1, lambda x: x @ weights.T @ weights, weights), {}

    trainer = SMALL.trainer()
    assert update_flop(dataclasses.replace(trainer, learner=Patient(trainer.learner.spec))) is None
    assert Measured(1e9, 1e6, 0.1, 1.0, 400, None).share_of_sgemm is None


def test_best_seconds_ignores_the_first_call():
    calls = []

    def work():
        calls.append(len(calls))
        if len(calls) == 1:
            bench.time.sleep(0.2)
        return jax.numpy.zeros(())

    assert bench.best_seconds(work, repeats=2, at_least=0.001) < 0.1
    assert len(calls) >= 3


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (dict(devices=2), "measured on one core: devices must be 1, not 2"),
        (dict(env="pgm-4ag"), "no world 'pgm-4ag': did you mean"),
        (dict(env="pettingzoo:absent", num_envs=1), "no module 'absent'"),
    ],
)
def test_configurations_that_cannot_be_measured_are_refused(change, sentence):
    with pytest.raises(UsageError, match=sentence):
        measure(dataclasses.replace(SMALL, **change))


BROKEN = """
from consmarl import parallel_env as sound

def parallel_env():
    env = sound("pgm-3ag")
    def broken(actions):
        raise RuntimeError("broken on purpose")
    env.step = broken
    return env
"""


def test_the_error_names_an_environment_that_fails(tmp_path, monkeypatch, capfd):
    (tmp_path / "broken_world.py").write_text(BROKEN)
    monkeypatch.syspath_prepend(tmp_path)  # the measuring process searches the same directories
    config = dataclasses.replace(FOREIGN, env="pettingzoo:broken_world", set=("episode_limit=4",))
    with pytest.raises(UsageError, match="measuring pettingzoo:broken_world stopped with exit code 1"):
        measure(config, **HASTE)
    assert "broken on purpose" in capfd.readouterr().err


def test_the_table_says_how_long_the_run_takes(monkeypatch, capsys):
    monkeypatch.setattr(bench, "measure", lambda config: Measured(1e11, 5e5, 0.05, 9.0, config.episodes, 2.5e9))
    print_bench(TrainConfig(method="cons", env="pgm-6ag", episodes=80_000))
    printed = capsys.readouterr().out
    for words in ("100.0 GFLOP/s", "pgm-6ag", "500,000 steps/s", "cons", "50.00 ms", "50%", "9.0 s", "1:06:40"):
        assert words in printed


@pytest.mark.parametrize(("seconds", "words"), [(42, "0:42"), (600, "10:00"), (9000, "2:30:00")])
def test_durations_are_written_as_minutes_and_seconds(seconds, words):
    assert bench.duration(seconds) == words
