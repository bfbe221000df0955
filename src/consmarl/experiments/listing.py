"""What there is, as tables on the screen."""

from rich.console import Console
from rich.table import Table

from consmarl.environments.registry import WORLDS, make


def print_worlds(*, ids_only: bool = False) -> None:
    """Print every world with a line on what it is."""
    if ids_only:
        print("\n".join(WORLDS))
        return
    table = Table("world", "agents", "actions", "steps", "what it is", box=None, pad_edge=False)
    for id, entry in WORLDS.items():
        world = make(id)
        numbers = (str(world.num_agents), str(world.num_actions), str(world.episode_limit))
        table.add_row(id, *numbers, entry.summary)
    console = Console()
    console.print(table)
    console.print("\nconsmarl list --env ID shows a world's parameters.", style="dim")


def print_parameters(id: str) -> None:
    """Print every parameter of one world with its value."""
    world = make(id)
    table = Table("parameter", "value", box=None, pad_edge=False)
    for name in WORLDS[id].parameters:
        value = getattr(world, name)
        table.add_row(name, "\n".join(value) if name == "map" else str(getattr(value, "value", value)))
    Console().print(table, markup=False)
