"""Where compiled programs are kept, and when they are not."""

import json
import os
import sys
import time
from pathlib import Path

import jax
import pytest

from consmarl.experiments import compiled
from consmarl.experiments.compiled import default_directory, keep_compiled, machine_facts, tell_if_not_kept
from consmarl.training import programs

SETTINGS = ("jax_compilation_cache_dir", "jax_enable_compilation_cache")


@pytest.fixture
def home(tmp_path, monkeypatch):
    """The cache of a user who has configured nothing; settings are restored later. Nothing may be compiled here."""
    before = {name: jax.config.values[name] for name in SETTINGS}
    jax.config.update("jax_compilation_cache_dir", None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(compiled.VARIABLE, raising=False)
    yield tmp_path / "cache" / "consmarl"
    for name, value in before.items():
        jax.config.update(name, value)
    programs.keep_programs(None)


def parts(root):
    return sorted(path.parent for path in root.glob("*/about.json"))


@pytest.mark.skipif(sys.platform != "linux", reason="the place is another one elsewhere")
def test_programs_are_kept_by_machine_in_the_users_cache_with_a_description(home):
    assert keep_compiled() is None
    (directory,) = parts(home)
    about = json.loads((directory / "about.json").read_text())
    assert about["versions"]["jax"] == jax.__version__
    assert about["cores"] == len(os.sched_getaffinity(0))
    assert programs._shelves[0].directory == directory
    assert jax.config.jax_compilation_cache_dir is None  # JAX's own setting is left alone
    assert home.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("system", "variables", "place"),
    [
        ("linux", {"XDG_CACHE_HOME": "/caches"}, "/caches/consmarl"),
        ("linux", {"XDG_CACHE_HOME": "relative"}, "/home/me/.cache/consmarl"),
        ("linux", {}, "/home/me/.cache/consmarl"),
        ("darwin", {}, "/home/me/Library/Caches/consmarl"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/consmarl"),
    ],
)
def test_the_default_directory_is_the_systems_cache(system, variables, place, monkeypatch):
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in ({"HOME": "/home/me"} | variables).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", system)
    assert default_directory() == Path(place)


@pytest.mark.parametrize("word", ["off", "OFF", "0", "no"])
def test_the_cache_can_be_turned_off(word, home, monkeypatch):
    monkeypatch.setenv(compiled.VARIABLE, word)
    assert keep_compiled() is None
    assert programs._shelves == []
    assert not home.exists()


def test_another_directory_can_be_chosen(home, monkeypatch, tmp_path):
    monkeypatch.setenv(compiled.VARIABLE, str(tmp_path / "elsewhere"))
    assert keep_compiled() is None
    assert len(parts(tmp_path / "elsewhere")) == 1
    assert not home.exists()


@pytest.mark.parametrize("setting", [("jax_compilation_cache_dir", "/theirs"), ("jax_enable_compilation_cache", False)])
def test_jaxs_own_cache_settings_are_respected(setting, home):
    jax.config.update(*setting)
    assert keep_compiled() is None
    assert jax.config.values[setting[0]] == setting[1]
    assert programs._shelves == []
    assert not home.exists()


def test_an_unwritable_directory_only_causes_a_warning(home, capsys):
    home.parent.mkdir()
    home.write_text("a file where a directory should be")
    tell_if_not_kept()
    assert capsys.readouterr().err.startswith("compiled programs are not kept: cannot write to ")
    assert programs._shelves == []


@pytest.mark.skipif(os.name != "posix", reason="other systems have other rights")
def test_a_directory_that_others_can_write_to_is_not_used(home):
    home.mkdir(parents=True)
    home.chmod(0o777)
    assert "others can write to" in keep_compiled()
    assert programs._shelves == []


@pytest.mark.parametrize(
    "change",
    [dict(flags=["--xla_other"]), dict(cores=99), dict(processor={"flags": "sse"}), dict(versions={"jax": "0"})],
)
def test_programs_of_different_machines_are_kept_separately(change, home, monkeypatch):
    keep_compiled()
    here = machine_facts()
    monkeypatch.setattr(compiled, "machine_facts", lambda: here | change)
    keep_compiled()
    assert len(parts(home)) == 2


def test_programs_unused_for_90_days_are_removed(home):
    keep_compiled()
    (here,) = parts(home)
    for name, days in (("old", 91), ("newer", 89)):
        (home / name).mkdir()
        (home / name / "about.json").touch()
        then = time.time() - days * 24 * 3600
        os.utime(home / name / "about.json", (then, then))
    (home / "somebody elses").mkdir()
    keep_compiled()
    assert sorted(path.name for path in home.iterdir()) == sorted([here.name, "newer", "somebody elses"])
