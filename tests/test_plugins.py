"""Plugins are found, loaded and listed, but never run just because a file names them."""

import sys

import pytest

from consmarl import UsageError, plugins
from consmarl.cli import main
from consmarl.experiments.configuration.explorations import EXPLORATIONS

pytestmark = pytest.mark.usefixtures("unregistered")

SOURCE = '''
from dataclasses import dataclass
import consmarl
from consmarl.training.exploration import EpsilonGreedy

@dataclass(frozen=True)
class Odd(EpsilonGreedy):
    """As ε-greedy."""

consmarl.register_exploration("odd", Odd, "an odd way")
'''


@pytest.fixture
def plugin(tmp_path):
    """A file that registers an exploration; its module is forgotten afterwards."""
    path = tmp_path / "odd_plugin.py"
    path.write_text(SOURCE)
    yield path
    sys.modules.pop("odd_plugin", None)


def test_a_file_is_loaded_once_and_identified_by_its_path(plugin):
    plugins.load_plugins([str(plugin)])
    first = sys.modules["odd_plugin"]
    plugins.load_plugins([str(plugin)])
    assert sys.modules["odd_plugin"] is first
    assert EXPLORATIONS["odd"].kind is first.Odd
    assert plugins.in_use() == plugins.in_use_elsewhere() == (str(plugin),)


def test_nothing_is_in_use_by_default():
    assert plugins.in_use() == ()


def test_the_option_can_come_before_or_after_the_command(plugin, capsys):
    for words in (["--plugin", str(plugin), "train", "--help"], ["train", f"--plugin={plugin}", "--help"]):
        assert main([*words, "--exploration", "odd"]) == 0
        said = capsys.readouterr()
        assert "--exploration odd" in said.out
        assert said.err == ""


def test_installed_plugins_are_found_automatically(plugin, monkeypatch):
    class Found:
        name, module = "odd", str(plugin)

        def load(self):
            plugins.load_plugins([str(plugin)])

    monkeypatch.setattr(plugins, "entry_points", lambda group: [Found()] if group == "consmarl.plugins" else [])
    plugins.load_installed()
    assert "odd" in EXPLORATIONS
    assert plugins.in_use() == ()  # other processes find installed plugins themselves


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("nowhere.py", None, "nowhere.py cannot be used: there is no plugin"),
        (
            "no.such.module",
            None,
            "no.such.module cannot be used: importing it raised ModuleNotFoundError",
        ),
        ("broken.py", "1 / 0", "importing it raised ZeroDivisionError: division by zero"),
        (
            "wrong.py",
            "import consmarl; consmarl.register_method('x', 5)",
            "must be a class derived from Learner",
        ),
        ("json.py", "", "json.py has the same name as another module, json: rename the file"),
    ],
)
def test_unusable_plugins_are_refused(name, text, sentence, tmp_path):
    path = tmp_path / name if name.endswith(".py") else name
    if text is not None:
        path.write_text(text)
    with pytest.raises(UsageError, match=sentence):
        plugins.load_plugins([str(path)])
    assert "broken" not in sys.modules
    assert "wrong" not in sys.modules


def test_the_option_needs_a_name(capsys):
    assert main(["train", "--plugin"]) == 2
    assert "--plugin needs a file or module that registers something" in capsys.readouterr().err


def test_a_plugin_that_a_file_needs_is_named_but_not_loaded(plugin):
    plugins.refuse_missing("the run", [])
    plugins.refuse_missing("the run", "nonsense")
    with pytest.raises(UsageError, match=rf"the run was made with {plugin}, a program .* add --plugin {plugin}"):
        plugins.refuse_missing("the run", [str(plugin)])
    assert "odd_plugin" not in sys.modules
    plugins.load_plugins([str(plugin)])
    plugins.refuse_missing("the run", [str(plugin)])


def test_code_registered_in_an_interactive_session_cannot_be_swept(monkeypatch):
    monkeypatch.setattr(plugins, "all_homes", lambda: ["consmarl.learners.iql", "__main__"])
    with pytest.raises(UsageError, match="registered in __main__, which is not a file"):
        plugins.in_use_elsewhere()
