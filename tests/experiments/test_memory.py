"""Whether a run fits into memory is checked before anything is allocated."""

import re
from pathlib import Path
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from tests.experiments.small import SMALL

from consmarl.environments.interface import Counters
from consmarl.errors import UsageError
from consmarl.experiments import evaluation, machine, memory
from consmarl.experiments.configuration.config import TrainConfig
from consmarl.experiments.configuration.methods import LearnOptions
from consmarl.experiments.evaluation import episodes_at_once, evaluation_summary
from consmarl.experiments.memory import check_evaluation_memory
from consmarl.sharing.consulting import Consulting
from consmarl.sharing.none import ALONE
from consmarl.sharing.options import Consult
from consmarl.training.sizes import recall_bytes, tree_bytes


def has_free(monkeypatch, num_bytes):
    monkeypatch.setattr(memory, "available_bytes", lambda: num_bytes)


def check(config):
    memory.check_memory(config, config.trainer())


def test_estimated_sizes_equal_those_of_the_arrays():
    trainer = TrainConfig(**SMALL | dict(method="cons")).trainer()
    state = trainer.shapes()
    agents, slots, steps, codes = 3, 40, 8, 3 + 3 * 3 * 3
    by_agent = agents * slots * ((steps + 1) * codes * 1 + steps * (1 + 4))  # codes; actions and rewards
    by_slot = slots * (4 + 1 + 4 * steps)  # number of steps, end, epsilon
    assert tree_bytes(state.replay) == by_agent + by_slot + 4  # and a count
    assert tree_bytes(trainer.replay.init()) == tree_bytes(state.replay)
    assert tree_bytes(state.sharing.table) == 2**20 * memory.PLACE_BYTES + 8


def test_the_memory_for_teachers_histories_is_counted():
    settings = SMALL | dict(method="cons", share={"teacher_memory": "history"})
    trainer = TrainConfig(**settings).trainer()
    agents, envs, steps, codes, hidden, cells = 3, trainer.num_envs, 8, 3 + 3 * 3 * 3, SMALL["hidden_size"], 4 * 4
    pairs = agents * envs
    assert recall_bytes(trainer) == pairs * (agents * (hidden * 4 + 2 * cells) + 4 + steps * (codes + 4))
    assert recall_bytes(TrainConfig(**settings | dict(share={"teacher_memory": "student"})).trainer()) == 0


@pytest.mark.parametrize(
    ("settings", "option"),
    [
        (dict(replay_episodes=10_000_000), "--replay-episodes"),
        (dict(hidden_size=50_000), "--hidden-size"),
        (dict(method="i2q", learn=LearnOptions(value_size=100_000)), "--learn.value-size"),
        (dict(batch_episodes=1_000_000), "--batch-episodes"),
        (dict(method="cons", report_every=20_000_000, episodes=20_000_000), "--report-every"),
        (
            dict(
                method="cons",
                env="ft-20",
                set=("num_agents=500", "grid=60,60"),
                share={"teacher_memory": "history"},
                num_envs=400,
                episodes=4000,
                replay_episodes=1,
                preset="paper",
            ),
            "--num-envs",
        ),
        (dict(method="ga-comm", num_envs=2**22, episodes=2**22), "--num-envs"),
        (dict(episodes=2**23, num_envs=2**22, replay_episodes=1), "--num-envs"),
        (dict(final_episodes=1_000, replay_episodes=1, env="ft-20", set=("episode_limit=5000",)), "--final-episodes"),
    ],
)
def test_the_error_for_a_run_that_does_not_fit_suggests_a_value_that_does(settings, option, monkeypatch):
    has_free(monkeypatch, 8_000_000_000)
    config = TrainConfig(**settings)
    with pytest.raises(UsageError) as refused:
        check(config)
    sentence = str(refused.value)
    assert re.search(rf"needs [\d.,]+ [GT]B of memory, and 8.0 GB are free: {option} \d+ fits\.$", sentence), sentence
    value = int(re.search(r"(\d+) fits", sentence)[1])
    name = option.removeprefix("--").replace("-", "_")
    episodes = dict(episodes=value) if name == "report_every" else {}
    check(config.with_options({name: value, **episodes}))
    assert value > 1


def test_without_free_memory_no_value_is_suggested(monkeypatch):
    has_free(monkeypatch, 1_000)
    with pytest.raises(UsageError, match="even --replay-episodes 1 does not fit"):
        check(TrainConfig())


def test_small_runs_need_no_extra_memory_for_compiling(monkeypatch):
    has_free(monkeypatch, 200_000_000)
    check(TrainConfig())


def test_nothing_is_refused_if_the_free_memory_is_unknown(monkeypatch):
    has_free(monkeypatch, None)
    check(TrainConfig(replay_episodes=2**31 - 1))
    memory.check_evaluation_memory(TrainConfig().trainer(), 10**6)


def test_pursuit_with_the_default_replay_is_refused_in_20_gigabytes(monkeypatch):
    pytest.importorskip("pettingzoo.sisl.pursuit_v5", exc_type=ImportError)
    has_free(monkeypatch, 20_000_000_000)
    config = TrainConfig(preset="paper", env="pettingzoo:pettingzoo.sisl.pursuit_v5", set=("episode_limit=500",))
    with pytest.raises(UsageError, match=r"a replay of 10,000 episodes needs 24\.0 GB .* --replay-episodes 7200 fits"):
        check(config)


def test_evaluations_and_resumed_runs_are_checked(monkeypatch, tmp_path):
    has_free(monkeypatch, 1_000_000)
    trainer = TrainConfig(preset="paper").trainer()
    with pytest.raises(UsageError, match="400 episodes at once need"):
        memory.check_evaluation_memory(trainer, 400)
    with pytest.raises(UsageError, match=f"resuming {re.escape(str(tmp_path))} needs 0.1 GB"):
        memory.check_memory_to_resume(trainer, tmp_path)


@pytest.mark.parametrize(
    ("membership", "files", "left"),
    [
        ("0::/job\n", {"job/memory.max": "5000", "job/memory.current": "1500"}, [3500]),
        ("0::/job\n", {"job/memory.max": "max", "job/memory.current": "1500"}, []),
        ("0::/a/b\n", {"a/memory.max": "900", "a/memory.current": "100"}, [800]),
        (
            "4:cpu,memory:/job\n0::/\n",
            {"memory/job/memory.limit_in_bytes": "700", "memory/job/memory.usage_in_bytes": "600",
             "memory/job/memory.stat": "cache 5\ntotal_inactive_file 50\n"},
            [150],
        ),
        ("0::/job\n", {"job/memory.max": "500", "job/memory.current": "900"}, [0]),
        ("3:cpu:/job\n", {}, []),
        (None, {}, []),
    ],
)  # fmt: skip
def test_memory_limits_of_containers_are_respected(membership, files, left, tmp_path):
    root, self_cgroup = tmp_path / "cgroup", tmp_path / "self"
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    if membership is not None:
        self_cgroup.write_text(membership)
    assert list(machine._control_group_bytes(root, self_cgroup)) == left


@pytest.mark.skipif(not Path("/proc/meminfo").is_file(), reason="this system has no /proc/meminfo")
def test_the_available_memory_is_at_most_the_machines_total():
    total = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemTotal:"))
    assert 1 << 20 < machine.available_bytes() < int(total.split()[1]) * 1024


class Dice:
    """A trainer in which episode n returns n modulo 7."""

    def __init__(self):
        self.calls = []

    def evaluate(self, parameters, key, num_episodes, sharing):
        del parameters
        self.was_alone = sharing == ALONE
        first = sum(size for _, size in self.calls)
        self.calls.append((tuple(jax.random.key_data(key).tolist()), num_episodes))
        numbers = np.arange(first, first + num_episodes)
        rewards = (numbers % 7).astype(np.float32)[None, :, None]
        return SimpleNamespace(batch=SimpleNamespace(rewards=rewards), counters=Counters({}, {"gold": numbers % 3}))


def test_many_episodes_are_played_in_batches(monkeypatch):
    monkeypatch.setattr(evaluation, "episodes_at_once", lambda *_: 40)
    several, single = Dice(), Dice()
    key = jax.random.key(3)
    summary = evaluation_summary(several, None, key, 100)
    assert [size for _, size in several.calls] == [40, 40, 20]
    assert len({used for used, _ in several.calls}) == 3
    monkeypatch.setattr(evaluation, "episodes_at_once", lambda *_: 1000)
    assert summary == evaluation_summary(single, None, key, 100)  # the keys do not matter to these dice
    assert single.was_alone
    assert single.calls == [(tuple(jax.random.key_data(key).tolist()), 100)]  # one batch uses the key itself


@pytest.mark.parametrize("env", ["pgm-3ag", "pgm-6ag", "ft", "ft-20", "ft-multi", "cleanup"])
def test_evaluations_of_published_sizes_fit_in_one_batch(env):
    trainer = TrainConfig(env=env).trainer()
    assert episodes_at_once(trainer) >= 1_000
    large = TrainConfig(env=env, set=("episode_limit=10000",)).trainer()
    assert episodes_at_once(large) == 1_000 or env == "pgm-3ag"


def test_consulting_teammates_takes_additional_memory(monkeypatch):
    trainer = TrainConfig(env="ft-20", set=("num_agents=100", "grid=20,20")).trainer()
    consulting = Consulting(Consult.MEAN)
    assert episodes_at_once(trainer, consulting) < episodes_at_once(trainer)
    monkeypatch.setattr(memory, "available_bytes", lambda: 25_000_000)
    check_evaluation_memory(trainer, 4)
    with pytest.raises(UsageError, match="4 episodes at once need"):
        check_evaluation_memory(trainer, 4, consulting)
