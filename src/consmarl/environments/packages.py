"""Ids of JAX environments from other packages: `jaxmarl:NAME`, `jumanji:NAME`.

Unlike other third-party ids, they may come from a file: only these two packages can be imported, and only environments
that the package itself has registered can be created. SECURITY.md explains why this is safe.
"""

from typing import Any

PREFIXES = ("jaxmarl:", "jumanji:")


def is_of_package(id: str) -> bool:
    """Return whether an id names an environment of another package that is compiled like ours."""
    return id.startswith(PREFIXES)


def package_world(id: str, /, **settings: Any) -> Any:
    """Return the environment with this id; its package is imported only now."""
    if id.startswith("jaxmarl:"):
        from consmarl.environments.jaxmarl_games import jaxmarl_world

        return jaxmarl_world(id, **settings)
    from consmarl.environments.jumanji_games import jumanji_world

    return jumanji_world(id, **settings)
