"""Hundreds of plausible and odd inputs: each succeeds or is refused in one sentence, and none costs time or memory.

Names come from the real options, so a new option is tried as soon as it exists. The entry points of slow work are
replaced: an input that reaches one has been parsed and accepted, which is what is tested here.
"""

import contextlib
import io
import os
import resource
import shutil
import signal
import warnings
from pathlib import Path

import hypothesis
import jax
import numpy as np
import pytest
from hypothesis import strategies as st
from tests.experiments.small import SMALL

import consmarl
import consmarl.viewer.view  # imported while a door is closed, it would keep the closed door for later tests
from consmarl.cli import main
from consmarl.cli.commands import COMMANDS
from consmarl.cli.options import options_of_command
from consmarl.environments.registry import WORLDS
from consmarl.errors import UsageError
from consmarl.experiments.configuration.config import TrainConfig
from consmarl.experiments.policies import export_policy
from consmarl.sharing.cons import Cons

pytestmark = pytest.mark.usefixtures("place")

SECONDS = 20  # for one input on a busy machine; most take hundredths of a second
GIGABYTES = 4  # in addition to what JAX has claimed already


class Reached(Exception):  # noqa: N818
    """An input has been accepted: the real work would begin here."""


def reached(*_, **__):
    raise Reached


DOORS = (
    "consmarl.training.parts.RunParts.init",  # train, resume, export, staged episodes
    "consmarl.experiments.evaluate.evaluation_summary",
    "consmarl.experiments.frames.write_gif",
    "consmarl.experiments.frames.write_mp4",
    "consmarl.experiments.sweeps.command.conduct",
    "consmarl.experiments.bench.subprocess.run",
    "consmarl.reports.page.write_report",
    "consmarl.experiments.watch.policy_gif",
    "consmarl.viewer.page.write_page",
)


def in_time(work):
    """Do the work, but fail if it takes too long."""

    def late(*_):
        raise AssertionError(f"a try took longer than {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        return work()
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with typical files, in which commands are tried; their real work is replaced."""
    place = tmp_path_factory.mktemp("tries") / "one" / "two"  # so that ../.. is a temporary folder as well
    trainer = TrainConfig(**SMALL).trainer()
    shapes = jax.eval_shape(trainer.learner.parameters, trainer.shapes().learner)
    zeros = jax.tree.map(lambda shape: np.zeros(shape.shape, shape.dtype), shapes)
    policy = export_policy(place / "run" / "policy.safetensors", zeros, TrainConfig(**SMALL), 480)
    FILES["run/policy.safetensors"] = policy.read_bytes()
    tidy_up(place)
    here, limits = Path.cwd(), resource.getrlimit(resource.RLIMIT_AS)
    with pytest.MonkeyPatch.context() as patch:
        for door in DOORS:
            patch.setattr(door, reached)
        os.chdir(place)
        resource.setrlimit(resource.RLIMIT_AS, (claimed_bytes() + GIGABYTES * 10**9, limits[1]))
        yield place
        resource.setrlimit(resource.RLIMIT_AS, limits)
        os.chdir(here)


def claimed_bytes():
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


FILES = {
    "empty": b"",
    "list.json": b"[]",
    "bytes.json": b"\xff\xfe\x00",
    "deep.json": b"[" * 100_000,
    "odd.json": b'{"episodes": "many", "record": {}, "share": [1], "method": null}',
    "scientific.json": b'{"episodes": 1e4, "evaluate_every": 2e3, "record": [1e2]}',
    "run/config.json": TrainConfig(**SMALL).to_json().encode(),
}


def tidy_up(place=Path()):
    """Restore the folder's original contents: some inputs succeed and write files."""
    for path in place.iterdir():
        if path.name not in ("run", "folder", *FILES):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    for name in ("run", "folder"):
        (place / name).mkdir(exist_ok=True)
        for path in (place / name).iterdir():
            if f"{name}/{path.name}" not in FILES:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
    for name, content in FILES.items():
        (place / name).write_bytes(content)


def tried(words):
    """Run one command line; return the sentence that refused it, or an empty string."""
    tidy_up()
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = in_time(lambda: main(list(words)))
        except Reached:
            code = 0
    said = err.getvalue()
    assert code in (0, 2), (words, code, said)
    assert "Traceback" not in said + out.getvalue(), (words, said)
    if code == 2 and words:
        assert said.startswith("consmarl: "), (words, said)
        assert said.count("\n") == 1, (words, said)
        assert "not enough memory for this" not in said, (words, said)  # must be refused before memory runs out
    return said if code == 2 else ""


# The inputs that were first reported, and those found since.
REFUSED = {
    "train --seed 9223372036854775808": "seed must be a whole number from 0 to 2,147,483,647",
    "watch --seed 99999999999999999999": "seed must be a whole number from 0 to 2,147,483,647",
    "evaluate run --seed 99999999999999999999": "seed must be a whole number from 0 to 2,147,483,647",
    "view run --seed 4294967296": "seed must be a whole number from 0 to 2,147,483,647",
    "sweep --methods iql --seeds 9223372036854775808": "seed must be a whole number from 0 to 2,147,483,647",
    "train --episodes 10000000000000000000000": "episodes must be a whole number from 1 to 2,147,483,647",
    "train --episodes 1000000000": "a run in pgm-3ag can have at most 85,899,340 episodes",
    "train --replay-episodes 100000000000": "replay_episodes must be a whole number from 1 to 2,147,483,647",
    "train --replay-episodes 1000000000": "a replay of 1,000,000,000 episodes needs 4 TB of memory",
    "train --hidden-size 10000000": "learning with networks 10,000,000 wide needs",
    "train --batch-episodes 1000000000": "an update on 1,000,000,000 episodes needs",
    "train --num-envs 20000000 --episodes 20000000": "episodes side by side needs",
    "train --num-envs 100000000 --episodes 100000000": "num_envs can be at most 42,949,672 in pgm-3ag",
    "train --method cons --report-every 80000000 --episodes 80000000": "--report-every",
    "bench --hidden-size 10000000": "learning with networks 10,000,000 wide needs",
    "evaluate run --episodes 100000000000": "episodes must be a whole number from 1 to 1,000,000",
    "watch --episodes 1000000000": "episodes must be a whole number from 1 to 1,000",
    "view run --staged 1000000000": "staged must be a whole number from 0 to 1,000",
    "train --devices 1000000": "devices can be at most",
    "train --set view=60001,60001": "view can have at most 65,536 cells",
    "train --set grid=65535,65535": "grid can have at most 4,194,304 cells",
    "train --env mpe2.simple_spread_v3": "pettingzoo:mpe2.simple_spread_v3",
    "train --env simple_spread_v3": "is written pettingzoo:simple_spread_v3",
    "watch --env Foraging-8x8-2p-2f-v3": "lbforaging:Foraging-8x8-2p-2f-v3",
    "train --lr 0.1": "did you mean '--learning-rate'?",
    "train --gamma 0.1": "did you mean '--discount'?",
    "train --batch-size 3": "did you mean '--batch-episodes'?",
    "train --buffer-size 3": "did you mean '--replay-episodes'?",
    "train --n-agents 3": "--set num_agents=VALUE",
    "train --num_agents 3": "--set num_agents=VALUE",
    "train --temperature 3": "did you mean '--share.temperature'",
    "train --verbose": "there is no option --verbose: `consmarl train --help` lists the options.",
    "list --method cons": "there is no option --method: choose from '--ids'",
    "train --discount 1.5": "discount must lie between 0 and 1, not 1.5.",
    "train --discount nan": "discount must be a finite number",
    "train --method i2q --learn.expectile 2": "learn.expectile must lie between 0 and 1",
    "train --learning-rate 1e39": "learning_rate must be a finite number",
    "train --episodes 1.5e0": "--episodes takes a whole number, not '1.5e0'",
    "train --episodes 1e400": "--episodes takes a whole number, not '1e400'",
    "help nonsense": "there is no command 'nonsense'",
    f"train --out {'x' * 300}": "File name too long",
    f"train --episodes {'9' * 5000}": "--episodes takes a whole number",
    "sweep --methods iql --options lr=0.1": "did you mean 'learning_rate'?",
}


@pytest.mark.parametrize("line", REFUSED)
def test_is_refused_in_one_sentence(line):
    assert REFUSED[line] in tried(line.split())


@pytest.mark.parametrize("command", ["train", "watch", "export run", "report run", "sweep --methods iql", "view run"])
def test_an_empty_path_does_not_mean_the_current_folder(command, place):
    for words in (["--out", ""], ["--out="]):
        assert "--out takes a path, not ''." in tried([*command.split(), *words])
        assert {path.name for path in place.iterdir()} <= {"run", "folder", *FILES}


@pytest.mark.parametrize(
    "line",
    [
        "train --episodes 1e4 --out a",
        "train --episodes 10_000 --record 1e3 --out b",
        "sweep --methods iql --options episodes=1e4 --dry-run",
        "watch --set num_agents=1e1 --episodes 1e1",
        "train --config scientific.json --out c",
        "help",
        "help train",
        "help train --all",
        "train --method cons --preset release --help",
        "train --method nonsense --help",
        "train --env pettingzoo:nowhere --method ga-comm --help",
        "evaluate run --episodes 1e3",
    ],
)
def test_is_accepted(line):
    assert tried(line.split()) == ""


ODD_WORDS = [
    "", "-1", "0", "1", "7", "1e4", "1e400", "1.5", "nan", "inf", "-inf", "2147483647", "2147483648", "1" + "0" * 22,
    "9" * 400, "True", "None", "null", "[]", "{}", "{[]:1}", "()", "a=b", "=", "é×²", "\udcff", " ", "a b", "'", "[",
    "-" * 3000, "(" * 300, "../..", "folder", "empty", "list.json", "bytes.json", "run", "run/config.json",
    "run/policy.safetensors", "nowhere", "nowhere/deeper", "/dev/null/x", "x" * 300, "--", "-x", "pgm-3ag", "ft", "iql",
    "cons", "pettingzoo:", "pettingzoo:os", "pettingzoo:os:getcwd", "pettingzoo:..", "lbforaging:x", "out.gif",
    "0x10", "1_000", "%s", "{0}", "[red]",
]  # fmt: skip
SETTINGS = [each.setting for each in options_of_command(TrainConfig)]
PARAMETERS = sorted({name for entry in WORLDS.values() for name in entry.parameters})
PATHS = [
    "folder", "empty", "list.json", "bytes.json", "deep.json", "odd.json", "run", "run/config.json", "nowhere",
    "run/policy.safetensors", "new/deeper/out.gif", "out.gif", "out.mp4", "/dev/null/x", "../..", ".", "",
]  # fmt: skip
odd_words = st.sampled_from(ODD_WORDS)
pairs = st.builds("{}={}".format, st.sampled_from([*SETTINGS, *PARAMETERS]), odd_words)


def options_of(command):
    kind = COMMANDS[command].kind([])
    return list(options_of_command(kind if isinstance(kind, type) else type(kind)))


OPTIONS = {command: options_of(command) for command in COMMANDS}


def values_of(option):
    """Values for an option: plausible ones and odd ones."""
    if option.negation is not None:
        return st.just([])
    if "=" in option.metavar or option.setting == "set":
        return st.lists(st.one_of(pairs, odd_words), max_size=2)
    likely = option.choices or (PATHS if "PATH" in option.metavar else ["1", "2", "16", "0.5"])
    return st.lists(st.one_of(st.sampled_from(likely), odd_words), min_size=1, max_size=1)


@st.composite
def command_lines(draw):
    command = draw(st.sampled_from([*COMMANDS, "train", "train", "sweep"]))
    there = [each for each in OPTIONS[command] if not each.is_positional]
    words = [command]
    if len(there) < len(OPTIONS[command]):
        words += draw(st.lists(st.one_of(st.just("run"), st.sampled_from(PATHS), odd_words), max_size=2))
    for option in draw(st.lists(st.sampled_from(there), max_size=3, unique=True)) if there else []:
        name = draw(st.sampled_from([option.name, option.name, option.name, option.negation or option.name]))
        words += [name, *draw(values_of(option))]
    return words


@hypothesis.settings(max_examples=300, derandomize=True, database=None, deadline=None,
                     suppress_health_check=list(hypothesis.HealthCheck))  # fmt: skip
@hypothesis.given(words=command_lines())
def test_any_command_line_succeeds_or_is_refused_in_one_sentence(words):
    tried(words)


def path_tries():
    """Every option that takes a path, with every kind of file."""
    for command, options in OPTIONS.items():
        for option in options:
            for path in PATHS if "PATH" in option.metavar else []:
                before = [] if option.is_positional else [option.name]
                others = ["run"] if not option.is_positional and options[0].is_positional else []
                yield [command, *others, *before, path]


def test_any_path_is_used_or_refused_in_one_sentence():
    wrong = []
    for words in path_tries():
        try:
            tried(words)
        except Exception as error:  # noqa: BLE001
            wrong.append(f"{' '.join(words)}: {type(error).__name__}: {str(error)[:100]}")
    assert not wrong, "\n" + "\n".join(wrong)


ODD_VALUES = [
    None, True, -1, 0, 1, 2.0, 1.5, float("nan"), float("inf"), 2**31 - 1, 2**31, 2**63, 10**400, "", "odd",
    "cons", "paper", "é", b"bytes", [], {}, (), (1, 2), ["a"], {"a": 1}, object(), Path("odd"), 1j, print,
]  # fmt: skip


def complaint(work):
    """Return what is wrong with how a call ended; None if it succeeded or was refused in one line."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # an Advisor warns that sharing starts late
            in_time(work)
    except Reached:
        return None
    except UsageError as error:
        return None if len(str(error)) < 1000 and "\n" not in str(error) else f"a long sentence: {error}"
    except Exception as error:  # noqa: BLE001
        return f"{type(error).__name__}: {str(error)[:100]}"
    return None


def odd_calls():
    for setting in [each.setting for each in options_of_command(TrainConfig) if "." not in each.setting]:
        for value in ODD_VALUES:
            yield f"TrainConfig({setting}=…)", lambda name=setting, odd=value: TrainConfig(**{name: odd}).trainer()
    for id, entry in WORLDS.items():
        for name in entry.parameters:
            for value in ODD_VALUES:
                yield f"make({id}, {name}=…)", lambda id=id, name=name, odd=value: consmarl.make(id, **{name: odd})
    for value in ODD_VALUES:
        yield "make(…)", lambda odd=value: consmarl.make(odd)
        yield "Advisor(num_agents=…)", lambda odd=value: consmarl.Advisor(odd, 5)
        yield "Advisor(num_actions=…)", lambda odd=value: consmarl.Advisor(3, odd)
        yield "Advisor(sharing=…)", lambda odd=value: consmarl.Advisor(3, 5, odd)
        yield "Advisor(seed=…)", lambda odd=value: consmarl.Advisor(3, 5, seed=odd)
        yield "evaluate(policy=…)", lambda odd=value: consmarl.evaluate(odd)
        yield "evaluate(episodes=…)", lambda odd=value: consmarl.evaluate(Path("run"), episodes=odd)
        yield "evaluate(seed=…)", lambda odd=value: consmarl.evaluate(Path("run"), seed=odd)
        yield "watch(seed=…)", lambda odd=value: consmarl.watch("pgm-3ag", seed=odd)
        yield "parallel_env(…)", lambda odd=value: consmarl.parallel_env("pgm-3ag", odd)
        for name in vars(Cons()):
            yield f"Cons({name}=…)", lambda name=name, odd=value: Cons(**{name: odd})


def test_odd_values_from_python_are_accepted_or_refused_in_one_line():
    wrong = {f"{what}: {wrong}" for what, call in odd_calls() if (wrong := complaint(call))}
    assert not wrong, "\n" + "\n".join(sorted(wrong))
