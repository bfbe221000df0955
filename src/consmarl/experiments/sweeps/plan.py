"""A sweep as data: environments × methods × options × seeds, and the resulting runs."""

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from consmarl.environments import validation
from consmarl.errors import UsageError
from consmarl.experiments.configuration.as_json import every_setting
from consmarl.experiments.configuration.config import TrainConfig
from consmarl.experiments.configuration.methods import METHODS
from consmarl.experiments.directory import read_config
from consmarl.files import CONFIG

# Settings that a sweep sets itself, and what to use instead on the command line and in a sweep file.
_OWN = {
    "method": '--methods, or "methods" in a file',
    "env": '--envs, or "envs" in a file',
    "seed": '--seeds, or "seeds" in a file',
    "set": '--set, or "set" in a file',
}


@dataclass(frozen=True)
class Variant:
    """A named set of settings; a sweep compares several of them."""

    name: str  # in paths
    options: Mapping[str, Any] = field(default_factory=dict)
    label: str | None = None  # in reports; if None, the report chooses one


@dataclass(frozen=True)
class PlannedRun:
    """One run of a sweep: its directory, configuration and name in reports."""

    name: str  # its directory inside the sweep's
    config: TrainConfig
    label: str | None = None


@dataclass(frozen=True)
class Sweep:
    """Environments × variants × seeds, with common settings."""

    envs: tuple[str, ...]
    variants: tuple[Variant, ...]
    seeds: tuple[int, ...]
    base: TrainConfig = field(default_factory=TrainConfig)

    def __post_init__(self) -> None:
        """Check that there are environments, variants and seeds, without duplicates."""
        for name in ("envs", "variants", "seeds"):
            values = [getattr(each, "name", each) for each in getattr(self, name)]
            if not values:
                raise UsageError(f"a sweep needs at least one of its {name}.")
            if len(set(values)) < len(values):
                raise UsageError(f"a sweep's {name} must differ, and {values} do not.")
        for seed in self.seeds:
            validation.whole_number("each seed", seed, least=0)

    def runs(self) -> list[PlannedRun]:
        """Return the runs, ordered by seed, so that variants can be compared before the sweep is complete."""
        return [
            PlannedRun(
                f"{env.replace(':', '-')}/{variant.name}/seed-{seed}",
                self.base.with_options({"env": env, **variant.options, "seed": seed}),
                variant.label,
            )
            for seed, env, variant in itertools.product(self.seeds, self.envs, self.variants)
        ]


def variants_of(
    methods: tuple[str, ...], vary: Mapping[str, tuple[Any, ...]], options: Mapping[str, Any] = MappingProxyType({})
) -> tuple[Variant, ...]:
    """Return methods × values of `vary`, with common `options`; each method gets only the options that it has."""
    refuse_own((*vary, *options))
    for name in vary:
        if name in options:
            raise UsageError(f"{name} is both varied and set for all runs: leave one of them out.")
    variants = []
    for method in methods:
        METHODS.find(method)
        fixed, names = fitting(method, options), list(fitting(method, vary))
        for values in itertools.product(*(vary[name] for name in names)):
            varied = dict(zip(names, values, strict=True))
            told = [f"{name.rpartition('.')[2]}={value}".replace("/", "_") for name, value in varied.items()]
            variants.append(Variant("-".join([method, *told]), {"method": method, **fixed, **varied}))
    for name in (*vary, *options):
        if not any(name in variant.options for variant in variants):
            raise UsageError(f"none of the methods {', '.join(methods)} has an option {name}.")
    return tuple(variants)


def refuse_own(names: Iterable[str], study: str | None = None) -> None:
    """Raise an error for settings that the sweep sets itself: a run would not match its directory's name."""
    for name in names:
        if name in _OWN and study is not None and name != "seed":
            raise UsageError(f"the study {study} has its own {name}: leave it out, or sweep without --study.")
        if name in _OWN:
            raise UsageError(f"a sweep sets {name} itself: use {_OWN[name]}.")


def fitting(method: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that apply to this method."""
    entry = METHODS[method]
    put_on = {"sharing": options["sharing"]} if "sharing" in options and entry.is_value_based else {}
    sharing = TrainConfig(method=method).with_options(put_on).sharing_kind
    return {name: value for name, value in options.items() if entry.has_setting(name, sharing)}


def check_against(out: Path, runs: list[PlannedRun]) -> None:
    """Raise an error if a run in `out` was started with other settings than those planned."""
    for run in runs:
        if not (out / run.name / CONFIG).is_file():
            continue
        there, wanted = read_config(out / run.name).resolved(), run.config.resolved()
        now = every_setting(wanted)
        for name, old in every_setting(there).items():
            is_open = now[name] is None and name in there.by_default  # depends on an environment that is not built here
            if old != now[name] and not is_open:
                raise UsageError(
                    f"{out / run.name} was started with {name} {_shown(old)}, and now {_shown(now[name])} is wanted: "
                    f"name another directory."
                )


def _shown(value: Any) -> str:
    return str(getattr(value, "value", value))
