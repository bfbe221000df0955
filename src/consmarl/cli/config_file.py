"""The configuration that the options of a command depart from."""

from collections.abc import Sequence
from pathlib import Path

from consmarl.errors import UsageError
from consmarl.experiments.config import TrainConfig


def config_in(options: Sequence[str]) -> TrainConfig | None:
    """Return the configuration that `--config FILE` names: it has to be read before the others are."""
    for number, word in enumerate(options):
        name, equals, value = word.partition("=")
        if name != "--config":
            continue
        if not equals and number + 1 == len(options):
            raise UsageError("--config names a file, such as runs/first/config.json.")
        return TrainConfig.from_file(Path(value if equals else options[number + 1]))
    return None
