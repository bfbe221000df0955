"""A name for a run that tells it from others: its world, its method, and in what it departs from their defaults."""

import hashlib
import re
from typing import Any

from consmarl.experiments.configuration.as_json import every_setting
from consmarl.experiments.configuration.schema import Settings

LONGEST = 120  # characters; most systems take 255 bytes, and files inside have names too
_HAS_A_PLACE = ("method", "env", "set", "seed", "preset", "sharing", "exploration")
_LEFT_OUT = re.compile(r"[\s()\[\]'\"]")  # what a value can do without: (9, 9) is 9,9
_UNSAFE = re.compile(r"[^\w.,=+-]", re.ASCII)


def run_name(config: Settings) -> str:
    """Return a name that any file system takes, the seed last."""
    kind = config.sharing_kind
    sharing = f"sharing-{kind}" if kind != config.entry.sharing else None
    how = (config.preset.value, config.exploration_kind)
    parts = [config.env.replace(":", "-"), config.method, sharing, *how]
    told = "-".join([*filter(None, parts), *config.set, *departures(config)])
    return f"{_safe(told)}-{config.seed}"


def departures(config: Settings) -> list[str]:
    """Return the settings that are not as they are by default, as NAME=VALUE; those with a place of their own apart."""
    usual = every_setting(type(config)())
    names = [name for name in usual if name not in _HAS_A_PLACE and name not in config.by_default]
    there = every_setting(config)
    return [f"{name}={_shown(there[name])}" for name in names if there[name] not in (None, usual[name])]


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(getattr(value, "value", value))


def _safe(told: str) -> str:
    """Return a name without what file systems stumble over; a hash tells apart what then is too long or alike."""
    short = _LEFT_OUT.sub("", told)
    safe = _UNSAFE.sub("_", short)
    if safe == short and len(safe) <= LONGEST:
        return safe
    return f"{safe[: LONGEST - 9].rstrip('-')}-{hashlib.sha256(told.encode()).hexdigest()[:8]}"
