"""Import the module or function that an id names: the only place that runs code named by a user."""

import importlib
import inspect
import sys
from types import FunctionType, ModuleType
from typing import Any

from pettingzoo import ParallelEnv
from pettingzoo.utils.conversions import parallel_wrapper_fn

from consmarl.errors import UsageError

PETTINGZOO = "pettingzoo:"


def factory(module_name: str, function: str) -> Any:
    """Return the environment's factory: a `ParallelEnv`, or a function defined in the module itself."""
    refuse_standard_library(module_name)
    found = getattr(imported(module_name), function, None)
    if not callable(found):
        raise UsageError(
            f"{module_name} has no function {function!r}: "
            f"name the one that makes the environment, {PETTINGZOO}{module_name}:FUNCTION."
        )
    if not _makes_environments(found, module_name):
        raise UsageError(
            f"{function} in {module_name} is neither a ParallelEnv nor a function that {module_name} itself defines: "
            f"name an environment's class, or a function where it is defined."
        )
    return found


def refuse_standard_library(module_name: str) -> None:
    """Refuse Python's own modules, none of which holds an environment."""
    if module_name.partition(".")[0] in sys.stdlib_module_names:
        raise UsageError(f"{module_name} is part of Python itself and holds no environment: name a module that does.")


def _makes_environments(found: Any, module_name: str) -> bool:
    """Return whether `found` may be called: objects that the module merely imported may not.

    The exception is PettingZoo, which creates such functions for others: `parallel_env = parallel_wrapper_fn(env)`.
    """
    if inspect.isclass(found):
        return issubclass(found, ParallelEnv)
    if not isinstance(found, FunctionType):
        return False
    home = found.__module__ or ""
    return home.partition(".")[0] == module_name.partition(".")[0] or home == parallel_wrapper_fn.__module__


def imported(name: str) -> ModuleType:
    """Import and return a module; a failure becomes a `UsageError` that says what to do."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise UsageError(_what_to_install(name, error.name or name)) from error
    except (ImportError, ValueError, TypeError) as error:  # an empty name raises ValueError, a relative one TypeError
        raise UsageError(f"cannot import {name!r}: {str(error).rstrip('.')}.") from error


def _what_to_install(name: str, missing: str) -> str:
    if missing == name.split(".")[0]:
        return (
            f"there is no module {missing!r}: pip install {missing}, or set PYTHONPATH to the folder that it lies in."
        )
    if f"{name}.".startswith(f"{missing}."):
        package, _, module = missing.rpartition(".")
        return f"{package} is there, but has no module {module!r}: correct the name, or install another version."
    return f"{name} needs the module {missing!r}: pip install {missing}."
