"""Sharing in the loop: it only changes how agents act, survives interruption, and can be recorded."""

import dataclasses
import functools

import jax
import numpy as np
import pytest

import consmarl
from consmarl import AdHocTD, Cons, UsageError
from consmarl.environments.foreign import ForeignWorld
from consmarl.environments.gold_miner import GoldMiner
from consmarl.environments.pettingzoo import WorldParallelEnv
from consmarl.learners.interface import TeamSpec
from consmarl.learners.iql import IQL
from consmarl.sharing.none import NoSharing
from consmarl.sharing.options import TeacherMemory
from consmarl.sharing.record import Reply
from consmarl.training import checkpoints
from consmarl.training.exploration import EpsilonZGreedy
from consmarl.training.loop import Trainer
from consmarl.training.python_loop import PythonTrainer

SMALL = dict(grid=(3, 4), mining_steps=1, stones_per_pile=2, view=(3, 3), episode_limit=8)
WORLD = consmarl.make("pgm-3ag", **SMALL)
SIZES = dict(replay_episodes=12, batch_episodes=4, warmup_steps=40)
BUSY = Cons(start_episode=3, ask_scale=0.05, budget_requests=60, budget_answers=70)
REMEMBERING = dataclasses.replace(BUSY, teacher_memory=TeacherMemory.HISTORY, budget_requests=200, budget_answers=400)
CHUNK = 6  # rounds; always the same number, because each one is compiled separately


@functools.cache
def trainer(sharing, num_envs=2, **settings):
    learner = IQL(TeamSpec.of(WORLD), hidden_size=8, target_every_updates=5)
    return Trainer(world=WORLD, learner=learner, num_envs=num_envs, sharing=sharing, exploration=EpsilonZGreedy(),
                   **SIZES, **settings)  # fmt: skip


@functools.cache
def played(sharing, *, is_recording=False, **settings):
    """Run two chunks: the final state, and their concatenated reports."""
    run = trainer(sharing, **settings)
    state, reports = run.init(1), []
    for _ in range(2):
        state, report = run.run(state, CHUNK, is_recording=is_recording)
        reports.append(jax.device_get(report))
    return jax.device_get(state), jax.tree.map(lambda *parts: np.concatenate(parts), *reports)


def equal(left, right):
    pairs = zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True)
    return all(np.array_equal(*map(as_plain, pair)) for pair in pairs)


def as_plain(leaf):
    return jax.random.key_data(leaf) if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf


@pytest.mark.parametrize(
    "silent",
    [Cons(start_episode=10_000), AdHocTD(budget_requests=0, start_episode=0)],
    ids=["CONS that has not started", "AdHocTD without budget"],
)
def test_without_exchanges_sharing_is_bitwise_identical_to_iql(silent):
    alone, _ = played(NoSharing())
    together, _ = played(silent)
    assert equal(alone, together._replace(sharing=()))
    assert int(together.sharing.table.num_filled) > 0  # visits were counted
    busy, _ = played(BUSY)
    assert not equal(alone.learner.online, busy.learner.online)  # exchanges do make a difference


def test_sharing_begins_after_its_start():
    _, report = played(BUSY)
    advised = report.sharing["advised"]  # [round, agent, env]
    assert (advised[:2] == 0).all()  # episodes 0 to 3: sharing starts after episode 3
    assert (advised[2:5].sum(axis=(1, 2)) > 0).all()


def test_remaining_budgets_are_the_initial_ones_minus_what_was_used():
    state, report = played(BUSY)
    traffic = {name: report.sharing[name].sum(axis=(0, 2)) for name in ("advised", "taught", "answers")}
    assert state.sharing.requests_left.tolist() == (60 - traffic["advised"]).tolist()
    assert state.sharing.answers_left.tolist() == (70 - traffic["taught"]).tolist()
    assert traffic["answers"].sum() == traffic["taught"].sum()
    assert (report.sharing["requests_left"] >= 0).all()
    assert (report.sharing["answers_left"] >= 0).all()
    assert traffic["taught"].max() == 70  # one agent's budget was used up, and not exceeded


def test_counts_match_the_observations_played():
    run = trainer(BUSY)
    state, _ = run.run(run.init(1), CHUNK)  # as many episodes as replay holds
    episodes = jax.device_get(state.replay.episodes)
    seen = [set() for _ in range(3)]
    for agent in range(3):
        for episode, length in enumerate(episodes.num_steps[:12].tolist()):
            seen[agent] |= {codes.tobytes() for codes in episodes.codes[agent, episode, :length]}
    assert int(state.sharing.table.num_filled) == sum(map(len, seen))
    assert int(state.sharing.table.counts.sum()) == 3 * int(state.num_env_steps)


def test_the_table_grows_between_chunks_without_changing_results(tmp_path):
    small = trainer(dataclasses.replace(BUSY, initial_places=64))
    state, sizes = small.init(1), []
    for number in range(3):
        sizes.append(state.sharing.table.num_places)
        checkpoints.save(tmp_path, number, state, small.sharing.facts(state.sharing), keep=3)
        if number < 2:
            state, _ = small.run(state, CHUNK)
    assert sizes[0] < sizes[1] <= sizes[2]
    reference, _ = played(BUSY)
    assert equal(state._replace(sharing=state.sharing[1:]), reference._replace(sharing=reference.sharing[1:]))
    (tmp_path / "checkpoint-000000002" / "manifest.json").unlink()
    # the newest checkpoint is damaged; the one before has a larger table than a new run
    restored = checkpoints.restore(tmp_path, functools.partial(small.init, 1))
    assert restored.number == 1
    assert restored.state.sharing.table.num_places == sizes[1]
    resumed, _ = small.run(restored.state, CHUNK)
    assert equal(resumed, state)


def test_a_table_that_lost_visits_stops_the_run():
    run = trainer(BUSY)
    state = run.init(0)
    table = state.sharing.table._replace(num_lost=state.sharing.table.num_lost + 3)
    with pytest.raises(UsageError, match="3 visits found no place"):
        run.run(state._replace(sharing=state.sharing._replace(table=table)), CHUNK)


def test_recording_changes_nothing_and_captures_every_exchange():
    state, report = played(BUSY)
    recorded, full = played(BUSY, is_recording=True)
    assert equal(state, recorded)
    steps = full.records.step  # [round, step, agent, env, …]
    assert steps.is_asking.sum() == report.sharing["requests"].sum()
    is_advised = steps.student.is_advised & steps.is_asking
    assert is_advised.sum() == report.sharing["advised"].sum()
    assert (steps.teachers.reply == Reply.ANSWERED).sum() == report.sharing["answers"].sum()
    np.testing.assert_array_equal(steps.action, np.where(is_advised, steps.student.action, steps.own_action))
    stored = recorded.replay.episodes.actions  # [agent, episode, step], the last twelve episodes
    by_episode = steps.action[CHUNK:].transpose(2, 0, 3, 1).reshape(3, 12, 8)
    is_live = full.records.is_live[CHUNK:].transpose(0, 2, 1).reshape(12, 8)
    np.testing.assert_array_equal(stored[:, is_live], by_episode[:, is_live])


class FixedStart(GoldMiner):
    """A single layout, because the same seed gives different layouts in the two loops."""

    def generate_layout(self, key):
        del key
        start = {"agents": [[0, 0], [0, 1], [2, 2]], "golds": [[1, 1]], "stones": [[0, 3], [2, 0]]}
        return self.layout_from(start)


@pytest.mark.parametrize(
    ("sharing", "counting"),
    [(BUSY, "exact"), (REMEMBERING, "exact"), (BUSY, "codebook")],
    ids=["memory of now", "history", "codebook"],
)
def test_our_environments_share_the_same_in_the_python_loop_and_compiled(sharing, counting):
    world = FixedStart(num_agents=3, num_mines=1, num_piles=2, **SMALL)
    foreign = ForeignWorld(WorldParallelEnv(world), episode_limit=world.episode_limit)
    learner = IQL(TeamSpec.of(foreign), hidden_size=8, target_every_updates=5)
    # no learning, after which weights would agree only up to rounding, and a draw could turn out differently
    waiting = SIZES | dict(warmup_steps=10_000)
    # floats and whole numbers have different defaults
    sharing = dataclasses.replace(sharing, counting=counting)
    parts = dict(sharing=sharing, exploration=EpsilonZGreedy(), **waiting)
    in_python = PythonTrainer(world=foreign, learner=learner, **parts)
    compiled = Trainer(world=world, learner=trainer(BUSY).learner, num_envs=1, **parts)
    (state, report), (python_state, python_report) = (
        each.run(each.init(2), CHUNK + 2, is_recording=True) for each in (compiled, in_python)
    )
    assert np.asarray(report.sharing["advised"]).sum() > 0
    for name in ("requests", "answers", "taught", "advised", "requests_left", "answers_left", "num_observations"):
        np.testing.assert_array_equal(python_report.sharing[name], report.sharing[name], err_msg=name)
    is_live = np.asarray(report.records.is_live)[:, :, None, :]
    for name in ("is_asking", "action", "num_visits"):
        ours, theirs = (np.asarray(getattr(each.records.step, name)) for each in (report, python_report))
        np.testing.assert_array_equal(ours * is_live, theirs * is_live, err_msg=name)
    told = (np.asarray(each.records.step.teachers.max_value) for each in (report, python_report))
    np.testing.assert_allclose(*(each * is_live[..., None] for each in told), rtol=1e-5, atol=1e-6)
    assert equal(state.sharing[1:], python_state.sharing[1:])


def test_a_run_whose_teachers_use_histories_resumes_exactly(tmp_path):
    run = trainer(REMEMBERING)
    state, _ = run.run(run.init(1), CHUNK)
    checkpoints.save(tmp_path, 1, state, run.sharing.facts(state.sharing), keep=1)
    whole, report = run.run(state, CHUNK)
    resumed, _ = run.run(checkpoints.restore(tmp_path, functools.partial(run.init, 1)).state, CHUNK)
    assert equal(whole, resumed)
    assert report.sharing["advised"].sum() > 0
    assert not equal(whole.learner.online, played(BUSY)[0].learner.online)  # the teachers' histories make a difference
