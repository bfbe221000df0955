"""Make a distinctive name for a run from its environment, its method, and the settings that differ from defaults."""

import hashlib
import re
from typing import Any

from consmarl.experiments.configuration.as_json import every_setting
from consmarl.experiments.configuration.schema import Settings

LONGEST = 120  # characters; most file systems allow 255 bytes, and the names of files inside need some, too
_HAS_A_PLACE = ("method", "env", "set", "seed", "preset", "sharing", "exploration")
_LEFT_OUT = re.compile(r"[\s()\[\]'\"]")  # dropped from values: (9, 9) becomes 9,9
_UNSAFE = re.compile(r"[^\w.,=+-]", re.ASCII)


def run_name(config: Settings) -> str:
    """Return a name that is valid on any file system, ending in the seed."""
    kind = config.sharing_kind
    sharing = f"sharing-{kind}" if kind != config.entry.sharing else None
    how = (config.preset.value, config.exploration_kind)
    parts = [config.env.replace(":", "-"), config.method, sharing, *how]
    told = "-".join([*filter(None, parts), *config.set, *departures(config)])
    return f"{_safe(told)}-{config.seed}"


def departures(config: Settings) -> list[str]:
    """Return the settings that differ from their defaults as NAME=VALUE, except those in _HAS_A_PLACE."""
    usual = every_setting(type(config)())
    names = [name for name in usual if name not in _HAS_A_PLACE and name not in config.by_default]
    there = every_setting(config)
    return [f"{name}={_shown(there[name])}" for name in names if there[name] not in (None, usual[name])]


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(getattr(value, "value", value))


def _safe(told: str) -> str:
    """Return a name without problematic characters; if it had to be changed or cut, a hash keeps it distinct."""
    short = _LEFT_OUT.sub("", told)
    safe = _UNSAFE.sub("_", short)
    if safe == short and len(safe) <= LONGEST:
        return safe
    return f"{safe[: LONGEST - 9].rstrip('-')}-{hashlib.sha256(told.encode()).hexdigest()[:8]}"
