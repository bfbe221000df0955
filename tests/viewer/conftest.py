import functools
import shutil

import pytest

from consmarl.experiments.train import train
from tests.viewer import small


class Runs:
    """Trained runs by method, each trained when it is first asked for."""

    def __init__(self, directory):
        self.directory = directory
        self.trained = functools.cache(lambda name: train(small.CONFIGS[name], directory / name))

    def __getitem__(self, name):
        return self.trained(name)


@pytest.fixture(scope="module")
def runs(tmp_path_factory, compile_quickly):  # noqa: ARG001
    return Runs(tmp_path_factory.mktemp("runs"))


@pytest.fixture
def copied(runs, tmp_path):
    """Return a function that copies what a page is made of, all but the checkpoints."""

    def copied(name, to="run"):
        copy = tmp_path / to
        shutil.copytree(runs[name], copy, ignore=shutil.ignore_patterns("checkpoints", "events"))
        return copy

    return copied
