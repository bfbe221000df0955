"""Acting and learning with actions of several dimensions, from exploration to files."""

import json
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

from consmarl.cli import main
from consmarl.environments.foreign import ForeignWorld
from consmarl.environments.registry import register_world
from consmarl.errors import UsageError
from consmarl.experiments.configuration.config import TrainConfig
from consmarl.experiments.exchanges import episode_path, read_episode
from consmarl.learners.interface import TeamSpec
from consmarl.learners.iql import IQL
from consmarl.learners.optimiser import Adam
from consmarl.sharing.cons import Cons
from consmarl.training.exploration import (
    EpsilonGreedy,
    EpsilonGreedyTogether,
    EpsilonSquared,
    EpsilonZGreedy,
    ExploringBeginners,
    Greedy,
    LinearSchedule,
)
from consmarl.training.loop import Trainer
from consmarl.training.python_loop import PythonTrainer
from tests.environments.test_actions import Knobs
from tests.experiments.small import assert_same_run, rows
from tests.probes.continuous import BINS, Aim

AGENTS, ENVS, BRANCHES = 3, 400, 2


@pytest.fixture
def aim(unregistered):  # noqa: ARG001
    """The name of the probe, registered as a plugin would do it."""
    register_world("aim", Aim)
    return "aim"


def test_iql_finds_the_best_action_in_two_dimensions():
    world = Aim()
    learner = IQL(TeamSpec.of(world), hidden_size=32, discount=0.0, optimiser=Adam(learning_rate=3e-3))
    trainer = Trainer(
        world=world, learner=learner, num_envs=8, batch_episodes=32, replay_episodes=512, warmup_steps=64,
        epsilon=LinearSchedule(1.0, 0.05, 1_500),
    )  # fmt: skip
    state, _ = trainer.run(trainer.init(0), 120)
    played = trainer.evaluate(learner.parameters(state.learner), jax.random.key(1), 32)
    returns = played.batch.rewards.sum(axis=(0, 2))
    # at most one bin off in a few of the 8 numbers of an episode; random actions return −8 on average
    assert float(returns.mean()) > -0.6
    assert played.batch.actions.shape == (2, 32, 2, 2)


def scores_of(seed=0):
    return jnp.asarray(np.random.default_rng(seed).normal(size=(AGENTS, ENVS, BRANCHES, BINS)), jnp.float32)


EXPLORATIONS = [EpsilonGreedy(), EpsilonGreedyTogether(), EpsilonZGreedy(), ExploringBeginners(EpsilonZGreedy(), (1,))]


@pytest.mark.parametrize("exploration", EXPLORATIONS, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("is_masked", [False, True])
def test_exploring_is_decided_once_and_actions_are_drawn_per_dimension(exploration, is_masked):
    scores = scores_of()
    allowed = np.ones(scores.shape, bool)
    allowed[:, :, 1, BINS - 1] = not is_masked
    state = exploration.begin_in_branches(AGENTS, ENVS, BRANCHES)
    if is_masked:
        scores = jnp.where(allowed, scores, -jnp.inf)
        choice = exploration.choose_allowed(jax.random.key(1), scores, jnp.float32(0.5), state, jnp.asarray(allowed))
    else:
        choice = exploration.choose(jax.random.key(1), scores, jnp.float32(0.5), state)
    actions, explores, best = (np.asarray(each) for each in (choice.actions, choice.is_exploring, scores.argmax(-1)))
    assert actions.shape == (AGENTS, ENVS, BRANCHES)
    assert explores.shape == (AGENTS, ENVS)
    assert np.take_along_axis(allowed, actions[..., None], axis=-1).all()
    np.testing.assert_array_equal(actions[~explores], best[~explores])
    beginners = [0, 2] if isinstance(exploration, ExploringBeginners) else [0, 1, 2]
    assert 0.42 < explores[beginners].mean() < 0.58
    tried = actions[explores]
    for branch in range(BRANCHES):
        count = BINS - (is_masked and branch == 1)
        shares = np.bincount(tried[:, branch], minlength=BINS) / len(tried)
        assert (np.abs(shares[:count] - 1 / count) < 0.08).all()
    # dimensions are drawn independently, so all pairs occur
    assert len({tuple(row) for row in tried.tolist()}) == BINS * (BINS - is_masked)


def test_greedy_and_squared_exploration_cover_every_dimension():
    scores = scores_of()
    greedy = Greedy().choose(jax.random.key(0), scores, jnp.float32(0), ())
    np.testing.assert_array_equal(greedy.actions, scores.argmax(axis=-1))
    squared = EpsilonSquared().choose(jax.random.key(0), scores, jnp.float32(0.5), ())
    assert 0.2 < float(squared.is_exploring.mean()) < 0.3


def test_a_repeated_action_is_repeated_in_all_dimensions():
    exploration, scores = EpsilonZGreedy(), scores_of()
    state = exploration.begin_in_branches(AGENTS, ENVS, BRANCHES)
    first = exploration.choose(jax.random.key(1), scores, jnp.float32(1.0), state)
    second = exploration.choose(jax.random.key(2), scores_of(1), jnp.float32(0.0), first.state)
    goes_on = np.asarray(first.state.num_left > 0)
    assert goes_on.any()
    np.testing.assert_array_equal(np.asarray(second.actions)[goes_on], np.asarray(first.actions)[goes_on])
    np.testing.assert_array_equal(second.is_exploring, goes_on)


@pytest.mark.parametrize("method", ["qmix", "maven", "ga-comm", "i2q"])
def test_unsuitable_methods_are_refused_and_suitable_ones_suggested(aim, method):
    with pytest.raises(UsageError) as error:
        TrainConfig(env=aim, method=method, episodes=8, num_envs=2).trainer()
    assert str(error.value) == (
        f"actions in aim have 2 dimensions, which method {method} cannot choose in: choose one of iql, adhoc-td, cons, "
        "seql, vdn."
    )


SMALL = ("--hidden-size", "4", "--batch-episodes", "2", "--replay-episodes", "16", "--warmup-steps", "0",
         "--evaluation-episodes", "2", "--final-episodes", "2", "--no-tensorboard", "--episodes", "16", "--num-envs",
         "2", "--report-every", "8", "--checkpoint-every", "8", "--share.start-episode", "0", "--share.ask-scale",
         "0.01", "--share.ask-gate", "always", "--record", "4", "12")  # fmt: skip


def test_a_run_with_sharing_can_be_resumed_evaluated_and_viewed(aim, tmp_path, capsys):
    run, again = tmp_path / "run", tmp_path / "again"
    words = ["train", "--env", aim, "--method", "cons", *SMALL]
    assert main([*words, "--out", str(run)]) == 0
    shutil.copytree(run, again)
    for path in (again / "result.json", again / "policy.safetensors"):
        path.unlink()
    shutil.rmtree(again / "checkpoints" / "checkpoint-000000016")
    assert main(["resume", str(again)]) == 0
    assert_same_run(again, run)
    assert sum(row.get("requests", 0) for row in rows(run)) > 0
    recorded = read_episode(episode_path(run, 12))
    assert recorded.num_dimensions == 2
    assert recorded.steps["action"].shape == (2, 2, 2)
    assert recorded.in_dimension(1).action_names == ["-1", "-0.5", "0", "0.5", "1"]
    assert main(["evaluate", str(run), "--episodes", "2", "--consult", "cons"]) == 0
    assert main(["view", str(run), "--dimension", "1"]) == 0
    page = (run / "exchange.html").read_text()
    assert "Actions have 2 dimensions, and this page shows the choices in dimension 1" in page
    assert '"-0.5"' in page
    assert_refuses_other_names(episode_path(run, 12))
    capsys.readouterr()
    assert main(["view", str(run), "--dimension", "2"]) == 2
    assert "have dimensions 0 to 1: there is no dimension 2 to view." in capsys.readouterr().err.replace("\n", " ")


def assert_refuses_other_names(path):
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    header = json.loads(str(arrays["header"]))
    for names, said in ((None, "does not name the choices"), ([["a"] * BINS], "does not name the choices"),
                        ([[1] * BINS] * 2, "not words")):  # fmt: skip
        damaged = path.with_name("damaged.npz")
        np.savez(damaged, **arrays | {"header": np.array(json.dumps(header | {"choices": names}))})
        with pytest.raises(UsageError, match=said):
            read_episode(damaged)


def test_python_environments_support_several_dimensions():
    """The agents' spaces differ: a Box of two numbers, and a MultiDiscrete whose first dimension has fewer choices."""
    env = Knobs(spaces.Box(-1, 1, (2,), np.float32), spaces.MultiDiscrete([2, 3]))
    world = ForeignWorld(env, action_bins=3)
    trainer = PythonTrainer(
        world=world, learner=IQL(TeamSpec.of(world), hidden_size=4), batch_episodes=2, replay_episodes=4,
        warmup_steps=0, sharing=Cons(start_episode=0, initial_places=64, ask_scale=0.01, eligibility="anyone"),
    )  # fmt: skip
    state, report = trainer.run(trainer.init(0), 4, is_recording=True)  # `Knobs` checks what it receives
    assert np.isfinite(report.learning["loss"]).all()
    assert report.sharing["requests"].sum() > 0
    assert state.replay.episodes.actions.shape == (2, 4, 3, 2)
    assert state.replay.episodes.allowed.shape == (2, 4, 4, 2, 3)
    assert len({tuple(each["left"].tolist()) for each in env.received}) > 1
    other, _ = trainer.run(trainer.init(0), 2, is_recording=True)
    other, _ = trainer.run(other, 2, is_recording=True)
    np.testing.assert_array_equal(other.replay.episodes.actions, state.replay.episodes.actions)
    np.testing.assert_array_equal(other.learner.online.head_weights, state.learner.online.head_weights)
