"""A sweep as data: worlds × methods × options × seeds, and the runs that they come to."""

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

# Settings that a sweep makes itself, with what to write on the command line and in a sweep's file.
_OWN = {
    "method": '--methods, or "methods" in a file',
    "env": '--envs, or "envs" in a file',
    "seed": '--seeds, or "seeds" in a file',
    "set": '--set, or "set" in a file',
}


@dataclass(frozen=True)
class Variant:
    """One of the things that a sweep compares: settings, and what to call them."""

    name: str  # in paths
    options: Mapping[str, Any] = field(default_factory=dict)
    label: str | None = None  # in reports; None leaves it to the report


@dataclass(frozen=True)
class PlannedRun:
    """One run that a sweep wants: where, how, and what reports call it."""

    name: str  # its directory inside the sweep's
    config: TrainConfig
    label: str | None = None


@dataclass(frozen=True)
class Sweep:
    """Worlds × variants × seeds, on top of common settings."""

    envs: tuple[str, ...]
    variants: tuple[Variant, ...]
    seeds: tuple[int, ...]
    base: TrainConfig = field(default_factory=TrainConfig)

    def __post_init__(self) -> None:
        """Check that there is something to do, and nothing twice."""
        for name in ("envs", "variants", "seeds"):
            values = [getattr(each, "name", each) for each in getattr(self, name)]
            if not values:
                raise UsageError(f"a sweep needs at least one of its {name}.")
            if len(set(values)) < len(values):
                raise UsageError(f"a sweep's {name} must differ, and {values} do not.")
        for seed in self.seeds:
            validation.whole_number("each seed", seed, least=0)

    def runs(self) -> list[PlannedRun]:
        """Return the runs, one seed of everything before the next, so that half a sweep can be compared too."""
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
    """Return methods × values of options, with other options in common; those of sharing reach who has them."""
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
    """Refuse settings that a sweep makes itself: a run would not be what its directory says."""
    for name in names:
        if name in _OWN and study is not None and name != "seed":
            raise UsageError(f"the study {study} brings its own {name}: leave it out, or sweep without --study.")
        if name in _OWN:
            raise UsageError(f"a sweep sets {name} itself: use {_OWN[name]}.")


def fitting(method: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options but for those that this method has no use for, or no choice of."""
    entry = METHODS[method]
    put_on = {"sharing": options["sharing"]} if "sharing" in options and entry.is_value_based else {}
    sharing = TrainConfig(method=method).with_options(put_on).sharing_kind
    return {name: value for name, value in options.items() if entry.has_setting(name, sharing)}


def check_against(out: Path, runs: list[PlannedRun]) -> None:
    """Refuse to go on with runs that were begun with other settings."""
    for run in runs:
        if not (out / run.name / CONFIG).is_file():
            continue
        there, wanted = read_config(out / run.name).resolved(), run.config.resolved()
        now = every_setting(wanted)
        for name, old in every_setting(there).items():
            is_open = now[name] is None and name in there.by_default  # it hangs on a world that is not built for this
            if old != now[name] and not is_open:
                raise UsageError(
                    f"{out / run.name} was begun with {name} {_shown(old)}, and now it should be {_shown(now[name])}: "
                    f"name another directory."
                )


def _shown(value: Any) -> str:
    return str(getattr(value, "value", value))
