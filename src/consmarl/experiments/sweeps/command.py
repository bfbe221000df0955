"""The command `consmarl sweep`: plan the requested runs, execute them, and summarise."""

import os
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from consmarl.environments import validation
from consmarl.errors import UsageError
from consmarl.experiments.compiled import tell_if_not_kept
from consmarl.experiments.configuration.config import TrainConfig
from consmarl.experiments.configuration.method_checks import why_nobody_knows_more, why_nobody_shares
from consmarl.experiments.configuration.pairs import settings_from, spelled_alike
from consmarl.experiments.sweeps.conduct import SweepResult, Workers, conduct
from consmarl.experiments.sweeps.local import LocalWorkers
from consmarl.experiments.sweeps.plan import PlannedRun, Sweep, check_against, refuse_own, variants_of
from consmarl.experiments.sweeps.request import SweepRequest
from consmarl.experiments.sweeps.studies import find_study
from consmarl.experiments.sweeps.sweep_file import sweep_from_file


def sweep(request: SweepRequest) -> int:
    """Execute the missing runs; return 0 if all runs are finished, 130 if the sweep was stopped, 1 if runs failed."""
    runs = runs_of(request)
    out = request.out or default_directory(request.study, request.scale, request.options)
    workers = workers_for(request.workers, request.ray)
    if request.dry_run:
        check(runs, out)
        _warn_of_silence(runs)
        check_against(out, runs)
        workers.close()
        _print_plan(runs, out)
        return 0
    result = carried_out(runs, out, workers)
    _print_result(result)
    return 0 if result.is_complete else 130 if result.states["stopped"] or result.states["waiting"] else 1


def carried_out(runs: list[PlannedRun], out: Path, workers: Workers) -> SweepResult:
    """Check the plan, execute the runs that are missing, and return the outcome of all."""
    try:
        check(runs, out)
        _warn_of_silence(runs)
        tell_if_not_kept()  # the workers print this, too, but into their logs
        return conduct(runs, out, workers)
    finally:
        workers.close()


def check(runs: list[PlannedRun], out: Path) -> None:
    """Raise an error now if a run cannot be built or `out` is not writable; nothing is compiled or written."""
    for run in runs:
        run.config.trainer()
    place = next(each for each in (out, *out.parents) if each.exists())  # `out`, or where it would be created
    if not place.is_dir() or not os.access(place, os.W_OK):
        raise UsageError(f"cannot write to {out}: {place} is not a writable directory.")


def runs_of(request: SweepRequest) -> list[PlannedRun]:
    """Return the runs that a request describes: of a study, of a sweep file, or of methods × environments × seeds."""
    by_hand = [name for name in ("methods", "envs", "vary", "set") if getattr(request, name)]
    for other, brought in (("study", by_hand), ("config", [name for name in by_hand if name != "envs"])):
        if getattr(request, other) is not None and brought:
            raise UsageError(f"--{other} has its own {brought[0]}: leave one of them out.")
    if request.study is not None and request.config is not None:
        raise UsageError("--study and --config both say what to run: leave one of them out.")
    if request.study is None and request.scale != 1:
        raise UsageError("--scale shortens a study: name one with --study.")
    if request.study is not None:
        options = settings_from(request.options)
        refuse_own(options, request.study)
        planned = find_study(request.study).sweep(request.scale, options)
        return (with_seeds(planned, request.seeds) if request.seeds else planned).runs()
    if request.config is not None:
        if request.seeds or request.options:
            raise UsageError("--config has its own seeds and options: change them in the file.")
        planned = sweep_from_file(request.config, trust=request.trust or request.envs)
        if request.envs and set(request.envs) != set(planned.envs):
            raise UsageError(f"--config has its own envs, {', '.join(planned.envs)}: repeat them, or leave --envs out.")
        return planned.runs()
    if not request.methods:
        raise UsageError(
            "say what to run: --study NAME, --config FILE, or --methods iql cons --envs pgm-3ag --seeds 0 1 2."
        )
    base = TrainConfig().with_options({"set": spelled_alike(request.set)})
    vary = {name: _several(value) for name, value in settings_from(request.vary).items()}
    variants = variants_of(request.methods, vary, settings_from(request.options))
    return Sweep(request.envs or (base.env,), variants, request.seeds or (base.seed,), base).runs()


def default_directory(study: str | None, scale: float, options: tuple[str, ...]) -> Path:
    """Return the default directory of a sweep; studies share one, since some of their runs are the same."""
    if study is None:
        return Path("runs") / "sweep"
    parts = ["paper", *([] if scale == 1 else [f"scale-{scale:g}"]), *spelled_alike(options)]
    return Path("runs") / "-".join(parts).replace("/", "_")


def workers_for(workers: int | None, ray: str | None) -> Workers:
    """Return the workers that execute the runs: this many processes on this machine, or a Ray cluster."""
    if ray is None:
        if workers is not None:
            validation.whole_number("workers", workers, least=1)
        return LocalWorkers(workers)
    if workers is not None:
        raise UsageError("--workers is for this machine: a Ray cluster takes as many runs as it has cores.")
    from consmarl.experiments.sweeps.ray_workers import RayWorkers

    return RayWorkers(ray)


def with_seeds(planned: Sweep, seeds: tuple[int, ...]) -> Sweep:
    """Return a copy of a sweep with other seeds."""
    return Sweep(planned.envs, planned.variants, seeds, planned.base)


def _several(value: Any) -> tuple[Any, ...]:
    """Return the values in the value of a `vary` setting, which are separated by commas: 0.1,0.3 or words."""
    if isinstance(value, tuple | list):
        return tuple(value)
    return tuple(value.split(",")) if isinstance(value, str) else (value,)


def _warn_of_silence(runs: list[PlannedRun]) -> None:
    """Print a warning about runs in which sharing never starts, or nobody knows more; once for all seeds."""
    found: dict[tuple[str, str], None] = {}
    for run in runs:
        for why in (why_nobody_shares, why_nobody_knows_more):
            if sentence := why(run.config):
                found[run.name.rpartition("/")[0], sentence] = None
    for name, sentence in found:
        Console(stderr=True).print(f"{name}: {sentence}", markup=False, highlight=False, soft_wrap=True)


def _print_plan(runs: list[PlannedRun], out: Path) -> None:
    table = Table("run", "environment", "method", "episodes", "seed", box=None, pad_edge=False)
    for run in runs:
        config = run.config
        table.add_row(run.name, config.env, config.method, f"{config.episodes:,}", str(config.seed))
    Console().print(table, f"{len(runs)} runs in {out}", highlight=False)


def _print_result(result: SweepResult) -> None:
    console = Console(highlight=False)
    counts = ", ".join(f"{count} {state}" for state, count in result.states.items())
    console.print(f"{counts}: {result.out}", markup=False, soft_wrap=True)
    for name, error in result.errors.items():
        console.print(f"{name} failed: {error}", markup=False, soft_wrap=True)
    if not result.is_complete:
        console.print("Repeat the command to run what is missing.")
