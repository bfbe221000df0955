"""Totals of an episode, compared with a plain loop over its requests, and columns of a run's metrics."""

from pathlib import Path

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from consmarl import UsageError
from consmarl.experiments.exchanges import RecordedEpisode
from consmarl.reports.runs import Run
from consmarl.sharing.record import Reply
from consmarl.viewer.absorbed import Absorbed
from consmarl.viewer.summaries import series_of, summary_of

NUM_STEPS, NUM_AGENTS, NUM_ACTIONS = 5, 3, 4


def random_episode(seed, num_requests):
    """An episode and the effects of its answers, drawn independently: totals are sums, whatever the numbers mean."""
    random = np.random.default_rng(seed)
    pairs = np.sort(random.permutation(NUM_STEPS * NUM_AGENTS)[:num_requests])
    by_step, by_teacher = (NUM_STEPS, NUM_AGENTS), (num_requests, NUM_AGENTS)
    steps = {
        "rewards": random.normal(size=by_step).astype(np.float32),
        "own_action": random.integers(0, NUM_ACTIONS, by_step).astype(np.uint8),
        "requests_left": random.integers(0, 99, by_step).astype(np.int32),
        "answers_left": random.integers(0, 99, by_step).astype(np.int32),
    }
    requests = {
        "step": (pairs // NUM_AGENTS).astype(np.int32),
        "student": (pairs % NUM_AGENTS).astype(np.int32),
        "is_advised": random.random(num_requests) < 0.5,
    }
    reply = random.integers(Reply.ANSWERED, Reply.UNIMPORTANT + 1, by_teacher).astype(np.uint8)
    reply = np.where(random.random(by_teacher) < 0.4, np.uint8(Reply.ANSWERED), reply)
    reply[np.arange(num_requests), requests["student"]] = Reply.NOT_ASKED
    teachers = {"reply": reply, "best_action": random.integers(0, NUM_ACTIONS, by_teacher).astype(np.uint8)}
    shares = [np.zeros(by_teacher, np.float32)] * 2
    flags = [random.random(by_teacher) < chance for chance in (0.6, 0.5, 0.3, 0.2)]
    found = Absorbed(*shares, *flags, np.zeros((num_requests, NUM_ACTIONS), bool), random.random(num_requests) < 0.4)
    return RecordedEpisode({"episode": 3, "kind": "training"}, steps, requests, teachers, {}), found


def summed_by_hand(recorded, found):
    steps, requests, teachers = recorded.steps, recorded.requests, recorded.teachers
    names = ("requests", "answers", "advised", "changed", "positive", "positive_changed", "negative",
             "negative_changed", "agreeing")  # fmt: skip
    totals = dict.fromkeys(names, 0) | {"taught": [[0] * NUM_AGENTS for _ in range(NUM_AGENTS)]}
    for row, (step, student) in enumerate(zip(requests["step"], requests["student"], strict=True)):
        totals["requests"] += 1
        totals["advised"] += bool(requests["is_advised"][row])
        totals["changed"] += bool(found.is_changed[row])
        for teacher in range(NUM_AGENTS):
            totals["positive"] += bool(found.raises[row, teacher])
            totals["positive_changed"] += bool(found.raise_changed[row, teacher])
            totals["negative"] += bool(found.lowers[row, teacher])
            totals["negative_changed"] += bool(found.lower_changed[row, teacher])
            if teachers["reply"][row, teacher] == Reply.ANSWERED:
                totals["answers"] += 1
                totals["taught"][teacher][student] += 1
                totals["agreeing"] += bool(teachers["best_action"][row, teacher] == steps["own_action"][step, student])
    return totals


@hypothesis.given(st.integers(0, 2**32 - 1), st.integers(0, NUM_STEPS * NUM_AGENTS))
def test_totals_match_a_loop_over_requests_and_teachers(seed, num_requests):
    recorded, found = random_episode(seed, num_requests)
    summary = summary_of(recorded, found)
    expected = summed_by_hand(recorded, found)
    assert {name: summary[name] for name in expected} == expected
    assert np.sum(summary["taught"]) == summary["answers"]
    assert np.trace(summary["taught"]) == 0  # no agent teaches itself
    assert summary["requests_left"] == recorded.steps["requests_left"][NUM_STEPS - 1].tolist()
    assert summary["answers_left"] == recorded.steps["answers_left"][NUM_STEPS - 1].tolist()
    assert summary["return"] == pytest.approx(sum(float(reward) for reward in recorded.steps["rewards"].flat))
    assert (summary["num_steps"], summary["is_sharing"]) == (NUM_STEPS, True)


def test_taught_is_indexed_by_teacher_and_student():
    recorded, found = random_episode(0, NUM_STEPS * NUM_AGENTS)
    recorded.teachers["reply"][:] = Reply.KNOWS_LESS
    is_of_agent_2 = recorded.requests["student"] == 2
    recorded.teachers["reply"][is_of_agent_2, 0] = Reply.ANSWERED
    assert summary_of(recorded, found)["taught"] == [[0, 0, NUM_STEPS], [0, 0, 0], [0, 0, 0]]


def test_without_sharing_the_summary_has_only_return_and_length():
    recorded, _ = random_episode(0, 0)
    recorded.steps["rewards"][:] = 0.1
    alone = RecordedEpisode(recorded.header, {"rewards": recorded.steps["rewards"]}, {}, {}, {})
    assert summary_of(alone, None) == {
        "return": pytest.approx(NUM_STEPS * NUM_AGENTS * 0.1),
        "num_steps": NUM_STEPS,
        "is_sharing": False,
    }


def test_returns_are_summed_in_double_precision():
    recorded, _ = random_episode(0, 0)
    recorded.steps["rewards"][:] = 0
    recorded.steps["rewards"][:3, 0] = 2.0**24, 1, 1  # in single precision the ones would be lost
    assert summary_of(recorded, None)["return"] == 2.0**24 + 2


def run_of(rows):
    return Run(path=Path("run"), config={}, facts={}, rows=rows, result=None, failure=None)


def test_series_are_columns_of_the_rows_that_report_sharing():
    rows = [
        {"episode": 0, "evaluation_return": 1.0},
        {"episode": 20, "return": 1.23456, "requests": 4.0, "answers": 2.5, "advised": 1.0, "requests_left": [10, 20],
         "answers_left": [1, 2], "loss": 3.0},
        {"episode": 30, "return": 5.0, "requests": None},
        {"episode": 40, "return": -2, "requests": 0.0, "answers": 0, "advised": 0.0, "requests_left": [5, 6],
         "answers_left": [0, 0]},
    ]  # fmt: skip
    assert series_of(run_of(rows)) == {
        "episode": [20, 40],
        "requests": [4.0, 0.0],
        "answers": [2.5, 0.0],
        "advised": [1.0, 0.0],
        "requests_left": [15.0, 5.5],
        "answers_left": [1.5, 0.0],
        "return": [1.2346, -2.0],
    }


@pytest.mark.parametrize(
    ("row", "name"),
    [
        ({"episode": 20, "requests": "many"}, "requests"),
        ({"episode": 20, "requests": []}, "requests"),
        ({"episode": 20, "requests": {"a": 1}}, "requests"),
        ({"episode": 20, "requests": float("nan")}, "requests"),
        ({"episode": 20, "requests": 10**400}, "requests"),
        ({"requests": 1.0}, "episode"),
        ({"episode": "x", "requests": 1.0}, "episode"),
        ([20, 1.0], "episode"),
        (3, "episode"),
    ],
)
def test_a_row_without_a_finite_number_is_refused(row, name):
    with pytest.raises(
        UsageError, match=rf"run/metrics.jsonl is damaged: one of its rows has no finite number for {name}\."
    ):
        series_of(run_of([row]))


def test_a_row_that_lacks_a_column_of_the_first_row_is_refused():
    rows = [{"episode": 20, "requests": 1.0, "answers": 2.0}, {"episode": 40, "requests": 1.0}]
    with pytest.raises(UsageError, match="no finite number for answers"):
        series_of(run_of(rows))


def test_a_run_without_sharing_has_no_series():
    assert series_of(run_of([])) == {"episode": []}
    assert series_of(run_of([{"episode": 20, "return": 1.0}])) == {"episode": []}


def test_columns_that_a_run_lacks_are_left_out():
    rows = [{"episode": 20, "requests": 1.0, "return": 2.0}]
    assert series_of(run_of(rows)) == {"episode": [20], "requests": [1.0], "return": [2.0]}
