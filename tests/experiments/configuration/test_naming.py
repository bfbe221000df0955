"""Names of runs: different for different runs, and valid on any file system."""

import re

from consmarl import TrainConfig


def test_a_plain_run_is_named_by_environment_method_and_seed():
    assert TrainConfig(preset="paper").name == "pgm-3ag-iql-paper-epsilon-greedy-0"
    assert TrainConfig(method="cons", preset="release", seed=3).name == "pgm-3ag-cons-release-epsilon-greedy-3"
    assert TrainConfig(env="pettingzoo:mpe2.simple_spread_v3").name.startswith("pettingzoo-mpe2.simple_spread_v3-iql")


def test_settings_other_than_the_defaults_are_part_of_the_name():
    changes = dict(set=["num_agents=4", "grid=(9, 9)"], share={"temperature": 0.3})
    config = TrainConfig(method="cons", preset="paper", **changes)
    assert config.name == "pgm-3ag-cons-paper-epsilon-greedy-num_agents=4-grid=9,9-share.temperature=0.3-0"
    assert config.resolved().name == config.name  # defaults are not part of the name
    others = [
        dict(episodes=2_000), dict(hidden_size=32), dict(weights="shared"), dict(learning_rate=1e-3),
        dict(record=(1, 2)), dict(learn={"target_memory": "whole-episode"}), dict(preset="release"),
        dict(tensorboard=False), dict(set=["num_agents=5"]), dict(bootstrap_time_limit=True),
    ]  # fmt: skip
    names = {TrainConfig(**each).name for each in others}
    assert len(names) == len(others)
    assert TrainConfig().name not in names


def test_names_are_safe_short_and_still_unique():
    wild = [TrainConfig(set=[f"map=../{letter}|*?: é{'x' * 300}"]).name for letter in "ab"]
    assert wild[0] != wild[1]
    short = [TrainConfig(set=[f"rule={letter}"]).name for letter in ("a/b", "a_b")]
    assert short[0] != short[1]
    for name in (*wild, *short):
        assert re.fullmatch(r"[\w.,=+-]{1,130}", name, flags=re.ASCII)
        assert name.endswith("-0")
