"""A file that names a program never runs it: not through any command, nor through the Python API."""

import ast
import dataclasses
import functools
import json
import sys
from pathlib import Path

import pytest

import consmarl
from consmarl.cli import main
from consmarl.cli.commands import COMMANDS
from consmarl.environments.foreign import foreign_world
from consmarl.environments.trust import NamedByFile, confirmed, passed_on
from consmarl.experiments.configuration.config import TrainConfig
from consmarl.experiments.sweeps.command import runs_of
from consmarl.experiments.sweeps.request import SweepRequest
from tests.security import hostile
from tests.security.sentences import refused

SAYS_WHAT_TO_ADD = r"names the environment .*is a program .* add --envs? .* or --trust"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Work in an empty folder with a hostile module on the import path; afterwards, check that it has not run."""
    place = tmp_path / "place"
    place.mkdir()
    monkeypatch.chdir(place)
    (tmp_path / f"{hostile.MODULE}.py").write_text(hostile.SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    assert not (place / "PWNED").exists()
    assert hostile.MODULE not in sys.modules


@pytest.fixture(params=["system", "module"])
def named(request):
    return hostile.NAMED[request.param]


@pytest.fixture
def files(named):
    """Every kind of file that a stranger may send, each naming the program."""
    env, settings = named
    run = hostile.whole_run(Path("run"), env, settings)
    # a run in an environment of ours whose policy names the program: a report would play that policy
    masked = hostile.write_run(Path("masked"), set=[], episodes=8)
    hostile.write_policy(masked / "policy.safetensors", hostile.config(env, settings))
    hostile.write_record(masked, hostile.config(env, settings))
    common = {"methods": ["iql"], "seeds": [0]}
    return {
        "RUN": run,
        "MASKED": masked,
        "POLICY": run / "policy.safetensors",
        "CONFIG": run / "config.json",
        "SWEEP": hostile.write_json(Path("sweep.json"), common | {"envs": [env], "set": settings}),
        "OPTIONS": hostile.write_json(Path("options.json"), common | {"envs": ["ft"], "options": {"env": env}}),
        "VARIED": hostile.write_json(Path("varied.json"), common | {"envs": ["ft"], "vary": {"env": [env, "ft"]}}),
    }


# How each command can be given such a file. A command that is missing here fails the test below.
WAYS = {
    "list": [],
    "train": ["--config CONFIG", "--config=CONFIG --seed 3", "--episodes 16 --config CONFIG"],
    "resume": ["RUN"],
    "evaluate": ["RUN", "POLICY", "MASKED --episodes 1"],
    "watch": ["RUN", "POLICY", "MASKED"],
    "view": ["RUN", "RUN --staged 1", "RUN --greedy 1", "RUN --staged 1 --without-sharing", "RUN RUN", "MASKED"],
    "sweep": ["--config SWEEP", "--config OPTIONS", "--config VARIED", "--config SWEEP --dry-run"],
    "report": ["RUN", "MASKED", "RUN MASKED"],
    "export": ["RUN"],
    "bench": ["--config CONFIG"],
}  # fmt: skip
# Commands that can run environments of other packages at all, and so say how to allow it.
RUNS_OTHERS = {"train", "resume", "evaluate", "watch", "sweep", "export", "bench"}


def test_every_command_is_tested():
    assert WAYS.keys() == COMMANDS.keys()


@pytest.mark.parametrize(("command", "words"), [(name, way) for name, ways in WAYS.items() for way in ways])
def test_no_command_runs_a_program_that_a_file_names(files, capsys, command, words):
    arguments = " ".join(words.split())
    for name in sorted(files, key=len, reverse=True):
        arguments = arguments.replace(name, str(files[name]))
    code = main([command, *arguments.split()])
    said = capsys.readouterr().err
    assert "Traceback" not in said
    # the fixture above checks that nothing has run
    if command in RUNS_OTHERS and "--dry-run" not in words:
        assert code == 2
        assert "--trust" in said or "itself" in said
    assert code in (0, 2)


def test_list_does_not_create_environments(named, capsys):
    assert main(["list", "--env", named[0]]) == 2
    assert "there is no world" in capsys.readouterr().err


def test_python_functions_do_not_run_a_program_that_a_file_names(files, named):
    run, policy = files["RUN"], files["POLICY"]
    for call in (
        lambda: consmarl.evaluate(run),
        lambda: consmarl.evaluate(policy, episodes=1),
        lambda: consmarl.evaluate(files["MASKED"]),
        lambda: consmarl.resume(run),
        lambda: consmarl.train(TrainConfig.from_file(run / "config.json")),
        lambda: TrainConfig.from_json(json.dumps(hostile.config(*named))).trainer(),
        lambda: dataclasses.replace(TrainConfig.from_file(run / "config.json"), seed=4).trainer(),
        lambda: TrainConfig.from_file(run / "config.json").with_options({"seed": 5}).trainer(),
        lambda: consmarl.evaluate(run, trust=""),
        lambda: consmarl.watch(policy=policy),
        lambda: consmarl.watch(policy=files["MASKED"]),
    ):
        with refused(SAYS_WHAT_TO_ADD):
            call()
    with refused("names the environment .*, and not"):
        consmarl.watch("pettingzoo:other", policy=policy)
    with refused("steps in Python"):
        consmarl.view(run, staged=1)


def test_no_worker_process_is_started_for_a_program_that_a_file_names(named, monkeypatch):
    monkeypatch.setattr("subprocess.Popen", None)
    config = hostile.config(*named) | {"num_envs": 4, "episodes": 8}
    with refused(SAYS_WHAT_TO_ADD):
        TrainConfig.from_json(json.dumps(config)).trainer()


def test_recorded_episodes_of_untrusted_environments_can_be_viewed(files):
    page = consmarl.view(files["RUN"])
    assert "action 2" in page.read_text(encoding="utf-8")


def test_naming_another_environment_does_not_give_permission(files):
    for trust in ("pettingzoo:other", "pgm-3ag"):
        for call in (consmarl.evaluate, consmarl.resume):
            with refused("names the environment .*, and not"):
                call(files["RUN"], trust=trust)
    with refused("--config has its own envs"):
        runs_of(SweepRequest(config=files["SWEEP"], envs=("ft",)))
    (run,) = runs_of(SweepRequest(config=files["SWEEP"]))
    assert isinstance(run.config.env, NamedByFile)
    assert passed_on(run.config.env) == ""


@pytest.mark.parametrize("named", [hostile.NAMED[name] for name in ("system", "popen")])
def test_functions_that_make_no_environment_cannot_be_called_even_with_trust(files, named):
    env, settings = named
    for call in (
        lambda: TrainConfig(env=env, set=tuple(settings)).trainer(),
        lambda: consmarl.evaluate(files["POLICY"], trust=True),
        lambda: consmarl.resume(files["RUN"], trust=env),
    ):
        with refused("os is part of Python itself"):
            call()


@pytest.mark.parametrize("id", ["pettingzoo:x; rm -rf ~", "pettingzoo:\x1b[2Jx", "pettingzoo:" + "x" * 10_000])
def test_environment_names_in_suggested_options_are_quoted_for_the_shell(id):
    with refused("add --env ('.*'|'.*'…) or --trust") as error:
        foreign_world(confirmed(id, False, "run/config.json"))
    assert str(error.value).isprintable()


class TestWithPermission:
    """A harmless environment, named by files that the user trusts."""

    ENV = "pettingzoo:consmarl:parallel_env"
    SETTINGS = ("id=pgm-3ag", "episode_limit=4")

    @pytest.fixture
    def path(self):
        return hostile.write_json(Path("config.json"), hostile.config(self.ENV, list(self.SETTINGS)))

    @pytest.mark.parametrize("trust", [True, ENV])
    def test_a_trusted_environment_is_created(self, path, trust):
        assert TrainConfig.from_file(path, trust=trust).trainer().world.num_agents == 3
        assert TrainConfig.from_file(path).trusted().trainer().world.num_agents == 3

    @pytest.mark.parametrize("words", [["--trust"], ["--env", ENV], [f"--env={ENV}"]])
    def test_train_and_bench_accept_permission_on_the_command_line(self, path, words, monkeypatch):
        begun = []
        monkeypatch.setattr("consmarl.experiments.train.train", lambda config, _out: begun.append(config))
        monkeypatch.setattr("consmarl.experiments.ending.ending", str)
        monkeypatch.setattr("consmarl.experiments.bench.print_bench", begun.append)
        for command in ("train", "bench"):
            assert main([command, "--config", str(path), *words]) == 0
        for config in begun:
            assert config.trainer().world.num_agents == 3

    @pytest.mark.parametrize("words", [dict(trust=True), dict(envs=(ENV,))])
    def test_sweeps_pass_the_permission_on_to_their_workers(self, words):
        content = {"methods": ["iql"], "seeds": [0], "envs": [self.ENV], "set": list(self.SETTINGS)}
        (run,) = runs_of(SweepRequest(config=hostile.write_json(Path("sweep.json"), content), **words))
        assert run.config.trainer().world.num_agents == 3
        # as job and worker do
        passed = TrainConfig.from_json(run.config.to_json(), trust=passed_on(run.config.env))
        assert passed.trainer().world.num_agents == 3


def test_a_sweeps_worker_runs_an_environment_that_the_user_trusts():
    options = {"episodes": 2, "hidden_size": 2, "batch_episodes": 1, "replay_episodes": 2, "warmup_steps": 0,
               "evaluation_episodes": 1, "final_episodes": 1, "tensorboard": False}  # fmt: skip
    named = {"envs": [TestWithPermission.ENV], "set": list(TestWithPermission.SETTINGS)}
    file = hostile.write_json(Path("sweep.json"), {"methods": ["iql"], "seeds": [0], "options": options} | named)
    command = ["sweep", "--config", str(file), "--out", "runs", "--workers", "1"]
    assert main(command) == 2
    assert not Path("runs").exists()
    (run,) = runs_of(SweepRequest(config=file))
    (Path("runs") / run.name).mkdir(parents=True)  # as if the run had begun, so that the worker reads this file too
    (Path("runs") / run.name / "config.json").write_text(run.config.resolved().to_json())
    assert main([*command, "--trust"]) == 0
    assert (Path("runs") / run.name / "result.json").is_file()


PACKAGE = Path(consmarl.__file__).parent


@functools.cache
def sources():
    """Every file of the package, parsed."""
    return {
        path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for path in PACKAGE.rglob("*.py")
    }


# These calls decide what code runs; every place that makes one has been reviewed.
DANGEROUS = {
    # our own modules; what a user asked for; the painter that an environment's class names
    "import_module": {"__init__.py", "environments/importing.py", "plugins.py", "environments/draw/frame.py"},
    "__import__": set(), "eval": set(), "exec": set(), "system": set(), "popen": set(),
    "compile": {"training/programs.py"}, "load_module": set(), "run_path": set(), "run_module": set(),
}  # fmt: skip


def called(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", ""), node


def test_code_is_imported_by_name_only_in_known_places():
    """No other place imports by name, so no command can import what a file names."""
    found = {name: set() for name in DANGEROUS}
    for path, tree in sources().items():
        for name, node in called(tree):
            if name in found and not _is_harmless(name, node):
                found[name].add(path)
            for keyword in node.keywords:
                constant = getattr(keyword.value, "value", None)
                assert not (keyword.arg in ("shell", "allow_pickle") and constant is not False), f"{path}: {name}"
    assert found == DANGEROUS


# All except json_files.py read only JSON that this process, or one that it started, has just written.
READ_JSON = {
    "json_files.py", "experiments/bench.py", "experiments/sweeps/worker.py", "experiments/train.py",
    "training/checkpoints.py", "training/parts.py", "training/programs.py",
    "viewer/packing.py", "viewer/staging.py", "viewer/view.py", "plugins.py",  # the last one loads entry points
}  # fmt: skip


def test_untrusted_json_is_read_in_one_place():
    """Reports read files with their own code in `reports/`, which has its own tests."""
    found = {path for path, tree in sources().items() if {"loads", "load"} & {name for name, _ in called(tree)}}
    assert {path for path in found if not path.startswith("reports/")} == READ_JSON


def test_nothing_is_unpickled_except_programs_in_the_users_cache():
    for path, tree in sources().items():
        if path == "training/programs.py":
            continue
        for node in ast.walk(tree):
            modules = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {"pickle", "dill", "cloudpickle", "marshal", "shelve", "joblib", "yaml"} & set(modules), path


def _is_harmless(name, node):
    """Whether the call is `re.compile` or `platform.system`, or imports a module named in the code itself."""
    of = getattr(getattr(node.func, "value", None), "id", "")
    return (of, name) in {("re", "compile"), ("platform", "system")} or (
        name == "import_module" and isinstance(node.args[0], ast.Constant)
    )
