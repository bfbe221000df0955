"""Which runs a sweep consists of, and which sweeps are refused."""

import json

import pytest

from consmarl.errors import UsageError
from consmarl.experiments.configuration.config import TrainConfig
from consmarl.experiments.sweeps.command import default_directory, runs_of, sweep
from consmarl.experiments.sweeps.plan import Sweep, Variant, check_against, variants_of
from consmarl.experiments.sweeps.request import SweepRequest
from consmarl.experiments.sweeps.sweep_file import sweep_from_file


def test_runs_cover_environments_methods_and_seeds_and_are_ordered_by_seed():
    runs = runs_of(SweepRequest(methods=("iql", "cons"), envs=("pgm-3ag", "ft"), seeds=(3, 4)))
    assert [run.name for run in runs] == [
        f"{env}/{method}/seed-{seed}" for seed in (3, 4) for env in ("pgm-3ag", "ft") for method in ("iql", "cons")
    ]
    assert runs[-1].config == TrainConfig(env="ft", method="cons", seed=4)


def test_options_apply_to_all_runs_and_varied_options_multiply_them():
    request = SweepRequest(
        methods=("cons",), envs=("pgm-3ag",), seeds=(0,), options=("episodes=400", "share.update_rate=0.5"),
        vary=("share.temperature=0.1,0.3", "exploration=epsilon-greedy,epsilon-z-greedy"), set=("num_agents=2",),
    )  # fmt: skip
    runs = runs_of(request)
    assert len(runs) == 4
    assert {(run.config.share.temperature, run.config.exploration) for run in runs} == {
        (0.1, "epsilon-greedy"), (0.1, "epsilon-z-greedy"), (0.3, "epsilon-greedy"), (0.3, "epsilon-z-greedy"),
    }  # fmt: skip
    assert all(run.config.episodes == 400 and run.config.set == ("num_agents=2",) for run in runs)
    assert runs[0].name == "pgm-3ag/cons-temperature=0.1-exploration=epsilon-greedy/seed-0"


def test_varied_sharing_options_apply_only_to_methods_that_have_them():
    variants = variants_of(("iql", "adhoc-td", "cons"), {"share.temperature": (0.1, 0.3), "share.ask_scale": (1.0,)})
    assert [variant.name for variant in variants] == [
        "iql", "adhoc-td-ask_scale=1.0", "cons-temperature=0.1-ask_scale=1.0", "cons-temperature=0.3-ask_scale=1.0",
    ]  # fmt: skip


def test_common_sharing_options_apply_only_to_methods_that_have_them():
    runs = runs_of(SweepRequest(methods=("iql", "cons"), options=("share.start_episode=400", "episodes=800")))
    assert [run.config.share.start_episode for run in runs] == [None, 400]
    assert [run.config.episodes for run in runs] == [800, 800]


def test_a_file_plans_the_same_runs_as_the_command_line(tmp_path):
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
        (dict(study="ablation", methods=("iql",)), "--study has its own methods"),
        (dict(methods=("iql",), scale=0.1), "--scale shortens a study"),
        (dict(study="ablation", scale=2.0), "scale must be above 0 and at most 1"),
        (dict(study="weights"), "needs no runs"),
        (dict(study="pgm-9ag"), "no study 'pgm-9ag': did you mean"),
        (dict(methods=("cons",), options=("env=ft",)), "a sweep sets env itself: use --envs"),
        (dict(methods=("cons",), options=("method=iql",)), "a sweep sets method itself: use --methods"),
        (dict(methods=("cons",), options=("seed=3",)), "a sweep sets seed itself: use --seeds"),
        (dict(methods=("cons",), options=("set=('num_agents=2',)",)), "a sweep sets set itself: use --set"),
        (dict(methods=("cons",), vary=("env=ft,cleanup",)), "a sweep sets env itself: use --envs"),
        (dict(methods=("cons",), vary=("seed=1,2",)), "a sweep sets seed itself: use --seeds"),
        (dict(study="ft", options=("env=cleanup",)), "the study ft has its own env"),
        (dict(study="ft", options=("method=iql",)), "the study ft has its own method"),
        (dict(study="ft", options=("seed=1",)), "a sweep sets seed itself: use --seeds"),
        (
            dict(methods=("cons",), options=("discount=0.9",), vary=("discount=0.9,0.99",)),
            "discount is both varied and set for all runs",
        ),
        (dict(methods=("iql",), options=("hidden-size=8", "hidden_size=9")), "hidden_size is set twice"),
    ],
)
def test_invalid_sweeps_are_refused(request_, sentence):
    with pytest.raises(UsageError, match=sentence):
        runs_of(SweepRequest(**request_))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("methods: iql", "is not JSON"),
        ("[]", "must contain an object"),
        ('{"method": ["iql"]}', "an unknown part 'method': did you mean 'methods'"),
        ('{"methods": "iql"}', "must be a list"),
        ('{"methods": [1]}', "methods must be a list of strings"),
        ('{"methods": ["iql"], "envs": [["ft"]]}', "envs must be a list of strings"),
        ('{"methods": ["iql"], "envs": ["ft"], "seeds": ["1"]}', "seeds must be a list of numbers"),
        ('{"methods": ["iql"], "vary": ["discount"]}', "vary must be an object such as"),
        ('{"methods": ["iql"], "vary": {"discount": 0.9}}', "discount in vary must be a list of values"),
        ('{"methods": ["iql"], "vary": {"discount": []}}', "discount in vary must be a list of values"),
        ('{"methods": ["iql"], "options": [1]}', "options must be an object such as"),
        ('{"methods": ["iql"], "options": {"env": "ft"}}', "a sweep sets env itself"),
        ('{"methods": ["iql"], "options": {"hidden-size": 8, "hidden_size": 8}}', "twice"),
        ("[" * 100_000, "is nested too deeply"),
        ('{"methods": ["iql"], "envs": ["ft"]}', "at least one of its seeds"),
    ],
)
def test_invalid_files_are_refused(text, sentence, tmp_path):
    (tmp_path / "sweep.json").write_text(text)
    with pytest.raises(UsageError, match=sentence):
        sweep_from_file(tmp_path / "sweep.json")


def test_a_file_that_is_not_utf8_is_refused(tmp_path):
    (tmp_path / "sweep.json").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="is not UTF-8"):
        sweep_from_file(tmp_path / "sweep.json")


def test_settings_can_be_spelled_with_hyphens_or_underscores(tmp_path):
    by_hyphens = SweepRequest(methods=("cons",), options=("share.start-episode=10",), vary=("batch-episodes=8,16",),
                              set=("num-agents=2",))  # fmt: skip
    by_underscores = SweepRequest(methods=("cons",), options=("share.start_episode=10",), vary=("batch_episodes=8,16",),
                                  set=("num_agents=2",))  # fmt: skip
    assert runs_of(by_hyphens) == runs_of(by_underscores)
    path = tmp_path / "sweep.json"
    path.write_text(
        json.dumps(
            {
                "methods": ["cons"],
                "envs": ["pgm-3ag"],
                "seeds": [0],
                "set": ["num-agents=2"],
                "options": {"share.start-episode": 10},
                "vary": {"batch-episodes": [8, 16]},
            }
        )
    )
    assert sweep_from_file(path).runs() == runs_of(by_underscores)
    assert TrainConfig(set=("num-agents=2",)).trainer().world.num_agents == 2


@pytest.mark.parametrize(
    ("request_", "sentence"),
    [
        (dict(envs=("nope",)), "there is no world 'nope'"),
        (dict(set=("grid=1,1",)), "grid"),
        (dict(options=("share.update_rate=7",)), "update_rate"),
        (dict(workers=0), "workers must be a whole number of at least 1"),
        (dict(ray="auto", workers=2), "--workers is for this machine"),
    ],
)
@pytest.mark.parametrize("dry_run", [True, False])
def test_a_dry_run_refuses_what_a_real_one_would(request_, sentence, dry_run, tmp_path, capsys):
    request = SweepRequest(methods=("cons",), out=tmp_path / "sweep", dry_run=dry_run, **request_)
    with pytest.raises(UsageError, match=sentence):
        sweep(request)
    assert not (tmp_path / "sweep").exists()
    assert capsys.readouterr().out == ""


def test_a_dry_run_refuses_a_directory_that_a_real_one_could_not_use(tmp_path):
    request = SweepRequest(methods=("iql",), out=tmp_path / "sweep", dry_run=True)
    assert sweep(request) == 0
    assert not (tmp_path / "sweep").exists()
    directory = tmp_path / "sweep" / "pgm-3ag" / "iql" / "seed-0"
    directory.mkdir(parents=True)
    (directory / "config.json").write_text(TrainConfig(discount=0.9).resolved().to_json())
    with pytest.raises(UsageError, match=r"started with discount 0\.9"):
        sweep(request)
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="is not a writable directory"):
        sweep(SweepRequest(methods=("iql",), out=tmp_path / "file" / "sweep", dry_run=True))


def test_runs_started_with_other_settings_are_not_continued(tmp_path):
    runs = Sweep(("pgm-3ag",), (Variant("iql"),), (0,)).runs()
    check_against(tmp_path, runs)
    directory = tmp_path / runs[0].name
    directory.mkdir(parents=True)
    (directory / "config.json").write_text(runs[0].config.resolved().to_json())
    check_against(tmp_path, runs)
    others = Sweep(("pgm-3ag",), (Variant("iql", {"discount": 0.5}),), (0,)).runs()
    with pytest.raises(UsageError, match=r"started with discount 0\.\d+, and now 0\.5 is wanted"):
        check_against(tmp_path, others)


def test_shortened_studies_have_separate_directories():
    directories = [
        default_directory("ft", scale, options) for scale in (1, 0.1) for options in ((), ("preset=release",))
    ]
    assert len(set(directories)) == 4
