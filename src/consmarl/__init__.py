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
    from consmarl.sharing.adhoc_td import AdHocTD
    from consmarl.sharing.advisor import Advisor
    from consmarl.sharing.cons import Cons

__version__ = "0.1.0"

_HOMES = {
    "AdHocTD": "consmarl.sharing.adhoc_td",
    "Advisor": "consmarl.sharing.advisor",
    "Cons": "consmarl.sharing.cons",
    "Environment": "consmarl.environments.interface",
    "make": "consmarl.environments.registry",
    "parallel_env": "consmarl.environments.pettingzoo",
    "world_ids": "consmarl.environments.registry",
}

__all__ = [
    "AdHocTD",
    "Advisor",
    "Cons",
    "Environment",
    "UsageError",
    "__version__",
    "make",
    "parallel_env",
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
