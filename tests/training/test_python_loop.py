"""The loop in Python: equivalent to the compiled one, and able to train in third-party environments."""

import functools
import json
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file

from consmarl.environments.foreign import ForeignWorld
from consmarl.environments.gold_miner import GoldMiner
from consmarl.environments.pettingzoo import WorldParallelEnv
from consmarl.experiments.configuration.config import TrainConfig
from consmarl.experiments.evaluate import evaluate
from consmarl.experiments.train import resume, train
from consmarl.learners.interface import Learner, TeamSpec
from consmarl.learners.iql import IQL
from consmarl.training.exploration import EpsilonZGreedy, Greedy, LinearSchedule
from consmarl.training.loop import Trainer
from consmarl.training.python_loop import PythonTrainer
from tests.training.handmade import Handmade

# The mine and simple_spread have equal shapes and sizes, so that they share compiled programs.
HIDDEN_SIZE, SIZES = 4, dict(batch_episodes=2, replay_episodes=8, warmup_steps=40)


class FixedMine(GoldMiner):
    """A mine without randomness, so that the two loops can be compared."""

    def generate_layout(self, key):
        del key
        return self.layout_from({"agents": [[0, 1], [0, 1]], "golds": [[0, 1]], "stones": [[0, 3]]})


def both_trainers(num_envs):
    """Return the compiled loop and the one in Python, with the same environment, learner and exploration."""
    world = FixedMine(
        grid=(1, 4), num_agents=2, num_mines=1, num_piles=1, mining_steps=1, stones_per_pile=2, view=(1, 3),
        episode_limit=15,
    )  # fmt: skip
    parts = dict(exploration=EpsilonZGreedy(), epsilon=LinearSchedule(1.0, 0.1, 100), num_envs=num_envs, **SIZES)
    make = functools.partial(WorldParallelEnv, world)
    foreign = ForeignWorld(make(), episode_limit=world.episode_limit, make=make)
    compiled = Trainer(world=world, learner=IQL(TeamSpec.of(world), hidden_size=HIDDEN_SIZE), **parts)
    return compiled, PythonTrainer(world=foreign, learner=IQL(TeamSpec.of(foreign), hidden_size=HIDDEN_SIZE), **parts)


@pytest.mark.parametrize("num_envs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_our_environments_train_the_same_in_the_python_loop_and_compiled(num_envs):
    compiled, in_python = both_trainers(num_envs)
    num_rounds = 16 // num_envs
    (state, report), (python_state, python_report) = (
        each.run(each.init(2), num_rounds) for each in (compiled, in_python)
    )
    for name in ("num_steps", "has_learned"):
        np.testing.assert_array_equal(getattr(python_report, name), getattr(report, name), err_msg=name)
    np.testing.assert_allclose(python_report.epsilon, report.epsilon, rtol=1e-6)  # two programs may round differently
    np.testing.assert_allclose(python_report.returns, report.returns, rtol=1e-6)  # sums, in different orders
    jax.tree.map(lambda ours, theirs: np.testing.assert_allclose(ours, theirs, atol=1e-5),
                 (python_state.learner, python_report.learning), (state.learner, report.learning))  # fmt: skip
    assert int(python_state.num_env_steps) == int(state.num_env_steps)
    assert int(python_state.num_rounds) == num_rounds

    stored, expected = jax.device_get((python_state.replay.episodes, state.replay.episodes))
    np.testing.assert_array_equal(stored.num_steps, expected.num_steps)
    np.testing.assert_array_equal(stored.terminated, expected.terminated)
    np.testing.assert_array_equal(stored.rewards, expected.rewards)
    assert set(expected.terminated.tolist()) == {False, True}
    scale = compiled.world.observation_scale
    for slot, length in enumerate(expected.num_steps):
        np.testing.assert_array_equal(stored.actions[:, slot, :length], expected.actions[:, slot, :length])
        seen = expected.codes[:, slot, : length + 1] * scale[None, None, :]
        np.testing.assert_array_equal(stored.codes[:, slot, : length + 1], seen)

    parameters, key = in_python.learner.parameters(python_state.learner), jax.random.key(5)
    played, again = (each.evaluate(parameters, key, 3) for each in (compiled, in_python))
    np.testing.assert_array_equal(again.batch.rewards, played.batch.rewards)
    np.testing.assert_array_equal(again.batch.num_steps, played.batch.num_steps)


@dataclass(frozen=True)
class Scripted(Learner):
    """In step t, agent i takes action (t + i) mod 3; learning only counts updates."""

    spec: TeamSpec

    def init(self, key):
        del key
        return jnp.zeros((), jnp.int32)

    def parameters(self, state):
        del state
        return ()

    def begin(self, parameters, key, codes):
        del parameters, key, codes
        return jnp.zeros((), jnp.int32)

    def act(self, parameters, memory, codes, last_actions, key):
        del parameters, codes, last_actions, key
        wanted = (memory + jnp.arange(self.spec.num_agents)) % self.spec.num_actions
        return memory + 1, jax.nn.one_hot(wanted, self.spec.num_actions)[:, None]

    def update(self, state, batch, key):
        del batch, key
        return state + 1, {"loss": jnp.ones(1)}


def scripted_trainer(env, **parts):
    world = ForeignWorld(env, "handmade", **parts)
    return PythonTrainer(
        world=world, learner=Scripted(TeamSpec.of(world)), exploration=Greedy(), replay_episodes=4, warmup_steps=5
    )


@pytest.mark.parametrize("ends_by", ["termination", "truncation"])
def test_early_exits_of_agents_and_early_ends_are_stored_correctly(ends_by):
    env = Handmade(ends_by)
    trainer = scripted_trainer(env, episode_limit=5)
    state, report = trainer.run(trainer.init(0), 2)
    stored = jax.device_get(state.replay.episodes)
    for slot in range(2):
        # `first` leaves after two steps: in the third, its last observation is repeated, and its action is 0
        assert stored.codes[0, slot].tolist() == [[0, 0], [1, 0], [2, 0], [2, 0], [0, 0], [0, 0]]
        assert stored.codes[1, slot].tolist() == [[0, 1], [1, 1], [2, 1], [3, 1], [0, 0], [0, 0]]
        assert stored.actions[:, slot].tolist() == [[0, 1, 0, 0, 0], [1, 2, 0, 0, 0]]
        assert stored.rewards[:, slot].tolist() == [[0.5, 1.0, 0.0, 0.0, 0.0], [0.5, 1.0, 1.5, 0.0, 0.0]]
    assert stored.num_steps.tolist() == [3, 3, 0, 0]
    assert stored.terminated.tolist() == [ends_by == "termination"] * 2 + [False] * 2
    # action spaces start at 0 and at 1, and an agent that has left gets no action
    assert env.received[:3] == [{"first": 0, "second": 2}, {"first": 1, "second": 3}, {"second": 1}]
    assert report.returns.tolist() == [[[1.5, 3.0]]] * 2
    assert report.num_steps.tolist() == [[3], [3]]
    assert report.has_learned.tolist() == [[False], [True]]  # one episode's 5 steps do not exceed the warm-up, 10 do
    assert report.learning["loss"].tolist() == [[[0.0]], [[1.0]]]
    assert (int(state.num_env_steps), int(state.num_rounds), int(state.learner)) == (6, 2, 1)


def test_an_episode_cut_at_the_limit_is_not_marked_terminated():
    trainer = scripted_trainer(Handmade(), episode_limit=2)
    state, _ = trainer.run(trainer.init(0), 1)
    stored = jax.device_get(state.replay.episodes)
    assert (int(stored.num_steps[0]), bool(stored.terminated[0])) == (2, False)


def test_every_episode_has_its_own_seed_determined_by_run_and_episode_number():
    whole, parts, other = Handmade(), Handmade(), Handmade()
    for env, seed, rounds in ((whole, 0, (4,)), (parts, 0, (1, 3)), (other, 1, (4,))):
        trainer = scripted_trainer(env, episode_limit=5)
        state = trainer.init(seed)
        for num_rounds in rounds:
            state, _ = trainer.run(state, num_rounds)
    assert whole.seeds == parts.seeds
    assert len({*whole.seeds, *other.seeds}) == 8
    assert all(0 <= seed < 2**31 for seed in whole.seeds)


def without_seconds(path):
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [{name: value for name, value in row.items() if name != "seconds"} for row in rows]


FOREIGN = {
    "mpe2": ("pettingzoo:mpe2.simple_spread_v3", ("max_cycles=15", "N=2"), {}),
    "lbforaging": ("lbforaging:Foraging-5x5-2p-1f-v3", ("max_episode_steps=12",), {}),
    # with two environments, and past the episode in which a newcomer joins
    "rware": ("rware:rware-tiny-2ag-v2", ("max_steps=15",), dict(num_envs=2, join=8, newcomers=(1,))),
}


@pytest.mark.parametrize("package", FOREIGN)
def test_third_party_environments_train_and_resume_exactly(tmp_path, monkeypatch, package):
    pytest.importorskip(package)
    env, settings, others = FOREIGN[package]
    config = TrainConfig(
        env=env, set=settings, episodes=12, report_every=2, evaluate_every=4, checkpoint_every=4,
        evaluation_episodes=2, final_episodes=2, exploration="epsilon-z-greedy", hidden_size=HIDDEN_SIZE, **SIZES,
        **others,
    )  # fmt: skip
    train(config, tmp_path / "whole")
    run, calls = PythonTrainer.run, []

    def interrupted(trainer, state, num_rounds, **others):
        calls.append(num_rounds)
        if len(calls) == 4:  # after the checkpoint of episode 4 and the row of episode 6
            raise KeyboardInterrupt
        return run(trainer, state, num_rounds, **others)

    with monkeypatch.context() as patched:
        patched.setattr(PythonTrainer, "run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            train(config, tmp_path / "parts")
    resume(tmp_path / "parts", trust=env)

    whole, parts = (tmp_path / name for name in ("whole", "parts"))
    rows = without_seconds(whole / "metrics.jsonl")
    assert rows == without_seconds(parts / "metrics.jsonl")
    assert [row["episode"] for row in rows] == [0, 2, 4, 6, 8, 10, 12]
    assert "loss" in rows[-1]
    assert "evaluation_return" in rows[-1]
    for file in ("policy.safetensors", "checkpoints/checkpoint-000000012/state.safetensors"):
        tensors, expected = load_file(parts / file), load_file(whole / file)
        assert {name: each.tobytes() for name, each in tensors.items()} == {
            name: each.tobytes() for name, each in expected.items()
        }
    reached = [evaluate(each, episodes=2, seed=1, trust=env) for each in (whole, parts / "policy.safetensors")]
    assert reached[0] == reached[1]
