"""consmarl: reinforcement-learning agents that learn together and teach each other.

The names below are loaded on first use, so that `import consmarl` and `consmarl --help` stay fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from consmarl.errors import UsageError
from consmarl.version import __version__

if TYPE_CHECKING:
    from consmarl.environments.interface import Environment
    from consmarl.environments.pettingzoo import parallel_env
    from consmarl.environments.registry import make, register_world, world_ids
    from consmarl.experiments.configuration.config import TrainConfig
    from consmarl.experiments.configuration.explorations import ExploreOptions, register_exploration
    from consmarl.experiments.configuration.methods import LearnOptions, register_method
    from consmarl.experiments.configuration.sharings import ShareOptions, register_sharing
    from consmarl.experiments.evaluate import evaluate
    from consmarl.experiments.sweeps.api import sweep
    from consmarl.experiments.train import resume, train
    from consmarl.experiments.watch import watch
    from consmarl.reporting import Report, report
    from consmarl.sharing.adhoc_td import AdHocTD
    from consmarl.sharing.advisor import Advisor
    from consmarl.sharing.cons import Cons
    from consmarl.sharing.counting import register_counting
    from consmarl.sharing.histories import History
    from consmarl.sharing.options import Preset
    from consmarl.viewer.view import view

_HOMES = {
    "AdHocTD": "consmarl.sharing.adhoc_td",
    "Advisor": "consmarl.sharing.advisor",
    "Cons": "consmarl.sharing.cons",
    "Environment": "consmarl.environments.interface",
    "ExploreOptions": "consmarl.experiments.configuration.explorations",
    "History": "consmarl.sharing.histories",
    "LearnOptions": "consmarl.experiments.configuration.methods",
    "Preset": "consmarl.sharing.options",
    "Report": "consmarl.reporting",
    "ShareOptions": "consmarl.experiments.configuration.sharings",
    "TrainConfig": "consmarl.experiments.configuration.config",
    "evaluate": "consmarl.experiments.evaluate",
    "make": "consmarl.environments.registry",
    "parallel_env": "consmarl.environments.pettingzoo",
    "register_counting": "consmarl.sharing.counting",
    "register_exploration": "consmarl.experiments.configuration.explorations",
    "register_method": "consmarl.experiments.configuration.methods",
    "register_sharing": "consmarl.experiments.configuration.sharings",
    "register_world": "consmarl.environments.registry",
    "report": "consmarl.reporting",
    "resume": "consmarl.experiments.train",
    "sweep": "consmarl.experiments.sweeps.api",
    "train": "consmarl.experiments.train",
    "view": "consmarl.viewer.view",
    "watch": "consmarl.experiments.watch",
    "world_ids": "consmarl.environments.registry",
}

__all__ = [
    "AdHocTD",
    "Advisor",
    "Cons",
    "Environment",
    "ExploreOptions",
    "History",
    "LearnOptions",
    "Preset",
    "Report",
    "ShareOptions",
    "TrainConfig",
    "UsageError",
    "__version__",
    "evaluate",
    "make",
    "parallel_env",
    "register_counting",
    "register_exploration",
    "register_method",
    "register_sharing",
    "register_world",
    "report",
    "resume",
    "sweep",
    "train",
    "view",
    "watch",
    "world_ids",
]


def __getattr__(name: str) -> Any:
    """Import a public name from its module on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module 'consmarl' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted(__all__)
