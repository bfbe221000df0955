"""Runs with sharing: options by method and environment, metrics, recorded episodes, and resuming."""

import json
import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file

from consmarl import AdHocTD, Cons, UsageError
from consmarl.experiments import exchanges
from consmarl.experiments.configuration.config import TrainConfig
from consmarl.experiments.configuration.sharings import ShareOptions
from consmarl.experiments.metrics import MetricsFile
from consmarl.experiments.train import resume, train
from consmarl.sharing.none import NoSharing
from consmarl.sharing.options import AskGate, Knowledge, Preset, TeacherMemory
from consmarl.sharing.record import Reply

CONFIG = TrainConfig(
    method="cons", set=("grid=3,4", "mining_steps=1", "view=3,3", "episode_limit=6"), episodes=80, hidden_size=8,
    batch_episodes=4, replay_episodes=20, warmup_steps=20, num_envs=2, report_every=20, evaluate_every=80,
    evaluation_episodes=4, final_episodes=4, checkpoint_every=40,
    share=ShareOptions(start_episode=10, ask_scale=0.05, ask_gate="always"), record=(15, 61),
)  # fmt: skip


def test_the_method_determines_the_sharing_and_the_preset_its_settings():
    assert TrainConfig().trainer().sharing == NoSharing()
    answers = dict(budget_answers=2 * 50_000, counting="exact")  # enough for both teammates
    assert TrainConfig(method="cons", preset=Preset.PAPER).trainer().sharing == Cons(**answers)
    assert TrainConfig(method="adhoc-td", preset=Preset.PAPER).trainer().sharing == AdHocTD(**answers)
    released = TrainConfig(sharing="cons", preset=Preset.RELEASE)
    assert released.trainer().sharing == Cons.preset(Preset.RELEASE, **answers)
    assert released.exploration_kind == "epsilon-greedy"


@pytest.mark.parametrize(
    # the paper's table and section on hyperparameters, and the release's defaults
    ("env", "preset", "weight_shape", "ask_scale"),
    [
        ("pgm-3ag", Preset.PAPER, 0.0, 0.5), ("ft", Preset.PAPER, 0.3, 0.5), ("cleanup", Preset.PAPER, -0.5, 0.01),
        ("pgm-3ag", Preset.RELEASE, 0.0, 0.5), ("ft", Preset.RELEASE, 0.7, 0.5),
        ("cleanup", Preset.RELEASE, -0.5, 0.5),
    ],
)  # fmt: skip
def test_environments_use_the_published_values(env, preset, weight_shape, ask_scale):
    there = dict(env=env, preset=preset)
    cons = TrainConfig(method="cons", **there).mechanism
    assert (cons.weight_shape, cons.ask_scale) == (weight_shape, ask_scale)
    assert TrainConfig(method="adhoc-td", **there).mechanism.ask_scale == ask_scale
    assert TrainConfig(sharing="cons", **there).mechanism == cons
    assert TrainConfig(method="cons", share={"weight_shape": 0.1}, **there).mechanism.weight_shape == 0.1


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (dict(share=ShareOptions(update_rate=0.5)), "share.update_rate is set, but nobody shares"),
        (dict(method="cons", share=ShareOptions(give_scale=2.0)), "share.give_scale is an option of adhoc-td"),
        (dict(method="adhoc-td", share=ShareOptions(temperature=0.3)), "share.temperature is an option of cons"),
        (dict(method="cons", share=ShareOptions(temperature=0.0)), "temperature must be above 0"),
        (dict(method="cons", share=ShareOptions(weight_shape=1.5)), "weight_shape must be at most 1"),
        (dict(method="cons", share=ShareOptions(budget_requests=-1)), "budget_requests must be a whole number"),
        (dict(method="cons", share=ShareOptions(ask_scale=0.0)), "ask_scale must be above 0"),
        (
            dict(method="cons", share=ShareOptions(hope_margin=-1)),
            "hope_margin must be at least 0, not -1.0: it is",
        ),
        (dict(method="cons", set=("num_agents=1",)), "at least 2 agents"),
        (dict(record=(40_000,)), "episode 40000 cannot be recorded"),
    ],
)
def test_invalid_settings_are_refused(settings, sentence):
    with pytest.raises(UsageError, match=sentence):
        TrainConfig(**settings).trainer().init(0)


def test_a_configuration_survives_a_round_trip_through_json():
    share = ShareOptions(ask_gate=AskGate.EXPLORING, knowledge=Knowledge.FIXED, teacher_memory=TeacherMemory.OWN,
                         requires_seen=False, temperature=0.25)  # fmt: skip
    config = TrainConfig(method="cons", preset=Preset.RELEASE, share=share, record=(3, 7))
    assert TrainConfig.from_json(config.to_json()) == config
    assert "update_rate" not in json.loads(config.to_json())["share"]  # unset options are left to the preset
    with pytest.raises(UsageError, match=r"no setting 'share.updat_rate': did you mean 'update_rate'"):
        TrainConfig.from_json('{"share": {"updat_rate": 1}}')
    with pytest.raises(UsageError, match=r"share.eligibility has no value 'hopeful': did you mean 'more-hopeful'"):
        TrainConfig.from_json('{"share": {"eligibility": "hopeful"}}')
    with pytest.raises(UsageError, match=r"share.ask_gate has no value 'sometimes'"):
        TrainConfig.from_json('{"share": {"ask_gate": "sometimes"}}')


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return train(CONFIG, tmp_path_factory.mktemp("sharing") / "run")


def test_metrics_describe_the_sharing(run):
    rows = [row for row in MetricsFile(run / "metrics.jsonl").rows() if row["episode"] > 0]
    assert [row["episode"] for row in rows] == [20, 40, 60, 80]
    used = 0.0
    for row in rows:
        used += row["advised"] * CONFIG.report_every
        assert sum(row["requests_left"]) == 3 * 50_000 - round(used)
        assert row["advised"] <= row["requests"]
        assert row["advised_share"] == pytest.approx(row["advised"] / (3 * row["episode_steps"]), abs=1e-4)
        assert 0 < row["table_fill"] < 1
    assert rows[-1]["num_observations"] >= rows[0]["num_observations"] > 0
    assert used > 0


def test_chosen_episodes_are_recorded(run):
    assert sorted(path.name for path in (run / "exchanges").iterdir()) == [
        "episode-000000015.npz",
        "episode-000000061.npz",
    ]
    recorded = exchanges.read_episode(exchanges.episode_path(run, 61))
    assert recorded.episode == 61
    assert TrainConfig.from_json(json.dumps(recorded.header["config"])) == CONFIG.resolved()
    steps, requests, teachers = recorded.steps, recorded.requests, recorded.teachers
    assert steps["is_asking"].sum() == len(requests["step"]) > 0
    assert teachers["reply"].shape == (len(requests["step"]), 3)
    at = np.arange(len(requests["student"]))
    assert (teachers["reply"][at, requests["student"]] == Reply.NOT_ASKED).all()
    assert ((teachers["reply"] == Reply.NOT_ASKED).sum(axis=1) == 1).all()
    np.testing.assert_allclose(requests["policy_before"].sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(requests["policy_after"].sum(axis=1), 1, rtol=1e-5)
    done = steps["action"][requests["step"], requests["student"]]
    own = steps["own_action"][requests["step"], requests["student"]]
    np.testing.assert_array_equal(done, np.where(requests["is_advised"], requests["action"], own))
    # the states before and after each action, one step apart
    assert recorded.world["num_steps"].tolist() == list(range(recorded.num_steps + 1))


def test_recorded_states_follow_from_the_recorded_actions(run):
    recorded = exchanges.read_episode(exchanges.episode_path(run, 15))
    moves = np.array([(0, 0), (1, 0), (0, -1), (-1, 0), (0, 1)])
    for step in range(recorded.num_steps):
        went = recorded.world["agents"][step] + moves[recorded.steps["action"][step]]
        np.testing.assert_array_equal(recorded.world["agents"][step + 1], np.clip(went, 0, (2, 3)))


def test_resuming_restores_counts_and_budgets_exactly(run, tmp_path):
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    shutil.rmtree(copy / "checkpoints" / "checkpoint-000000080")
    (copy / "exchanges" / "episode-000000061.npz").unlink()
    resume(copy)
    volatile = {"seconds"}
    for ours, theirs in zip(*(MetricsFile(each / "metrics.jsonl").rows() for each in (copy, run)), strict=True):
        assert {k: v for k, v in ours.items() if k not in volatile} == {
            k: v for k, v in theirs.items() if k not in volatile
        }
    # compare tensors, not bytes: safetensors writes the header's entries in any order
    resumed, whole = (load_file(each / "policy.safetensors") for each in (copy, run))
    assert resumed.keys() == whole.keys()
    assert all(np.array_equal(resumed[name], whole[name]) for name in whole)
    assert (copy / "exchanges" / "episode-000000061.npz").exists()


def test_damaged_missing_and_unrelated_record_files_are_refused(run, tmp_path):
    whole = exchanges.episode_path(run, 61).read_bytes()
    cut, other, nothing = tmp_path / "cut.npz", tmp_path / "other.npz", tmp_path / "nothing.npz"
    cut.write_bytes(whole[: len(whole) // 2])
    np.savez(other, values=np.zeros(3))
    for path, sentence in ((cut, "damaged"), (other, "not a recorded episode"), (nothing, "no recorded episode")):
        with pytest.raises(UsageError, match=sentence):
            exchanges.read_episode(path)
