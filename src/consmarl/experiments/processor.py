"""The processor of this machine. Runs record it, since another model may round differently."""

import platform
from pathlib import Path

_CPUINFO = Path("/proc/cpuinfo")
_NUMBERS = (("family", "cpu family"), ("model", "model"), ("implementer", "CPU implementer"), ("part", "CPU part"))


def reported() -> dict[str, str]:
    """Return what the system reports about the processor, by name; {} if it reports nothing."""
    if not _CPUINFO.is_file():
        return {}
    lines = _CPUINFO.read_text(encoding="utf-8", errors="replace").splitlines()
    return {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}


def name() -> str:
    """Return a name that tells models of processors apart, as far as the system reports the model.

    Virtual machines often hide it: "AMD EPYC" may stand for processors of very different speed. ARM has only numbers.
    """
    told = reported()
    numbers = [f"{word} {told[key]}" for word, key in _NUMBERS if key in told]
    shown = told.get("model name") or platform.processor() or platform.machine()
    return f"{shown} ({', '.join(numbers)})" if numbers else shown
