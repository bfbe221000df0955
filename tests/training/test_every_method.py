"""Every method in every environment: it trains, resumes from a checkpoint bit for bit, and its policy can be played.

Nearly all the time goes into compiling, so initial weights are drawn without it; the probes use the real ones.
While you work on the code, one environment per method is enough: the other pairs are marked slow.

Results of runs with the preset `paper` are stored in paper_runs.json, so that no other change alters them unnoticed.
Rewrite the file only for a new environment or method: with CONSMARL_KEEP_PAPER_RUNS=1, the results of the tests that
are run are stored.
"""

import functools
import json
import os
from pathlib import Path

import jax
import numpy as np
import pytest

from consmarl.environments.foreign import ForeignWorld
from consmarl.environments.registry import world_ids
from consmarl.experiments.configuration.config import TrainConfig
from consmarl.experiments.configuration.methods import METHODS
from consmarl.learners.ga_comm import GAComm
from consmarl.learners.interface import TeamSpec
from consmarl.learners.maven import MAVEN
from consmarl.networks.linear import apply_perceptron
from consmarl.training import checkpoints, parts
from consmarl.training.exploration import EpsilonGreedy, SampledPolicy
from consmarl.training.python_loop import PythonTrainer
from tests.training.handmade import Handmade
from tests.training.test_loop import equal

ROUNDS = 2  # compiled once for all
PAPER_RUNS = Path(__file__).parent / "paper_runs.json"
KEEPS_PAPER_RUNS = bool(os.environ.get("CONSMARL_KEEP_PAPER_RUNS"))


@functools.cache
def small_run(method, env, **settings):
    config = TrainConfig(
        preset="paper", method=method, env=env, set=("episode_limit=4",), episodes=2 * ROUNDS, num_envs=1,
        hidden_size=4, batch_episodes=2, replay_episodes=4, warmup_steps=0, target_every_updates=1,
    ).with_options(settings)  # fmt: skip
    return config.trainer()


def drawn(learner, key):
    """Return an initial state drawn by NumPy, without negative numbers, since it also contains mean squares."""
    rng = np.random.default_rng(int(jax.random.key_data(key)[-1]))

    def leaf(like):
        is_real = np.issubdtype(like.dtype, np.floating)
        return jax.numpy.asarray(rng.uniform(0, 0.1, like.shape) if is_real else np.zeros(like.shape), like.dtype)

    return jax.tree.map(leaf, jax.eval_shape(learner.init, key))


@pytest.fixture
def _weights_without_compiling(monkeypatch):
    monkeypatch.setattr(parts, "_init_learner", drawn)


def gist(run, state, report):
    """Summarise a run in a few numbers, which almost any change would alter."""
    learned = [np.abs(leaf).mean() for leaf in jax.tree.leaves(run.learner.parameters(state.learner))]
    numbers = {name: np.mean(values) for name, values in report.learning.items()}
    if not run.learner.is_on_policy:
        played = state.replay.episodes
        numbers |= {"rewards": played.rewards.sum(), "actions": played.actions.sum()}
    return {name: float(value) for name, value in (numbers | {"parameters": np.sum(learned)}).items()}


def kept_paper_run(name, found):
    """Return the stored summary of a run with the preset `paper`; store the given one first if that is requested."""
    kept = json.loads(PAPER_RUNS.read_text()) if PAPER_RUNS.exists() else {}
    if KEEPS_PAPER_RUNS:
        kept = dict(sorted((kept | {name: found}).items()))
        PAPER_RUNS.write_text(json.dumps(kept, indent=1) + "\n")
    return kept[name]


def pairs():
    """Yield all pairs; of those not marked slow, each method has one, and each environment at least one."""
    worlds = world_ids()
    for number, method in enumerate(METHODS):
        for place, env in enumerate(worlds):
            is_slow = (place - number) % len(worlds) != 0
            yield pytest.param(method, env, id=f"{method}-{env}", marks=[pytest.mark.slow] if is_slow else [])


@pytest.mark.usefixtures("_weights_without_compiling")
@pytest.mark.parametrize(("method", "env"), list(pairs()))
def test_every_method_trains_resumes_exactly_and_can_be_evaluated(method, env, tmp_path):
    is_sharing = METHODS[method].sharing != "none"
    run = small_run(method, env, **({"share.start_episode": 1} if is_sharing else {}))
    state, _ = run.run(run.init(0), ROUNDS)
    checkpoints.save(tmp_path, ROUNDS, state, run.sharing.facts(state.sharing), keep=1)
    whole, report = run.run(state, ROUNDS)
    resumed = checkpoints.restore(tmp_path, functools.partial(run.init, 1)).state
    resumed, _ = run.run(resumed, ROUNDS)
    assert equal(whole, resumed)
    found = gist(run, whole, report)
    assert found == pytest.approx(kept_paper_run(f"{method} {env}", found), rel=1e-3, abs=1e-5)
    assert report.has_learned.all()
    assert all(np.isfinite(values).all() for values in report.learning.values())
    first, learned = (run.learner.parameters(each) for each in (run.init(0).learner, whole.learner))
    assert not equal(first, learned)
    episodes = run.evaluate(learned, jax.random.key(0), 3)
    assert episodes.batch.num_steps.tolist() == [4, 4, 4]
    assert np.isfinite(episodes.batch.rewards).all()


@pytest.mark.parametrize(
    ("method", "sharing"),
    [("maven", {"sharing": "cons"}), ("vdn", {"sharing": "adhoc-td", "share.giving": "always"})],
)
def test_agents_advise_each_other_with_any_learner(method, sharing):
    run = small_run(method, "pgm-3ag", **sharing, **{"share.start_episode": 0})
    _, report = run.run(run.init(0), ROUNDS)
    assert report.sharing["requests"].sum() > 0
    assert report.sharing["advised"].sum() > 0


@pytest.mark.parametrize("learner_type", [MAVEN, GAComm])
def test_python_environments_work_with_notes_and_without_replay(learner_type):
    world = ForeignWorld(Handmade(), "handmade", episode_limit=4)
    sizes = dict(hidden_size=4, **(dict(num_strategies=3) if learner_type is MAVEN else {}))
    exploration = SampledPolicy() if learner_type is GAComm else EpsilonGreedy()
    trainer = PythonTrainer(
        world=world, learner=learner_type(TeamSpec.of(world), **sizes), exploration=exploration, batch_episodes=2,
        replay_episodes=4, warmup_steps=0,
    )  # fmt: skip
    state, report = trainer.run(trainer.init(0), ROUNDS)
    assert report.has_learned.all()
    assert all(np.isfinite(values).all() for values in report.learning.values())
    assert state.replay.episodes.epsilon[0].tolist() == pytest.approx([1.0] * 4, abs=1e-3)
    if learner_type is MAVEN:
        notes = state.replay.episodes.notes
        assert set(notes.strategy[:ROUNDS].tolist()) <= {0, 1, 2}
        assert (notes.probability[:ROUNDS] > 0).all()
    played = trainer.evaluate(trainer.learner.parameters(state.learner), jax.random.key(0), 2)
    assert played.batch.num_steps.tolist() == [3, 3]


def test_a_teams_strategy_is_stored_with_its_own_episode():
    run = small_run("maven", "pgm-3ag")
    state = run.init(0)
    for _ in range(2):
        before = int(state.replay.num_added)
        parameters = jax.tree.map(np.asarray, run.learner.parameters(state.learner))
        state, _ = run.run(state, ROUNDS)
        stored = state.replay.episodes
        slot = before % run.replay.capacity
        # the first episode of a chunk is played with the policy from before the chunk
        first_seen = run.learner.spec.observations(stored.codes[:, slot, 0]).reshape(1, -1)
        chances = jax.nn.softmax(apply_perceptron(parameters.strategy_policy, first_seen))[0]
        drawn_with = chances[stored.notes.strategy[slot]]
        np.testing.assert_allclose(stored.notes.probability[slot], drawn_with, rtol=1e-5)
