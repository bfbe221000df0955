"""Plugins: users' code that registers environments, methods, sharing mechanisms and explorations.

A plugin is a Python module or file that calls `consmarl.register_…` when it is imported. Installed packages declare
theirs as entry points in the group `consmarl.plugins`, and these are loaded automatically. Any other plugin is a
program that the user has to load explicitly: with `--plugin FILE` on the command line, or an import in Python. A run's
files name the plugins it needs, but never cause one to be imported.
"""

import importlib
import importlib.util
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import entry_points
from pathlib import Path

from consmarl.errors import UsageError
from consmarl.registry import all_homes

GROUP = "consmarl.plugins"
OPTION = "--plugin"


def load_installed() -> None:
    """Import the plugins of installed packages."""
    for found in entry_points(group=GROUP):
        with _explained(f"the plugin {found.name} of an installed package"):
            found.load()


def load_plugins(names: Iterable[str]) -> None:
    """Import plugins: Python files, such as fishing.py, or modules, such as my_package.worlds."""
    for name in names:
        with _explained(name):
            if name.endswith(".py"):
                _load_file(Path(name))
            else:
                importlib.import_module(name)


def taken_out(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split a command line into its arguments without `--plugin NAME`, which every command accepts, and the names."""
    rest, names, following = [], [], iter(words)
    for word in following:
        option, equals, value = word.partition("=")
        if option != OPTION:
            rest.append(word)
            continue
        named = value if equals else next(following, "")
        if not named:
            raise UsageError(f"{OPTION} needs a file or module that registers something, such as fishing.py.")
        names.append(named)
    return rest, names


def in_use() -> tuple[str, ...]:
    """Return the modules and files that have registered something, except this package and installed plugins."""
    installed = {found.module for found in entry_points(group=GROUP)}
    return tuple(home for home in all_homes() if not home.startswith("consmarl.") and home not in installed)


def in_use_elsewhere() -> tuple[str, ...]:
    """Return the same for child processes to import; code typed into an interpreter is an error."""
    homes = in_use()
    for home in homes:
        if "." not in home:
            raise UsageError(
                f"something was registered in {home}, which is not a file, but a sweep's runs are separate "
                f"processes: put it into a Python file, and import that."
            )
    return homes


def refuse_missing(where: str, needed: object) -> None:
    """Raise an error if any of the `needed` plugins is not loaded; a file never causes a program to run.

    `where` is the file or directory that needs them, for the message.
    """
    listed = needed if isinstance(needed, list) else []
    there = in_use()
    missing = [str(each) for each in listed if each not in there]
    if missing:
        raise UsageError(
            f"{where} was made with {', '.join(missing)}, a program that would run with your permissions: if "
            f"you know and trust it, add {OPTION} {shlex.quote(missing[0])} (in Python, import it first)."
        )


def _load_file(path: Path) -> None:
    """Import a file as a module named after it."""
    if not path.is_file():
        raise UsageError(f"there is no plugin {path}: name a Python file or a module.")
    there = sys.modules.get(path.stem)
    if there is not None and Path(there.__file__ or "").resolve() == path.resolve():
        return
    if there is not None or path.stem in sys.stdlib_module_names:
        raise UsageError(f"{path} has the same name as another module, {path.stem}: rename the file.")
    spec = importlib.util.spec_from_file_location(path.stem, path.resolve())
    assert spec is not None  # it ends in .py
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # code that inspects classes looks up their modules here
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[path.stem]
        raise


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Turn any exception from importing a plugin into a `UsageError` of one sentence."""
    try:
        yield
    except UsageError as error:
        raise UsageError(f"{name} cannot be used: {error}") from error
    except Exception as error:  # third-party code may raise anything
        raise UsageError(f"{name} cannot be used: importing it raised {type(error).__name__}: {error}.") from error
