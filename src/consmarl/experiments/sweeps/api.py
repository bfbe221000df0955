"""Sweeps from Python: `consmarl.sweep`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from consmarl.errors import UsageError
from consmarl.experiments.configuration.config import TrainConfig
from consmarl.experiments.configuration.pairs import pairs_of
from consmarl.experiments.sweeps.command import carried_out, default_directory, with_seeds, workers_for
from consmarl.experiments.sweeps.conduct import SweepResult
from consmarl.experiments.sweeps.plan import PlannedRun, Sweep, refuse_own, variants_of
from consmarl.experiments.sweeps.studies import find_study

NOTHING: Mapping[str, Any] = MappingProxyType({})


def sweep(
    methods: Sequence[str] = (),
    envs: Sequence[str] = (),
    seeds: Sequence[int] = (),
    *,
    options: Mapping[str, Any] = NOTHING,
    vary: Mapping[str, Sequence[Any]] = NOTHING,
    set: Mapping[str, Any] = NOTHING,
    study: str | None = None,
    scale: float = 1.0,
    out: Path | str | None = None,
    workers: int | None = None,
    ray: str | None = None,
) -> SweepResult:
    """Run methods × environments × seeds × options, or a study of the paper; finished runs are not repeated.

    `options` are settings of all runs, named as in `TrainConfig`: {"episodes": 4000, "share.temperature": 0.3}. `vary`
    maps settings to several values each; `set` holds parameters of the environments. A `study` has its own methods,
    environments and varied settings, and its own seeds unless others are given. Runs are written to `out`, by `workers`
    parallel processes or on a Ray cluster.

    The result lists all runs: `sweep(...).runs[0].result["return"]`.
    """
    planned = _planned(tuple(methods), tuple(envs), tuple(seeds), options, vary, set, study, scale)
    place = Path(out) if out is not None else default_directory(study, scale, pairs_of(options))
    return carried_out(planned, place, workers_for(workers, ray))


def _planned(
    methods: tuple[str, ...],
    envs: tuple[str, ...],
    seeds: tuple[int, ...],
    options: Mapping[str, Any],
    vary: Mapping[str, Sequence[Any]],
    parameters: Mapping[str, Any],
    study: str | None,
    scale: float,
) -> list[PlannedRun]:
    if study is not None:
        if methods or envs or vary or parameters:
            raise UsageError("a study has its own methods, envs, vary and set: leave them out.")
        refuse_own(options, study)
        whole = find_study(study).sweep(scale, options)
        return (with_seeds(whole, seeds) if seeds else whole).runs()
    if not methods:
        raise UsageError('say what to run: methods=["iql", "cons"], or study="pgm-3ag".')
    if scale != 1:
        raise UsageError("scale shortens a study: name one.")
    base = TrainConfig().with_options({"set": parameters})
    variants = variants_of(methods, {name: tuple(values) for name, values in vary.items()}, options)
    return Sweep(envs or (base.env,), variants, seeds or (base.seed,), base).runs()
