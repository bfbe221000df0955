"""A run's configuration: validated settings with defaults, stored as JSON in the run's directory."""

import dataclasses
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from consmarl.environments.trust import Trust, confirmed
from consmarl.errors import UsageError
from consmarl.experiments.configuration.as_json import flat_settings, plain
from consmarl.experiments.configuration.building import AnyTrainer as AnyTrainer
from consmarl.experiments.configuration.building import build_trainer
from consmarl.experiments.configuration.checks import check_company, check_numbers, check_periods, check_world
from consmarl.experiments.configuration.defaults import check_names, departing, resolved, with_options
from consmarl.experiments.configuration.method_checks import check_method
from consmarl.experiments.configuration.naming import run_name
from consmarl.experiments.configuration.older_runs import from_settings
from consmarl.experiments.configuration.schema import Settings
from consmarl.json_files import parse_json_object, read_json_object


@dataclass(frozen=True)
class TrainConfig(Settings):
    """All settings of a run, validated."""

    def __post_init__(self) -> None:
        """Convert values to their types, and check everything that can be checked without building anything."""
        super().__post_init__()
        check_names(self)
        check_numbers(self)
        check_method(self)
        check_company(self)
        check_world(self)
        check_periods(self)

    @property
    def name(self) -> str:
        """A name for the run, made of its environment, its method and the settings that were changed."""
        return run_name(self)

    def resolved(self, world: Any = None) -> "TrainConfig":
        """Return a copy with a value for every setting of its method; those that were None are named in `by_default`.

        A third-party environment is not built for this: settings that depend on one stay None until `world` is given.
        """
        return resolved(self, world)

    def trainer(self) -> AnyTrainer:
        """Build the environment and the trainer of the run."""
        return build_trainer(self)

    def to_json(self) -> str:
        """Return the configuration as JSON."""
        return json.dumps(plain(self), indent=2)

    @classmethod
    def from_json(
        cls, text: str | bytes, *, trust: Trust = False, file: str = "the configuration", is_run: bool = False
    ) -> "TrainConfig":
        """Read a configuration written by `to_json` or by hand; error messages refer to it as `file`.

        Third-party environments (`pettingzoo:MODULE`, `lbforaging:ID`) are programs, and one named in a text is not run
        without the user's consent: `trainer` raises an error unless `trust` is True or exactly that id. With `is_run`,
        the configuration was written by a run, and keeps its meaning even if that was an older version.
        """
        config = from_settings(cls(), flat_settings(parse_json_object(text, file)), is_run=is_run)
        return dataclasses.replace(config, env=confirmed(config.env, trust, file))

    @classmethod
    def from_file(cls, path: Path, *, trust: Trust = False, is_run: bool = False) -> "TrainConfig":
        """Read a configuration file, such as a run's config.json; `trust` and `is_run` as in `from_json`."""
        if not path.is_file():
            raise UsageError(f"there is no configuration {path}.")
        settings = read_json_object(path)
        try:
            config = from_settings(cls(), flat_settings(settings), is_run=is_run)
        except UsageError as error:
            raise UsageError(f"{path} cannot be used: {error}") from error
        return dataclasses.replace(config, env=confirmed(config.env, trust, str(path)))

    def trusted(self) -> "TrainConfig":
        """Return a copy whose environment may be run although only a file named it; the user must have agreed."""
        return dataclasses.replace(self, env=str(self.env))

    def with_options(self, options: Mapping[str, Any]) -> "TrainConfig":
        """Return a copy with other settings, by name: `episodes`, `share.temperature`; enums by their values.

        Defaults that were filled in are kept unless they depend on a changed setting, such as the method.
        """
        return with_options(self, options)

    def departing(self, names: Iterable[str]) -> "TrainConfig":
        """Return a copy in which these settings can be changed: filled-in defaults that depend on them are reset."""
        return departing(self, names)
