"""The configuration file that a command's options override."""

from collections.abc import Sequence
from pathlib import Path

from consmarl.errors import UsageError
from consmarl.experiments.configuration.config import TrainConfig


def setting_of(word: str) -> str:
    """Return the setting that a command-line argument changes: --share.start-episode=5 changes share.start_episode."""
    if not word.startswith("--"):
        return ""
    return word.partition("=")[0].removeprefix("--").removeprefix("no-").replace("-", "_")


def config_in(options: Sequence[str]) -> TrainConfig | None:
    """Return the configuration named by `--config FILE`, which has to be read before the other options.

    Defaults it filled in are reset if they depend on one of the other options.
    """
    for number, word in enumerate(options):
        name, equals, value = word.partition("=")
        if name != "--config":
            continue
        named = value if equals else "".join(options[number + 1 : number + 2])
        if not named:
            raise UsageError("--config needs a file, such as runs/first/config.json.")
        return TrainConfig.from_file(Path(named)).departing(map(setting_of, options))
    return None
