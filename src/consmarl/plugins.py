"""Code of users' own that registers worlds, methods, ways of sharing and explorations: plugins.

A plugin is a module or a file in Python that calls `consmarl.register_…` when it is imported. Packages that are
installed name theirs as entry points of the group `consmarl.plugins`, and are found by themselves. Any other is a
program that somebody has to ask for: `--plugin FILE` on the command line, or an import in Python. A run's files say
which plugins it needs, and never have one imported.
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
    """Import plugins: files in Python, such as fishing.py, or modules, such as my_package.worlds."""
    for name in names:
        with _explained(name):
            if name.endswith(".py"):
                _load_file(Path(name))
            else:
                importlib.import_module(name)


def taken_out(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return a command line without `--plugin NAME`, which goes with every command, and the names."""
    rest, names, following = [], [], iter(words)
    for word in following:
        option, equals, value = word.partition("=")
        if option != OPTION:
            rest.append(word)
            continue
        named = value if equals else next(following, "")
        if not named:
            raise UsageError(f"{OPTION} names a file or module that registers something, such as fishing.py.")
        names.append(named)
    return rest, names


def in_use() -> tuple[str, ...]:
    """Return which modules and files have registered something, other than this package and what is found by itself."""
    installed = {found.module for found in entry_points(group=GROUP)}
    return tuple(home for home in all_homes() if not home.startswith("consmarl.") and home not in installed)


def in_use_elsewhere() -> tuple[str, ...]:
    """Return the same for processes that have to import it; what was typed into an interpreter cannot be."""
    homes = in_use()
    for home in homes:
        if "." not in home:
            raise UsageError(
                f"something was registered in {home}, which is not a file, and a sweep's runs are processes of their "
                f"own: put it into a file in Python, and import that."
            )
    return homes


def refuse_missing(where: str, needed: object) -> None:
    """Refuse what needs plugins that are not loaded: no file has a program run unasked."""
    listed = needed if isinstance(needed, list) else []
    there = in_use()
    missing = [str(each) for each in listed if each not in there]
    if missing:
        raise UsageError(
            f"{where} was made with {', '.join(missing)}, a program that would run here with all that you may do: if "
            f"you know it and trust it, add {OPTION} {shlex.quote(missing[0])} (in Python, import it first)."
        )


def _load_file(path: Path) -> None:
    """Import a file as a module that is called after it."""
    if not path.is_file():
        raise UsageError(f"there is no plugin {path}: name a file in Python, or a module.")
    there = sys.modules.get(path.stem)
    if there is not None and Path(there.__file__ or "").resolve() == path.resolve():
        return
    if there is not None or path.stem in sys.stdlib_module_names:
        raise UsageError(f"{path} has the name of another module, {path.stem}: rename the file.")
    spec = importlib.util.spec_from_file_location(path.stem, path.resolve())
    assert spec is not None  # it ends in .py
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # classes are looked up there by their module's name
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[path.stem]
        raise


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Tell in a sentence whatever stops a plugin."""
    try:
        yield
    except UsageError as error:
        raise UsageError(f"{name} cannot be used: {error}") from error
    except Exception as error:  # somebody else's code may raise anything
        raise UsageError(f"{name} cannot be used, it ends with {type(error).__name__}: {error}.") from error
