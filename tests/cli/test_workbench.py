"""Every command, in the order in which users run them; in separate processes only where that matters."""

import json
import re
import signal
import subprocess

import pytest
from PIL import Image
from tests.calling import consmarl as run
from tests.experiments.small import COMMAND, SMALL, wait_for_rows

from consmarl.cli import main
from consmarl.cli.commands import COMMANDS
from consmarl.cli.options import options_of_command
from consmarl.experiments import bench
from consmarl.experiments.configuration.config import TrainConfig
from consmarl.experiments.sweeps.studies import STUDIES

BRIEF = SMALL | dict(episodes=16, report_every=8, evaluate_every=8, checkpoint_every=8)
OPTIONS = [f"{name}={getattr(value, 'value', value)}" for name, value in BRIEF.items() if name not in ("env", "set")]
SWEEP = ["sweep", "--methods", "iql", "cons", "--envs", "pgm-3ag", "--seeds", "3", "--set", *BRIEF["set"],
         "--options", *OPTIONS]  # fmt: skip


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    directory = tmp_path_factory.mktemp("swept")
    result = run(*SWEEP, cwd=directory)
    assert result.returncode == 0, result.stderr
    assert "2 finished: runs/sweep" in result.stdout
    assert "pgm-3ag/iql/seed-3: finished" in result.stderr
    return directory


def test_a_sweep_shows_its_plan_and_runs_nothing_twice(swept):
    planned = run(*SWEEP, "--dry-run", cwd=swept)
    assert planned.returncode == 0
    assert "pgm-3ag/cons/seed-3" in planned.stdout
    assert "2 runs in runs/sweep" in planned.stdout
    again = run(*SWEEP, cwd=swept)
    assert again.returncode == 0
    assert "2 runs, 0 to do" in again.stderr


def test_a_report_contains_policy_gifs_and_writes_figures_and_a_marl_eval_file(swept, tmp_path):
    result = run("report", "runs/sweep", "--out", tmp_path / "report.html", "--figures", tmp_path / "figures",
                 "--marl-eval", tmp_path / "marl-eval.json", cwd=swept)  # fmt: skip
    assert result.returncode == 0, result.stderr
    page = (tmp_path / "report.html").read_text()
    assert "CONS and IQL on pgm-3ag" in page
    assert page.count("data:image/gif;base64,") == 2
    assert len(list((tmp_path / "figures").glob("*.png"))) >= 2
    assert json.loads((tmp_path / "marl-eval.json").read_text())["PatientGoldMiner"]
    assert result.stdout.count("wrote ") == 2 + len(list((tmp_path / "figures").iterdir()))


def test_a_report_does_not_import_jax_or_the_training_code(swept, tmp_path):
    code = (
        "import sys; from pathlib import Path; from consmarl.reports.page import write_report\n"
        "from consmarl.reports.runs import read_runs\n"
        f"write_report(read_runs([Path('runs')]), Path({str(tmp_path / 'page.html')!r}))\n"
        "print([name for name in sys.modules if name == 'jax' or name.startswith('consmarl.training')])"
    )
    python = COMMAND.with_name("python")
    assert subprocess.check_output([python, "-c", code], text=True, cwd=swept).strip() == "[]"


def test_a_policy_is_watched_evaluated_and_exported(swept, tmp_path):
    policy = swept / "runs" / "sweep" / "pgm-3ag" / "cons" / "seed-3"
    watched = run("watch", policy, "--out", tmp_path / "policy.gif")
    assert watched.returncode == 0, watched.stderr
    with Image.open(tmp_path / "policy.gif") as image:
        assert image.n_frames > 1
    evaluated = run("evaluate", policy, "--episodes", "5")
    assert evaluated.returncode == 0
    assert re.search(r"team return +-?\d+\.\d+ ±", evaluated.stdout)
    exported = run("export", policy, "--out", tmp_path / "policy.safetensors")
    assert exported.returncode == 0
    assert run("evaluate", tmp_path / "policy.safetensors", "--episodes", "5").stdout == evaluated.stdout


def test_an_unfinished_run_is_evaluated_and_watched_at_its_newest_checkpoint(swept, tmp_path, capsys):
    finished, copy = swept / "runs" / "sweep" / "pgm-3ag" / "iql" / "seed-3", tmp_path / "copy"
    subprocess.check_call(["cp", "-r", finished, copy])
    for name in ("policy.safetensors", "result.json", "checkpoints/checkpoint-000000016"):
        subprocess.check_call(["rm", "-r", copy / name])
    exported, watched = tmp_path / "after-8.safetensors", tmp_path / "after-8.gif"
    assert main(["export", str(copy), "--out", str(exported)]) == 0
    assert main(["evaluate", str(exported), "--episodes", "5"]) == 0
    reached = capsys.readouterr().out.split("wrote", 1)[1].splitlines()[1:]
    assert main(["evaluate", str(copy), "--episodes", "5"]) == 0
    said = capsys.readouterr()
    assert f"{copy} has not finished: this is its policy after 8 of 16 episodes." in said.err
    assert said.out.splitlines() == reached
    assert main(["watch", str(copy), "--out", str(watched)]) == 0
    assert "after 8 of 16 episodes" in capsys.readouterr().err


def test_evaluating_a_run_that_has_saved_nothing_is_refused(tmp_path, capsys):
    (tmp_path / "config.json").write_text(TrainConfig(**BRIEF).to_json())
    assert main(["evaluate", str(tmp_path)]) == 2
    assert "nothing was saved there" in capsys.readouterr().err


def test_a_configuration_can_be_written_to_a_file_and_read_back_with_changes(tmp_path, capsys):
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    assert main(["train", "--method", "cons", "--share.temperature", "0.5", "--write-config", str(first)]) == 0
    assert main(["train", "--config", str(first), "--seed", "3", f"--write-config={second}"]) == 0
    assert f"wrote {second}" in capsys.readouterr().out
    config = TrainConfig.from_file(second)
    assert (config.method, config.share.temperature, config.seed) == ("cons", 0.5, 3)


def test_list_shows_environments_methods_and_studies():
    listed = run("list").stdout
    for name in ("pgm-6ag", "cleanup", "adhoc-td", *STUDIES):
        assert name in listed
    study = run("list", "--study", "ablation").stdout
    assert "figure 9" in study
    assert "CONS wo-TE" in study


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("how", ["{} --help-all", "help {} --all"])
def test_help_shows_every_option(name, how, capsys):
    assert main(how.format(name).split()) == 0
    shown = set(re.findall(r"^  (--[a-z][a-z.0-9-]*) ", capsys.readouterr().out, flags=re.MULTILINE))
    command = COMMANDS[name].kind([])
    options = options_of_command(command if isinstance(command, type) else type(command))
    assert shown == {each.name for each in options if not each.is_positional}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["trian"], "no command 'trian': did you mean 'train'"),
        (["train", "--epsiodes", "3"], "no option --epsiodes: did you mean '--episodes'"),
        (["train", "--share.temprature", "3"], "did you mean '--share.temperature'"),
        (["train", "--method", "con"], "--method has no value 'con': did you mean 'cons'?"),
        (["train", "--env", "pgm-3g"], "no world 'pgm-3g': did you mean 'pgm-3ag'"),
        (["train", "--episodes", "many"], "--episodes takes a whole number, not 'many'."),
        (["train", "--learning-rate", "fast"], "--learning-rate takes a number, not 'fast'."),
        (["train", "--episodes"], "Missing value for argument '--episodes'"),
        (["train", "--share.temperature", "0.5"], "share.temperature is set, but nobody shares"),
        (["train", "--num-envs", "4", "--episodes", "30"], "multiple of num_envs (4), not 30: 32 is the next."),
        (["train", "--config", "none.json"], "no configuration none.json"),
        (["train", "--config"], "--config needs a file"),
        (["resume", "nowhere"], "nowhere is not the directory of a run: it has no config.json."),
        (["evaluate", "nowhere"], "no policy file nowhere"),
        (["watch", "nowhere", "--env", "ft"], "name an environment or a policy, not both"),
        (["export", "nowhere"], "nowhere is not the directory of a run"),
        (["report"], "name directories of runs"),
        (["report", "nowhere"], "no directory nowhere"),
        (["report", "."], ". contains no run: a run's directory has a config.json"),
        (["report", "--study", "ablatoin"], "no study 'ablatoin': did you mean 'ablation'"),
        (["report", "--study", "ablation"], "run the study first with `consmarl sweep --study ablation`"),
        (["sweep", "--study", "pgm-3ag", "--scale", "7"], "scale must be above 0 and at most 1"),
        (["sweep", "--methods", "iql", "--workers", "0"], "workers must be a whole number of at least 1"),
        (["sweep", "--methods", "iql", "--ray", "auto", "--workers", "2"], "--workers is for this machine"),
        (["sweep", "--methods", "iql", "--envs", "pgm-3g"], "no world 'pgm-3g'"),
        (["list", "--env", "pgm-3g"], "no world 'pgm-3g'"),
        (["bench", "--devices", "2"], "speed is measured on one core"),
    ],
)
def test_invalid_input_is_refused_in_one_line_and_writes_nothing(arguments, sentence, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert said.startswith("consmarl: ")
    assert len(said.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_training_into_the_directory_of_another_run_is_refused(swept):
    directory = swept / "runs" / "sweep" / "pgm-3ag" / "iql" / "seed-3"
    before = {path: path.read_bytes() for path in directory.rglob("*") if path.is_file() and path.name != ".lock"}
    result = run("train", "--out", directory)
    assert result.returncode == 2
    assert f"continue it with `consmarl resume {directory}`" in result.stderr
    assert {path: path.read_bytes() for path in before} == before


def test_the_weights_study_is_plotted_without_any_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["report", "--study", "weights", "--figures", "figures"]) == 0
    assert "h(x)" in (tmp_path / "report.html").read_text()
    assert (tmp_path / "figures" / "weights.png").is_file()


def test_bench_estimates_how_long_the_requested_run_takes(monkeypatch, capsys):
    def measure(config):
        asked.append(config)
        return bench.Measured(1e11, 5e5, 0.05, 9.0, config.episodes, 2.5e9)

    asked = []
    monkeypatch.setattr(bench, "measure", measure)  # test_bench.py tests the measurement itself
    assert main(["bench", "--set", *BRIEF["set"], "--hidden-size", "8", "--batch-episodes", "4"]) == 0
    assert asked == [TrainConfig(set=BRIEF["set"], hidden_size=8, batch_episodes=4)]
    printed = capsys.readouterr().out
    assert "training episode" in printed
    assert "run of 40,000 episodes" in printed


def test_help_and_version():
    assert "usage: consmarl COMMAND" in run("--help").stdout
    assert run("help").stdout == run("--help").stdout
    assert run("--version").stdout.startswith("consmarl ")
    nothing = subprocess.run([COMMAND], capture_output=True, text=True, check=False)
    assert nothing.returncode == 2
    assert "sweep" in nothing.stdout


def test_a_report_leaves_out_pictures_that_cannot_be_made(swept, tmp_path):
    runs = tmp_path / "runs"
    subprocess.check_call(["cp", "-r", swept / "runs" / "sweep", runs])
    for path in runs.rglob("policy.gif"):
        path.unlink()
    (runs / "pgm-3ag" / "cons" / "seed-3" / "policy.safetensors").write_bytes(b"damaged")
    result = run("report", runs, "--out", tmp_path / "report.html")
    assert result.returncode == 0, result.stderr
    assert "no picture of pgm-3ag" in result.stderr
    assert "is not a safetensors file" in result.stderr
    assert (tmp_path / "report.html").read_text().count("data:image/gif;base64,") == 1


def test_an_interrupted_sweep_saves_its_runs_and_can_be_continued(tmp_path):
    words = ["episodes=800" if word == "episodes=16" else word for word in SWEEP if word != "cons"]
    longer = [*words, "--out", tmp_path / "sweep"]
    process = subprocess.Popen([COMMAND, *longer], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    metrics = tmp_path / "sweep" / "pgm-3ag" / "iql" / "seed-3" / "metrics.jsonl"
    with process:
        wait_for_rows(metrics.parent, process, 5)
        process.send_signal(signal.SIGINT)
        said, errors = process.communicate(timeout=240)
    assert process.returncode == 130, errors
    assert "Repeat the command to run what is missing." in said
    stopped_after = len(metrics.read_text().splitlines())
    assert 5 <= stopped_after < 101
    assert run(*longer).returncode == 0
    assert [json.loads(line)["episode"] for line in metrics.read_text().splitlines()] == list(range(0, 801, 8))
