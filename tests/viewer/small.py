"""Runs with recorded episodes, small enough for tests: with both ways of sharing, and with none."""

import dataclasses

import numpy as np

from consmarl.experiments import exchanges
from consmarl.experiments.configuration.config import TrainConfig
from consmarl.experiments.configuration.sharings import ShareOptions
from consmarl.experiments.exchanges import RecordedEpisode
from consmarl.sharing.record import Reply

RECORDED = (0, 15, 30, 40, 59)  # some in every chunk, so that only one program is compiled
CONS = TrainConfig(
    method="cons", preset="paper", set=("grid=4,5", "mining_steps=1", "view=3,3", "episode_limit=8"), episodes=60,
    hidden_size=8, batch_episodes=4, replay_episodes=20, warmup_steps=20, num_envs=2, report_every=20,
    evaluate_every=60, evaluation_episodes=4, final_episodes=4, checkpoint_every=60,
    share=ShareOptions(start_episode=10, ask_scale=0.05), record=RECORDED,
)  # fmt: skip
ADHOC_TD = dataclasses.replace(CONS, method="adhoc-td")
IQL = dataclasses.replace(CONS, method="iql", share=ShareOptions())
CONFIGS = {"cons": CONS, "adhoc-td": ADHOC_TD, "iql": IQL}


def record_of(run, number):
    with np.load(run / "exchanges" / f"episode-{number:09d}.npz") as archive:
        return {name: archive[name] for name in archive.files}


def played(recorded, kind, number, bonus):
    """Return a recorded episode as if staged, with a bonus in the last step; a silent one has no requests."""
    count = 0 if kind == exchanges.SILENT else len(recorded.requests["step"])
    rewards = recorded.steps["rewards"].copy()
    rewards[-1, 0] += bonus
    requests, teachers = (
        {name: rows[:count] for name, rows in each.items()} for each in (recorded.requests, recorded.teachers)
    )
    header = recorded.header | {"kind": kind, "episode": number, "after": 60}
    return RecordedEpisode(header, recorded.steps | {"rewards": rewards}, requests, teachers, recorded.world)


def contents(directory):
    """Return the time and the content of every file in a directory."""
    return {
        path.relative_to(directory): (path.stat().st_mtime_ns, path.read_bytes())
        for path in directory.rglob("*")
        if path.is_file()
    }


def crowd(num_agents, num_experts=0):
    """Return an episode of one step in which agent 0 asks, agent 1 answers and the others know less.

    If there are experts beside the team, the last one answers as well.
    """
    agents, actions = (1, num_agents), 3
    steps = {
        "rewards": np.zeros(agents, np.float32), "epsilon": np.ones(1, np.float32),
        "values": np.zeros((*agents, actions), np.float32), "is_exploring": np.ones(agents, bool),
        "own_action": np.zeros(agents, np.uint8), "action": np.zeros(agents, np.uint8),
        "is_asking": np.arange(num_agents)[None] == 0, "ask_probability": np.full(agents, 0.5, np.float32),
        "num_visits": np.ones(agents, np.int32), "requests_left": np.full(agents, 5, np.int32),
        "answers_left": np.full(agents, 5, np.int32),
    }  # fmt: skip
    even = np.full((1, actions), 1 / actions, np.float32)
    requests = {"step": np.zeros(1, np.int32), "student": np.zeros(1, np.int32), "is_best": np.zeros(1, bool),
                "num_excluded": np.zeros(1, np.uint8), "is_advised": np.zeros(1, bool), "action": np.zeros(1, np.uint8),
                "policy_before": even, "modified": even, "policy_after": even}  # fmt: skip
    requests |= {name: np.zeros(1, np.float32) for name in ("confidence_after", "negative_weight")}
    everyone = (1, num_agents + num_experts)
    teachers = {name: np.zeros(everyone, np.uint8) for name in ("best_action", "worst_action")}
    teachers |= {name: np.zeros(everyone, np.float32) for name in
                 ("best_probability", "worst_probability", "confidence", "prestige", "max_value")}  # fmt: skip
    reply = np.full(everyone, Reply.KNOWS_LESS, np.uint8)
    reply[0, :2] = Reply.NOT_ASKED, Reply.ANSWERED
    if num_experts:
        reply[0, -1] = Reply.ANSWERED
    teachers |= {"reply": reply, "num_visits": np.zeros(everyone, np.int32)}
    return RecordedEpisode({"kind": exchanges.TRAINING, "episode": 20}, steps, requests, teachers, {})
