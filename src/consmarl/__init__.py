"""consmarl: reinforcement-learning agents that learn together and teach each other.

The names below load on first use, so that `import consmarl` and `consmarl --help` stay quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from consmarl.errors import UsageError

if TYPE_CHECKING:
    from consmarl.environments.interface import Environment
    from consmarl.environments.pettingzoo import parallel_env
    from consmarl.environments.registry import make, world_ids
    from consmarl.experiments.config import TrainConfig
    from consmarl.experiments.evaluate import evaluate
    from consmarl.experiments.explorations import ExplorationKind
    from consmarl.experiments.learn_options import LearnOptions
    from consmarl.experiments.methods import Method
    from consmarl.experiments.sharing_options import ShareOptions, SharingKind
    from consmarl.experiments.train import resume, train
    from consmarl.experiments.watch import watch
    from consmarl.sharing.adhoc_td import AdHocTD
    from consmarl.sharing.advisor import Advisor
    from consmarl.sharing.cons import Cons
    from consmarl.sharing.histories import History
    from consmarl.sharing.options import Preset
    from consmarl.viewer.view import view

__version__ = "0.1.0"

_HOMES = {
    "AdHocTD": "consmarl.sharing.adhoc_td",
    "Advisor": "consmarl.sharing.advisor",
    "Cons": "consmarl.sharing.cons",
    "Environment": "consmarl.environments.interface",
    "ExplorationKind": "consmarl.experiments.explorations",
    "History": "consmarl.sharing.histories",
    "LearnOptions": "consmarl.experiments.learn_options",
    "Method": "consmarl.experiments.methods",
    "Preset": "consmarl.sharing.options",
    "ShareOptions": "consmarl.experiments.sharing_options",
    "SharingKind": "consmarl.experiments.sharing_options",
    "TrainConfig": "consmarl.experiments.config",
    "evaluate": "consmarl.experiments.evaluate",
    "make": "consmarl.environments.registry",
    "parallel_env": "consmarl.environments.pettingzoo",
    "resume": "consmarl.experiments.train",
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
    "ExplorationKind",
    "History",
    "LearnOptions",
    "Method",
    "Preset",
    "ShareOptions",
    "SharingKind",
    "TrainConfig",
    "UsageError",
    "__version__",
    "evaluate",
    "make",
    "parallel_env",
    "resume",
    "train",
    "view",
    "watch",
    "world_ids",
]


def __getattr__(name: str) -> Any:
    """Import a public name from its home when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module 'consmarl' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted(__all__)
