"""A sweep as data: worlds × methods × options × seeds, and the runs that they come to."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from consmarl.environments import validation
from consmarl.environments.trust import marked
from consmarl.errors import UsageError, nearest
from consmarl.experiments.config import TrainConfig
from consmarl.experiments.directory import read_config
from consmarl.experiments.methods import METHODS, Method
from consmarl.experiments.reading import every_setting
from consmarl.experiments.sharing_options import options_of
from consmarl.files import CONFIG
from consmarl.json_files import read_json_object


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
    known = [each.value for each in Method]
    variants = []
    for method in methods:
        if method not in known:
            raise UsageError(f"there is no method {method!r}: {nearest(method, known)}")
        fixed, names = fitting(method, options), list(fitting(method, vary))
        for values in itertools.product(*(vary[name] for name in names)):
            varied = dict(zip(names, values, strict=True))
            told = [f"{name.rpartition('.')[2]}={value}".replace("/", "_") for name, value in varied.items()]
            variants.append(Variant("-".join([method, *told]), {"method": method, **fixed, **varied}))
    for name in (*vary, *options):
        if not any(name in variant.options for variant in variants):
            raise UsageError(f"none of the methods {', '.join(methods)} has an option {name}.")
    return tuple(variants)


def fitting(method: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options but for those that this method has no use for, or no choice of."""
    entry = METHODS[Method(method)]
    put_on = {"sharing": options["sharing"]} if "sharing" in options and entry.is_value_based else {}
    shares = options_of(TrainConfig(method=Method(method)).with_options(put_on).sharing_kind)

    def fits(name: str) -> bool:
        group, _, option = name.partition(".")
        if group in ("share", "learn"):
            return option in shares if group == "share" else entry.has(option)
        if name in ("sharing", "exploration"):
            return entry.is_value_based
        return entry.has(name) if name in ("weights", "reward_of") else True

    return {name: value for name, value in options.items() if fits(name)}


def sweep_from_file(path: Path, *, trust: bool | tuple[str, ...] = False) -> Sweep:
    """Read a sweep: an object with methods, envs, seeds, and if wanted vary, options and set.

    Others' environments are not run because a file names them: `trust` is True, or says which ones are.
    """
    if not path.is_file():
        raise UsageError(f"there is no sweep {path}.")
    read = read_json_object(path)
    if trust is not True:
        read = marked(read, str(path), "--envs", but_for=trust or ())
    parts = ["methods", "envs", "seeds", "vary", "options", "set"]
    for name in read:
        if name not in parts:
            raise UsageError(f"{path} has a part {name!r} that no sweep has: {nearest(name, parts)}")
    for name in ("methods", "envs", "seeds", "set"):
        if not isinstance(read.get(name, []), list):
            raise UsageError(f"{name} in {path} must be a list, not {read[name]!r}.")
    vary = {name: tuple(values) for name, values in read.get("vary", {}).items()}
    return Sweep(
        envs=tuple(read.get("envs", ())),
        variants=variants_of(tuple(read.get("methods", ())), vary, read.get("options", {})),
        seeds=tuple(read.get("seeds", ())),
        base=TrainConfig().with_options({"set": read.get("set", [])}),
    )


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
