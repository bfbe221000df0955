"""What a sweep comes to."""

import json

import pytest

from consmarl.errors import UsageError
from consmarl.experiments.config import TrainConfig
from consmarl.experiments.methods import Method
from consmarl.experiments.sweeps.command import default_directory, runs_of
from consmarl.experiments.sweeps.plan import Sweep, Variant, check_against, sweep_from_file, variants_of
from consmarl.experiments.sweeps.request import SweepRequest


def test_a_sweep_is_worlds_by_methods_by_seeds_with_one_seed_of_everything_first():
    runs = runs_of(SweepRequest(methods=("iql", "cons"), envs=("pgm-3ag", "ft"), seeds=(3, 4)))
    assert [run.name for run in runs] == [
        f"{env}/{method}/seed-{seed}" for seed in (3, 4) for env in ("pgm-3ag", "ft") for method in ("iql", "cons")
    ]
    assert runs[-1].config == TrainConfig(env="ft", method=Method.CONS, seed=4)


def test_options_reach_all_runs_and_varied_ones_multiply_them():
    request = SweepRequest(
        methods=("cons",), envs=("pgm-3ag",), seeds=(0,), options=("episodes=400", "share.update_rate=0.5"),
        vary=("share.temperature=0.1,0.3", "exploration=epsilon-greedy,epsilon-z-greedy"), set=("num_agents=2",),
    )  # fmt: skip
    runs = runs_of(request)
    assert len(runs) == 4
    assert {(run.config.share.temperature, run.config.exploration.value) for run in runs} == {
        (0.1, "epsilon-greedy"), (0.1, "epsilon-z-greedy"), (0.3, "epsilon-greedy"), (0.3, "epsilon-z-greedy"),
    }  # fmt: skip
    assert all(run.config.episodes == 400 and run.config.set == ("num_agents=2",) for run in runs)
    assert runs[0].name == "pgm-3ag/cons-temperature=0.1-exploration=epsilon-greedy/seed-0"


def test_options_of_sharing_vary_only_those_who_have_them():
    variants = variants_of(("iql", "adhoc-td", "cons"), {"share.temperature": (0.1, 0.3), "share.ask_scale": (1.0,)})
    assert [variant.name for variant in variants] == [
        "iql", "adhoc-td-ask_scale=1.0", "cons-temperature=0.1-ask_scale=1.0", "cons-temperature=0.3-ask_scale=1.0",
    ]  # fmt: skip


def test_common_options_of_sharing_reach_only_those_who_have_them():
    runs = runs_of(SweepRequest(methods=("iql", "cons"), options=("share.start_episode=400", "episodes=800")))
    assert [run.config.share.start_episode for run in runs] == [None, 400]
    assert [run.config.episodes for run in runs] == [800, 800]


def test_a_file_says_the_same_as_the_command_line(tmp_path):
    path = tmp_path / "sweep.json"
    path.write_text(
        json.dumps(
            {
                "methods": ["iql", "cons"],
                "envs": ["pgm-3ag"],
                "seeds": [0, 1],
                "vary": {"share.temperature": [0.1, 0.3]},
                "options": {"episodes": 400},
                "set": ["num_agents=2"],
            }
        )
    )
    on_the_command_line = SweepRequest(
        methods=("iql", "cons"), envs=("pgm-3ag",), seeds=(0, 1), vary=("share.temperature=0.1,0.3",),
        options=("episodes=400",), set=("num_agents=2",),
    )  # fmt: skip
    assert sweep_from_file(path).runs() == runs_of(on_the_command_line)
    assert runs_of(SweepRequest(config=path)) == runs_of(on_the_command_line)


@pytest.mark.parametrize(
    ("request_", "sentence"),
    [
        (dict(), "say what to run"),
        (dict(methods=("con",)), "no method 'con': did you mean 'cons'"),
        (dict(methods=("iql", "iql")), "variants must differ"),
        (dict(methods=("iql",), seeds=(0, 0)), "seeds must differ"),
        (dict(methods=("iql",), seeds=(-1,)), "each seed"),
        (dict(methods=("iql",), options=("epsiodes=3",)), "no setting 'epsiodes': did you mean 'episodes'"),
        (
            dict(methods=("iql",), vary=("share.temperature=1,2",)),
            "none of the methods iql has an option share.temperature",
        ),
        (
            dict(methods=("iql",), vary=("share.temprature=1,2",)),
            "none of the methods iql has an option share.temprature",
        ),
        (dict(study="ablation", methods=("iql",)), "--study brings its own methods"),
        (dict(methods=("iql",), scale=0.1), "--scale shortens a study"),
        (dict(study="ablation", scale=2.0), "scale must be above 0 and at most 1"),
        (dict(study="weights"), "needs no runs"),
        (dict(study="pgm-9ag"), "no study 'pgm-9ag': did you mean"),
    ],
)
def test_wrong_requests_get_one_clear_sentence(request_, sentence):
    with pytest.raises(UsageError, match=sentence):
        runs_of(SweepRequest(**request_))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("methods: iql", "is not JSON"),
        ("[]", "must hold an object"),
        ('{"method": ["iql"]}', "a part 'method' that no sweep has: did you mean 'methods'"),
        ('{"methods": "iql"}', "must be a list"),
        ('{"methods": ["iql"], "envs": ["ft"]}', "at least one of its seeds"),
    ],
)
def test_wrong_files_get_one_clear_sentence(text, sentence, tmp_path):
    (tmp_path / "sweep.json").write_text(text)
    with pytest.raises(UsageError, match=sentence):
        sweep_from_file(tmp_path / "sweep.json")


def test_runs_begun_with_other_settings_are_left_alone(tmp_path):
    runs = Sweep(("pgm-3ag",), (Variant("iql"),), (0,)).runs()
    check_against(tmp_path, runs)
    directory = tmp_path / runs[0].name
    directory.mkdir(parents=True)
    (directory / "config.json").write_text(runs[0].config.to_json())
    check_against(tmp_path, runs)
    others = Sweep(("pgm-3ag",), (Variant("iql", {"learning_rate": 0.1}),), (0,)).runs()
    with pytest.raises(UsageError, match=r"begun with learning_rate 0\.0005, and now it should be 0\.1"):
        check_against(tmp_path, others)


def test_shortened_studies_have_a_directory_of_their_own():
    directories = [
        default_directory("ft", scale, options) for scale in (1, 0.1) for options in ((), ("preset=release",))
    ]
    assert len(set(directories)) == 4
