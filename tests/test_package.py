"""The package as a whole: what importing it loads, its version, and whether examples and links in its pages work."""

import dataclasses
import doctest
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import jax
import pytest

import consmarl
from consmarl import AdHocTD, Cons
from consmarl.environments import registry

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_importing_loads_no_large_package():
    """Importing `consmarl` and its command line loads neither JAX nor PettingZoo nor Pillow."""
    code = "import sys, consmarl.cli; print([m for m in ('jax', 'pettingzoo', 'PIL') if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_environments_load_no_heavy_framework():
    code = (
        "import sys, consmarl; consmarl.make('ft'); consmarl.parallel_env('ft')\n"
        "print([m for m in ('torch', 'tensorflow', 'gym', 'matplotlib') if m in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_the_version_is_defined_once_and_listed_in_the_changelog():
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert config["project"]["dynamic"] == ["version"]
    assert ROOT / config["tool"]["hatch"]["version"]["path"] == ROOT / "src" / "consmarl" / "version.py"
    assert f"## {consmarl.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_all_public_names_exist():
    for name in consmarl.__all__:
        assert getattr(consmarl, name) is not None
    assert set(consmarl.__all__) <= set(dir(consmarl))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = consmarl.nothing


def test_docstring_examples_run():
    results = doctest.testmod(registry)
    assert results.attempted > 0
    assert results.failed == 0


@pytest.mark.usefixtures("unregistered")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_python_examples_of_a_page_run_in_order(page):
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    names = {"__name__": "page"}
    with jax.numpy_rank_promotion("allow"):  # JAX's default, which readers have
        for block in blocks:
            exec(compile(block, str(page), "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_pictures_of_a_page_exist(page):
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name} points to {target}, which is not there"


def test_every_parameter_is_documented():
    text = (ROOT / "docs" / "guide" / "worlds.md").read_text(encoding="utf-8")
    for id, entry in registry.WORLDS.items():
        assert f"`{id}`" in text
        for name in entry.parameters:
            assert f"`{name}`" in text, f"docs/guide/worlds.md does not mention {name}"


def test_every_sharing_option_is_documented():
    pages = {"cons": "cons.md", "adhoc-td": "adhoc_td.md"}
    for kind, built in (("cons", Cons), ("adhoc-td", AdHocTD)):
        text = (ROOT / "docs" / "methods" / pages[kind]).read_text(encoding="utf-8")
        for each in dataclasses.fields(built):
            assert f"`{each.name}`" in text, f"docs/methods/{pages[kind]} does not mention {each.name}"
