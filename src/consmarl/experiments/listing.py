"""Tables of environments, methods, presets and studies."""

from rich.console import Console
from rich.table import Table

from consmarl.environments.packages import is_of_package
from consmarl.environments.registry import WORLDS, make
from consmarl.errors import UsageError
from consmarl.experiments.configuration.methods import METHODS
from consmarl.experiments.configuration.presets import PRESETS
from consmarl.experiments.sweeps.studies import STUDIES, find_study


def print_ids() -> None:
    """Print the environments' ids, one per line."""
    print("\n".join(WORLDS))


def print_everything() -> None:
    """Print every environment, method, preset and study with a one-line description."""
    console = Console()
    worlds = Table("environment", "agents", "actions", "steps", "description", box=None, pad_edge=False)
    for id, entry in WORLDS.items():
        world = make(id)
        numbers = (str(world.num_agents), str(world.num_actions), str(world.episode_limit))
        worlds.add_row(id, *numbers, entry.summary)
    methods = Table("method", "description", box=None, pad_edge=False)
    for method, method_entry in METHODS.items():
        methods.add_row(method, method_entry.summary)
    presets = Table("preset", "description", box=None, pad_edge=False)
    for preset, preset_entry in PRESETS.items():
        presets.add_row(preset.value, preset_entry.summary)
    studies = Table("study", "figure", "runs", "episodes", "description", box=None, pad_edge=False)
    for study in STUDIES.values():
        num_runs = len(study.variants) * study.num_seeds
        cells = (str(num_runs), f"{study.episodes:,}") if num_runs else ("none", "")
        studies.add_row(study.name, str(study.figure), *cells, study.title)
    for table in (worlds, methods, presets, studies):
        console.print(table)
        console.print()
    console.print(
        "consmarl list --env ENV shows an environment's parameters, --study STUDY a study's runs.",
        style="dim",
        highlight=False,
    )


def print_study(name: str) -> None:
    """Print a study's runs and the paper's claim."""
    study = find_study(name)
    console = Console(highlight=False)
    console.print(f"{study.title} (figure {study.figure} of the paper)", style="bold")
    console.print(f"The paper: {study.claim}")
    if study.env is not None:
        table = Table("environment", "method", "episodes", "seeds", box=None, pad_edge=False)
        for variant in study.variants:
            table.add_row(study.env, variant.label, f"{study.episodes:,}", str(study.num_seeds))
        console.print(table)
    console.print(f"consmarl report --study {name} draws it.", style="dim")


def print_parameters(id: str) -> None:
    """Print every parameter of one environment with its value."""
    if is_of_package(id):
        raise UsageError(f"the parameters of {id} are those of the package's own class: see its documentation.")
    world = make(id)
    table = Table("parameter", "value", box=None, pad_edge=False)
    for name in WORLDS[id].parameters:
        value = getattr(world, name)
        table.add_row(name, "\n".join(value) if name == "map" else str(getattr(value, "value", value)))
    Console().print(table, markup=False)
