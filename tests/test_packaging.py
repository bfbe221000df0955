"""The sdist and the wheel: they contain everything needed, install into an empty environment and run there.

Dependencies are taken from the environment that runs the tests, so that nothing is downloaded.
"""

import email
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

import consmarl

pytest.importorskip("hatchling")

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src"
VERSION = consmarl.__version__
PYENV = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"  # where pyenv keeps interpreters
INTERPRETERS = {
    version: next((str(path) for path in PYENV.glob(f"{version}.*/bin/python")), shutil.which(f"python{version}"))
    for version in ("3.11", "3.12", "3.13")
}
# the environment of the tests may name other directories to import from
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def build(tree, kind, out):
    command = [sys.executable, "-m", "hatchling", "build", "--target", kind, "--directory", out]
    subprocess.run(command, cwd=tree, check=True, capture_output=True)
    (made,) = out.iterdir()
    return made


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    return build(ROOT, "sdist", tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def wheel(sdist, tmp_path_factory):
    """A wheel built from the sdist alone, as pip builds it when there is no wheel."""
    tree = tmp_path_factory.mktemp("tree")
    with tarfile.open(sdist) as archive:
        archive.extractall(tree, filter="data")
    (unpacked,) = tree.iterdir()
    return build(unpacked, "wheel", tmp_path_factory.mktemp("wheel"))


def test_sdist_and_wheel_are_named_after_the_version_in_the_code(sdist, wheel):
    assert sdist.name == f"consmarl-{VERSION}.tar.gz"
    assert wheel.name == f"consmarl-{VERSION}-py3-none-any.whl"


def test_the_wheel_contains_exactly_the_files_of_the_package(wheel):
    ours = {path.relative_to(SOURCES).as_posix() for path in (SOURCES / "consmarl").rglob("*") if path.is_file()}
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert packed == {name for name in ours if "__pycache__" not in name}
    assert "consmarl/reports/template/report.html.jinja" in packed
    assert "consmarl/py.typed" in packed


def test_the_sdist_contains_the_tests_and_no_generated_files(sdist):
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for name in ("LICENSE", "CITATION.cff", "CHANGELOG.md", "Makefile", "constraints.txt", "tests/conftest.py",
                 "tests/parity/data/LICENSE", "tests/parity/data/ft.npz", "examples/extending/fishing.py"):  # fmt: skip
        assert name in names
    assert not [name for name in names if re.search(r"__pycache__|^results/|^\.venv|\.egg-info", name)]
    assert sdist.stat().st_size < 3_000_000


def test_the_metadata_lists_extras_licence_and_dependencies(wheel):
    with zipfile.ZipFile(wheel) as archive:
        facts = email.message_from_bytes(archive.read(f"consmarl-{VERSION}.dist-info/METADATA"))
        assert f"consmarl-{VERSION}.dist-info/licenses/LICENSE" in archive.namelist()
    assert facts["License-Expression"] == "Apache-2.0"
    assert facts["Requires-Python"] == ">=3.11"
    assert {"figures", "ray", "video", "dev"} <= set(facts.get_all("Provides-Extra"))
    core = {re.match(r"[\w-]+", each)[0].lower() for each in facts.get_all("Requires-Dist") if "extra ==" not in each}
    assert {"jax", "numpy", "tyro"} <= core
    assert not core & {"torch", "tensorflow", "gym", "ray", "matplotlib"}
    assert "https://arxiv.org/abs/2312.12095" in facts["Project-URL"]


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """An environment with the wheel and this environment's packages, but without the package of this repository."""
    directory = tmp_path_factory.mktemp("installed")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", directory], check=True)
    python = directory / "bin" / "python"
    subprocess.run(
        [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "--python", python, "install",
         "--no-deps", "--no-index", wheel],
        check=True, env=CLEAN,
    )  # fmt: skip
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = subprocess.check_output([python, "-c", where], text=True, env=CLEAN).strip()
    # Python does not process .pth files in directories that a .pth file adds, so this repository stays out
    (Path(site) / "needed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return directory


@pytest.mark.skipif(os.name != "posix", reason="programs are elsewhere on other systems")
def test_an_installed_wheel_runs_and_finds_its_templates(installed, tmp_path):
    def said(*command):
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=CLEAN, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    program, python = installed / "bin" / "consmarl", installed / "bin" / "python"
    assert said(program, "--version") == f"consmarl {VERSION}\n"
    assert Path(said(python, "-c", "import consmarl; print(consmarl.__file__)")).is_relative_to(installed)
    said(program, "report", "--study", "weights", "--out", "report.html")
    assert "h(x)" in (tmp_path / "report.html").read_text()
    read = "from importlib.metadata import version; print(version('consmarl'))"
    assert said(python, "-c", read).strip() == VERSION


@pytest.mark.parametrize("version", INTERPRETERS)
def test_every_installed_python_can_compile_and_import_the_code(version, wheel, tmp_path):
    interpreter = INTERPRETERS[version]
    if interpreter is None:
        pytest.skip(f"there is no Python {version}")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    code = (
        "import sys, compileall; sys.path.insert(0, '.')\n"
        "assert compileall.compile_dir('consmarl', quiet=1), 'a file cannot be compiled'\n"
        "import consmarl; print(consmarl.__version__, *sys.version_info[:2], sep='.')"
    )
    command = [interpreter, "-W", "error", "-c", code]
    assert subprocess.check_output(command, text=True, cwd=tmp_path, env=CLEAN).strip() == f"{VERSION}.{version}"


def test_the_citation_names_this_version_and_the_paper():
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (.+)$", text, flags=re.MULTILINE)[1] == VERSION
    assert "Cautiously-Optimistic Knowledge Sharing for Cooperative Multi-Agent Reinforcement Learning" in text
    assert text.count("family-names:") == 7
