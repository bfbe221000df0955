"""Ids of environments that other packages have written in JAX: `jaxmarl:NAME`, `jumanji:NAME`.

A file may name one. What is imported is one of these two packages, whatever the file says, and what is made is
something that the package itself has registered: docs and arguments are in SECURITY.md.
"""

from typing import Any

PREFIXES = ("jaxmarl:", "jumanji:")


def is_of_package(id: str) -> bool:
    """Whether an id names an environment of another package that is compiled as ours are."""
    return id.startswith(PREFIXES)


def package_world(id: str, /, **settings: Any) -> Any:
    """Return the environment that an id names; the package loads now, and not before."""
    if id.startswith("jaxmarl:"):
        from consmarl.environments.jaxmarl_games import jaxmarl_world

        return jaxmarl_world(id, **settings)
    from consmarl.environments.jumanji_games import jumanji_world

    return jumanji_world(id, **settings)
