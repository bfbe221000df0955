import functools
import shutil

import pytest
from filelock import FileLock

from consmarl.experiments.train import train
from tests.viewer import small


class Runs:
    """Trained runs by method; each is trained on first use, once for all modules and processes."""

    def __init__(self, directory):
        self.directory = directory
        self.trained = functools.cache(self._trained)

    def __getitem__(self, name):
        return self.trained(name)

    def _trained(self, name):
        with FileLock(self.directory / f"{name}.lock"):
            run = self.directory / name
            return run if (run / "result.json").is_file() else train(small.CONFIGS[name], run)


@pytest.fixture(scope="module")
def runs(tmp_path_factory, request):
    shared = tmp_path_factory.getbasetemp()
    if hasattr(request.config, "workerinput"):  # xdist gives each process a folder inside one that they share
        shared = shared.parent
    directory = shared / "viewer-runs"
    directory.mkdir(exist_ok=True)
    return Runs(directory)


@pytest.fixture
def copied(runs, tmp_path):
    """Return a function that copies a run without its checkpoints and events, which a page does not need."""

    def copied(name, to="run"):
        copy = tmp_path / to
        shutil.copytree(runs[name], copy, ignore=shutil.ignore_patterns("checkpoints", "events"))
        return copy

    return copied
