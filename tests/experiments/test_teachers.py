"""Experienced agents in a new run act and teach; only newcomers explore, ask and learn."""

import dataclasses
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file
from tests.experiments.small import assert_same_run

from consmarl.errors import UsageError
from consmarl.experiments import exchanges
from consmarl.experiments.configuration.config import TrainConfig
from consmarl.experiments.configuration.sharings import ShareOptions
from consmarl.experiments.train import resume, train
from consmarl.sharing.record import Reply

WORLD = ("grid=4,4", "mining_steps=1", "stones_per_pile=2", "episode_limit=8", "view=3,3")
OLD = TrainConfig(
    env="pgm-3ag", set=WORLD, episodes=80, hidden_size=8, batch_episodes=4, replay_episodes=40, warmup_steps=40,
    num_envs=2, report_every=20, evaluate_every=80, evaluation_episodes=4, final_episodes=4, checkpoint_every=40,
)  # fmt: skip
RECORDED = (10, 45)


@pytest.fixture(scope="module")
def old_hands(tmp_path_factory):
    return train(OLD, tmp_path_factory.mktemp("old") / "run")


def among(old_hands, **settings):
    return dataclasses.replace(OLD, method="cons", seed=1, teachers=str(old_hands), record=RECORDED, **settings)


@pytest.fixture(scope="module")
def joined(old_hands, tmp_path_factory):
    share = ShareOptions(ask_gate="always", ask_scale=0.05)
    config = among(old_hands, newcomers=(1,), epsilon_start=0.5, share=share)
    return train(config, tmp_path_factory.mktemp("new") / "run")


def test_only_newcomers_learn(old_hands, joined):
    before, after = (load_file(run / "policy.safetensors") for run in (old_hands, joined))
    for name in before:
        is_same = [np.array_equal(before[name][agent], after[name][agent]) for agent in range(3)]
        assert is_same == [True, False, True], name


def test_only_newcomers_explore_and_ask_and_experts_answer(joined):
    asked = answered = 0
    for number in RECORDED:
        recorded = exchanges.read_episode(exchanges.episode_path(joined, number))
        assert not recorded.steps["is_exploring"][:, [0, 2]].any()
        assert recorded.steps["is_exploring"][:, 1].any()
        assert (recorded.requests["student"] == 1).all()
        asked += len(recorded.requests["student"])
        answered += (recorded.teachers["reply"][:, [0, 2]] == Reply.ANSWERED).sum()
    assert asked > 0
    assert answered > 0


def test_resuming_is_exact_and_does_not_need_the_teachers_file(joined, tmp_path):
    copy = tmp_path / "run"
    shutil.copytree(joined, copy)
    newest = max((copy / "checkpoints").iterdir())
    shutil.rmtree(newest)
    for name in ("policy.safetensors", "result.json"):
        (copy / name).unlink()
    config = (copy / "config.json").read_text()
    (copy / "config.json").write_text(config.replace(str(TrainConfig.from_json(config, is_run=True).teachers), "gone"))
    resume(copy)
    shutil.copy(joined / "config.json", copy / "config.json")
    assert_same_run(joined, copy)


def test_by_default_agent_0_is_the_newcomer_and_sharing_starts_at_once(old_hands):
    config = among(old_hands)
    assert config.experts(3) == (1, 2)
    assert config.resolved().share.start_episode == 0
    assert config.trainer().sharing.experts == (1, 2)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (dict(newcomers=(3,)), "newcomers must be agents from 0 to 2, not 3"),
        (dict(newcomers=(0, 1, 2)), "all 3 agents are newcomers"),
        (dict(set=(*WORLD[:1], *WORLD[2:])), r"learned in pgm-3ag grid=4,4 .*, and this run is in pgm-3ag grid=4,4 st"),
        (dict(hidden_size=9), "do not fit this run's: .* hidden_size 8, learn.head dueling"),
        (dict(weights="shared"), "share one network"),
        (dict(teachers="nowhere"), "there is no policy file nowhere"),
    ],
)
def test_mismatched_teachers_are_refused_before_a_directory_is_made(old_hands, tmp_path, settings, sentence):
    config = dataclasses.replace(among(old_hands), **settings)
    with pytest.raises(UsageError, match=sentence):
        train(config, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_newcomers_need_teachers():
    with pytest.raises(UsageError, match="name those with --teachers RUN, or set --join EPISODES"):
        TrainConfig(newcomers=(0,))


def test_a_team_that_learns_one_joint_value_accepts_no_newcomers(old_hands, tmp_path):
    config = dataclasses.replace(among(old_hands), method="vdn", sharing=None)
    with pytest.raises(UsageError, match="learns one value together"):
        train(config, tmp_path / "run")


JOINING = dataclasses.replace(OLD, method="cons", newcomers=(2,), join=60, warmup_steps=0, record=(20, 59, 60),
                              share=ShareOptions(start_episode=0, ask_gate="always", ask_scale=0.05))  # fmt: skip


@pytest.fixture(scope="module")
def with_late_joiner(tmp_path_factory):
    return train(JOINING, tmp_path_factory.mktemp("late") / "run")


def test_a_late_joiner_starts_with_no_visits_and_full_exploration(with_late_joiner):
    before, after = (
        exchanges.read_episode(exchanges.episode_path(with_late_joiner, number)).steps for number in (59, 60)
    )
    assert before["num_visits"][:, 2].max() > 1
    first = after["num_visits"][0]
    assert first[2] == 1  # its first visit: it has not inherited the counts of the agent it replaced
    # ε has decayed for everyone; the newcomer starts again with the ε of a first episode
    assert after["epsilon"][0] > before["epsilon"][-1]
    trainer = JOINING.trainer()
    team, own = (np.asarray(trainer.round_epsilon(rounds, 480))[0, :, 0] for rounds in (29, 30))
    assert team.tolist() == [team[0]] * 3
    assert own.tolist() == [team[0], team[0], 1.0]


def test_joining_leaves_the_other_agents_unchanged():
    trainer = JOINING.trainer()
    state = trainer.init(0)._replace(num_rounds=jnp.int32(30))
    state = state._replace(replay=state.replay._replace(num_added=jnp.int32(60)))
    joined = jax.jit(trainer.with_newcomers)(state)
    for before, after in zip(*map(jax.tree.leaves, (state.learner.online, joined.learner.online)), strict=True):
        assert [bool((before[agent] == after[agent]).all()) for agent in range(3)] == [True, True, False]
    assert int(joined.replay.num_added) == 0
    later = jax.jit(trainer.with_newcomers)(joined._replace(num_rounds=jnp.int32(31)))
    for before, after in zip(*map(jax.tree.leaves, (joined.learner, later.learner)), strict=True):
        np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (dict(join=61), r"multiple of num_envs \(2\) below the run's 80 episodes, not 61"),
        (dict(join=80), "below the run's 80 episodes, not 80"),
        (dict(join=60, newcomers=(0, 1, 2)), "all 3 agents are newcomers"),
        (dict(join=60, teachers="run"), "not both"),
        (dict(join=60, weights="shared"), "share one network, so none can be replaced"),
    ],
)
def test_impossible_join_settings_are_refused(tmp_path, settings, sentence):
    with pytest.raises(UsageError, match=sentence):
        train(dataclasses.replace(OLD, **settings), tmp_path / "run")
    assert not (tmp_path / "run").exists()
