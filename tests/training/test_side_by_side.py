"""Several Python environments side by side: one process or several play the same episodes, bit for bit."""

import dataclasses
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import pytest

from consmarl.environments.copies import Copies
from consmarl.environments.foreign import ForeignWorld, foreign_world
from consmarl.environments.pool import Pool, side_by_side
from consmarl.errors import UsageError
from consmarl.experiments.configuration.config import TrainConfig
from consmarl.experiments.metrics import row_of
from consmarl.experiments.watch import greedy_episodes
from consmarl.processes import python_path
from consmarl.sharing.none import ALONE
from consmarl.training.exploration import Greedy
from tests.training.moody import Moody

ENV = "pettingzoo:tests.training.moody:Moody"
NUM_ENVS = 4


def config(**others):
    return TrainConfig(
        env=ENV, method="iql", episodes=40, num_envs=NUM_ENVS, hidden_size=4, batch_episodes=2, replay_episodes=16,
        warmup_steps=0, **others,
    )  # fmt: skip


def is_there(pid):
    """Whether a process is running, or is a zombie whose exit status has not been read."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def trained(num_workers):
    trainer = dataclasses.replace(config().trainer(), num_workers=num_workers)
    state, report = trainer.run(trainer.init(3), 4, is_recording=True)
    parameters = trainer.learner.parameters(state.learner)
    evaluated = trainer.evaluate(parameters, jax.random.key(1), NUM_ENVS + 2)
    return trainer, jax.device_get((state._replace(key=()), report, evaluated))


@pytest.fixture(scope="module")
def in_one():
    return trained(0)


@pytest.fixture(scope="module")
def in_two():
    trainer, results = trained(2)
    yield trainer, results
    trainer.copies.close()


def test_two_processes_play_the_same_episodes_as_one(in_one, in_two):
    assert isinstance(in_one[0].copies, Copies)
    assert isinstance(in_two[0].copies, Pool)
    leaves, others = (jax.tree.leaves(results) for _, results in (in_one, in_two))
    assert len(leaves) == len(others)
    for one, other in zip(leaves, others, strict=True):
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()


def test_every_episode_equals_one_played_alone(in_one):
    """Replay each episode in an environment of its own, with its seed and the stored actions."""
    _, (state, report, _) = in_one
    stored, seeds = state.replay.episodes, report.counters.team["info_seed"].astype(int).ravel()
    assert len(set(seeds.tolist())) == 16
    assert set(stored.num_steps.tolist()) == {3, 4, 5, 6}
    for slot, seed in enumerate(seeds.tolist()):
        alone = ForeignWorld(Moody())
        np.testing.assert_array_equal(stored.codes[:, slot, 0], alone.reset(seed))
        length = stored.num_steps[slot]
        for number in range(length):
            step = alone.step(stored.actions[:, slot, number].astype(np.int32))
            np.testing.assert_array_equal(stored.codes[:, slot, number + 1], step.codes)
            np.testing.assert_array_equal(stored.rewards[:, slot, number], step.rewards)
        assert (step.is_over, bool(stored.terminated[slot])) == (True, True)
        for rest in (
            stored.codes[:, slot, length + 1 :],
            stored.actions[:, slot, length:],
            stored.rewards[:, slot, length:],
        ):
            assert not rest.any()
        assert report.counters.per_agent["info_hits"].reshape(16, 2)[slot].tolist() == list(alone.env.hits.values())


def test_a_round_has_one_update_per_episode(in_one):
    _, (state, report, evaluated) = in_one
    assert report.has_learned.shape == (4, NUM_ENVS)
    assert report.has_learned.all()
    assert (int(state.num_rounds), int(state.num_env_steps)) == (4, int(report.num_steps.sum()))
    assert int(state.replay.num_added) == 4 * NUM_ENVS
    assert evaluated.batch.num_steps.shape == (NUM_ENVS + 2,)  # the last round of this evaluation is incomplete


def test_evaluations_start_the_same_for_any_number_of_environments(in_one):
    trainer, (_, _, evaluated) = in_one
    alone = dataclasses.replace(trainer, num_envs=1)
    parameters = trainer.learner.parameters(trainer.init(3).learner)
    again = alone.evaluate(parameters, jax.random.key(1), NUM_ENVS + 2)
    np.testing.assert_array_equal(again.batch.codes[:, :, 0], evaluated.batch.codes[:, :, 0])
    np.testing.assert_array_equal(again.counters.team["info_seed"], evaluated.counters.team["info_seed"])


def test_numbers_in_infos_become_counters_with_harmless_names(in_one):
    trainer, (_, report, _) = in_one
    names = ["info_hits", "info_seed", "info__b_odd_name__b_", "info_loss"]
    assert [each.name for each in trainer.world.metrics] == names
    assert [each.title for each in trainer.world.metrics] == ["Hits", "Seed", "B odd name  b", "Loss"]
    row = row_of(report)
    # an episode's last value, summed over agents and averaged over episodes
    assert row["info_hits"] == round(float(report.counters.per_agent["info_hits"].sum(axis=-1).mean()), 6)
    assert (row["info__b_odd_name__b_"], row["info_loss"]) == (0.5, 2.0)
    assert trainer.metrics.counters(row)[-1].name == "info_loss"  # and not the learner's loss


def test_workers_load_no_jax_and_do_not_receive_terminal_interrupts(in_two):
    for pid in in_two[0].copies.pids:
        assert "jaxlib" not in Path(f"/proc/{pid}/maps").read_text()
        assert os.getpgid(pid) != os.getpgid(0)  # so that Ctrl-C does not reach them


@pytest.mark.parametrize(
    ("mood", "said"),
    [
        (
            "fails",
            r"Moody failed with ValueError: I do not feel like it \(in .*moody.py, line \d+\): --num-envs 1 shows",
        ),
        ("dies", r"a process that played .*Moody was killed by SIGKILL: .* `consmarl resume` continues"),
    ],
)
def test_a_failing_worker_gives_a_one_line_error_and_leaves_no_process_behind(mood, said):
    pool = side_by_side(foreign_world(ENV, mood=mood), NUM_ENVS, 2)
    pids = pool.pids
    pool.reset([1, 2, 3, 4])
    nothing = np.zeros((NUM_ENVS, 2), np.int32)
    pool.step(nothing)
    pool.step(nothing)
    with pytest.raises(UsageError, match=said) as error:
        pool.step(nothing)
    assert "\n" not in str(error.value)
    assert not any(map(is_there, pids))


def test_processes_end_when_their_pool_is_deleted():
    pool = side_by_side(foreign_world(ENV), 2, 2)
    pids = pool.pids
    assert all(map(is_there, pids))
    del pool
    assert not any(map(is_there, pids))


def test_processes_end_with_their_parent_even_in_the_middle_of_a_step():
    code = f"""if True:
        import numpy as np
        from consmarl.environments.foreign import foreign_world
        from consmarl.environments.pool import side_by_side
        pool = side_by_side(foreign_world({ENV!r}, mood="sleeps"), 2, 2)
        pool.reset([1, 2])
        print(*pool.pids, flush=True)
        for _ in range(3):
            pool.step(np.zeros((2, 2), np.int32))
    """
    command = [sys.executable, "-P", "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=os.environ | {"PYTHONPATH": python_path()}) as parent:
        pids = [int(each) for each in parent.stdout.readline().split()]
        assert len(pids) == 2
        time.sleep(0.3)
        parent.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 10
    while any(map(is_running, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(is_running, pids))


def is_running(pid):
    """Whether a process that is not our child is running; zombies, which may never be reaped, do not count."""
    status = Path(f"/proc/{pid}/stat")
    try:
        return status.read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_environments_that_other_processes_cannot_make_run_in_this_one():
    world = foreign_world(ENV, render_mode=np.float64(1.0))  # not a literal
    assert isinstance(side_by_side(world, 2, 2), Copies)
    with pytest.raises(UsageError, match=r"custom cannot be made again, .* ForeignWorld\(env, make=FUNCTION\)"):
        side_by_side(ForeignWorld(Moody()), 2)
    assert isinstance(side_by_side(ForeignWorld(Moody(), make=Moody), 2), Copies)


def test_continuous_actions_are_the_same_in_other_processes():
    """The bins are among the settings that are passed to other processes."""
    continuous = foreign_world(
        "pettingzoo:mpe2.simple_spread_v3", continuous_actions=True, action_bins=3, episode_limit=4
    )
    pools = [side_by_side(continuous, 2, num_workers) for num_workers in (0, 2)]
    rng = np.random.default_rng(0)
    played = [[each.reset([5, 6]).copy()] for each in pools]
    for _ in range(4):
        actions = np.stack([continuous.actions.exists.cumsum(axis=-1).max(axis=-1)] * 2) * rng.random((2, 3, 5))
        for each, rows in zip(pools, played, strict=True):
            rows.append(each.step(actions.astype(np.int32)).copy())
    for each in pools:
        each.close()
    in_one, in_two = (np.stack(rows) for rows in played)
    assert in_one["allowed"].shape == (5, 2, 3, 5, 3)  # [step, env, agent, dimension, bin]
    np.testing.assert_array_equal(in_one, in_two)
    assert len(np.unique(in_one["codes"][1:, 0, 0, 0])) > 1  # they moved


def test_several_environments_with_continuous_actions_train():
    trainer = TrainConfig(
        env="pettingzoo:mpe2.simple_spread_v3", method="cons", set=("continuous_actions=True", "episode_limit=4"),
        episodes=40, num_envs=2, hidden_size=4, batch_episodes=2, replay_episodes=16, warmup_steps=0,
    ).trainer()  # fmt: skip
    trainer = dataclasses.replace(trainer, num_workers=0)
    state, report = trainer.run(trainer.init(0), 2)
    assert state.replay.episodes.actions.shape == (3, 16, 4, 5)
    assert np.isfinite(report.learning["loss"]).all()
    parameters = trainer.learner.parameters(state.learner)
    actors = trainer.actors._replace(exploration=Greedy(), sharing=ALONE)
    (played,) = greedy_episodes(trainer.world, actors, parameters, 1, seed=0)
    assert played.actions.shape == (4, 3, 5)  # [step, agent, dimension], as `watch` names them
    assert len(trainer.world.name_of(played.actions[0, 0]).split(", ")) == 5
