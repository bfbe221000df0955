"""Runs with experts beside the team: every agent learns, and the experts only answer."""

import dataclasses
import json
import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file
from tests.experiments.small import assert_same_run, rows
from tests.experiments.test_teachers import OLD
from tests.viewer.small import crowd

import consmarl
from consmarl.errors import UsageError
from consmarl.experiments import exchanges
from consmarl.experiments.configuration.config import TrainConfig
from consmarl.experiments.configuration.sharings import ShareOptions
from consmarl.experiments.evaluate import evaluate
from consmarl.experiments.policies import export_policy
from consmarl.experiments.train import resume, train
from consmarl.sharing.none import NoSharing
from consmarl.sharing.record import Reply
from consmarl.viewer.view import view

RECORDED = (10, 45)


@pytest.fixture(scope="module")
def experts(tmp_path_factory):
    """Return a policy file of agents whose Q-values are higher than any beginner's."""
    trainer = OLD.trainer()
    drawn = trainer.learner.parameters(trainer.init(7).learner)
    hopeful = drawn._replace(head_bias=np.asarray(drawn.head_bias) + 0.1)
    return export_policy(tmp_path_factory.mktemp("experts") / "policy.safetensors", hopeful, OLD, 80)


def beside(experts, **settings):
    share = ShareOptions(ask_gate="always", ask_scale=0.05, ask_share=1.0)
    told = dict(method="cons", seed=1, teachers=str(experts), beside=True, record=RECORDED, share=share) | settings
    return dataclasses.replace(OLD, **told)


@pytest.fixture(scope="module")
def run(experts, tmp_path_factory):
    return train(beside(experts), tmp_path_factory.mktemp("new") / "run")


def records_of(run):
    return [exchanges.read_episode(exchanges.episode_path(run, number)) for number in RECORDED]


def test_all_agents_explore_ask_and_learn_and_the_experts_answer(run, experts):
    for recorded in records_of(run):
        assert recorded.steps["is_exploring"].any(axis=0).all()
        assert recorded.num_experts == 3
        replies = recorded.teachers["reply"]
        assert replies.shape == (len(recorded.requests["step"]), 6)
        assert (replies[:, 3:] == Reply.ANSWERED).any()
        assert (replies[:, 3:] != Reply.NOT_ASKED).all()
    assert {student for each in records_of(run) for student in each.requests["student"].tolist()} == {0, 1, 2}
    first, learned = beside(experts).trainer().init(1).learner.online, load_file(run / "policy.safetensors")
    before, after = np.asarray(first.encoder_weights), learned["encoder_weights"]
    assert (before != after).any(axis=(1, 2)).tolist() == [True] * 3


def test_metrics_count_the_answers_from_experts(run):
    told = [row for row in rows(run) if "answers" in row]
    assert all(0 < row["expert_answers"] <= row["answers"] for row in told)
    assert all(len(row["answers_left"]) == 3 for row in told)
    metrics = json.loads((run / "run.json").read_text())["metrics"]
    assert "Answers from experts per episode" in json.dumps(metrics)


def test_resuming_is_exact_and_does_not_need_the_experts_file(run, experts, tmp_path):
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    shutil.rmtree(max((copy / "checkpoints").iterdir()))
    for name in ("policy.safetensors", "result.json"):
        (copy / name).unlink()
    config = (copy / "config.json").read_text()
    (copy / "config.json").write_text(config.replace(str(experts), "gone"))
    resume(copy)
    shutil.copy(run / "config.json", copy / "config.json")
    assert_same_run(run, copy)


def test_experts_take_no_part_in_an_evaluation(run):
    alone = evaluate(run, episodes=4, seed=3)
    assert alone == evaluate(run / "policy.safetensors", episodes=4, seed=3)
    assert evaluate(run, episodes=4, seed=3, consult="mean")  # consults the three agents of the team


def test_sharing_starts_at_once_and_nobody_is_a_newcomer(experts):
    config = beside(experts)
    assert config.resolved().share.start_episode == 0
    assert config.those_new == config.experts(3) == ()
    sharing = config.trainer().sharing
    assert (sharing.experts, sharing.num_beside) == ((), 3)
    assert TrainConfig.from_json(config.to_json()) == config


@dataclasses.dataclass(frozen=True)
class Whispering(NoSharing):
    """A mechanism that is not derived from `Mechanism`."""


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (dict(teachers=""), "experts beside the team come from another run: name it with --teachers RUN"),
        (dict(newcomers=(0,)), "no agent is replaced and all of them learn: leave out --newcomers"),
        (dict(join=40), "no agent is replaced and all of them learn: leave out --join"),
        (dict(method="iql", share=ShareOptions()), "nobody asks in a run without sharing: set --sharing to one of ad"),
        (dict(sharing="whispering", share=ShareOptions()), "sharing whispering asks only agents of the team"),
        (dict(share=ShareOptions(teacher_memory="own")), "have no memory of their own: share.teacher_memory must be"),
        (dict(share=ShareOptions(eligibility="more-familiar")), "share.eligibility must not be more-familiar"),
        (dict(hidden_size=9), "do not fit this run's: .* hidden_size 8"),
        (dict(teachers="nowhere"), "there is no policy file nowhere"),
    ],
)
@pytest.mark.usefixtures("unregistered")
def test_impossible_settings_are_refused_before_a_directory_is_made(experts, tmp_path, settings, sentence):
    consmarl.register_sharing("whispering", Whispering, "nobody hears anything")
    with pytest.raises(UsageError, match=sentence):
        train(beside(experts, **settings), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_record_has_as_many_teachers_as_agents_or_twice_as_many(tmp_path):
    recorded = crowd(3, num_experts=3)
    header = recorded.header | {"format": exchanges.FORMAT, "config": {}}
    recorded = dataclasses.replace(recorded, header=header)
    path = exchanges.write_episode(tmp_path / "episode.npz", recorded)
    again = exchanges.read_episode(path)
    assert again.num_experts == 3
    for group in ("steps", "requests", "teachers", "world"):
        ours, theirs = getattr(recorded, group), getattr(again, group)
        assert ours.keys() == theirs.keys()
        assert all(np.array_equal(ours[name], theirs[name]) for name in ours)
    for count, is_fine in ((3, True), (5, False), (0, False)):
        fewer = {name: array[:, :count] for name, array in recorded.teachers.items()}
        exchanges.write_episode(path, dataclasses.replace(recorded, teachers=fewer))
        if is_fine:
            assert exchanges.read_episode(path).num_experts == 0
            continue
        with pytest.raises(UsageError, match=f"its {count} teachers are neither a team of 3 nor two"):
            exchanges.read_episode(path)
    uneven = recorded.teachers | {"prestige": recorded.teachers["prestige"][:, :3]}
    exchanges.write_episode(path, dataclasses.replace(recorded, teachers=uneven))
    with pytest.raises(UsageError, match="teachers/prestige has shape"):
        exchanges.read_episode(path)


def test_recorded_and_staged_episodes_can_be_viewed(run, tmp_path):
    page = view(run, tmp_path / "page.html", staged=1).read_text()
    data = json.loads(page.split('id="data">', 1)[1].split("</script>", 1)[0])["runs"][0]
    assert data["num_experts"] == 3
    assert data["remembered"].startswith("Teachers ")
    for episode in data["episodes"]:
        taught = np.array(episode["summary"]["taught"])  # [teacher, student]
        assert taught.shape == (6, 3)
        assert taught[3:].sum() > 0
