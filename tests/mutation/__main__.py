"""Put faults into copies of the code, one at a time, and see whether the tests notice.

`python -m tests.mutation`, or with words: only faults whose file or new text has one of them in it. It takes minutes.
A fault counts as caught if a test that `make test` runs fails; one that stops the tests from being collected is an
error of the list.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.mutation.faults import FAULTS, Fault

ROOT = Path(__file__).parents[2]
VERDICTS = {0: "MISSED", 1: "caught"}


def main() -> int:
    """Try the faults; return 1 if one was missed."""
    words = sys.argv[1:]
    chosen = [fault for fault in FAULTS if not words or any(word in fault.file + fault.new for word in words)]
    found: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for fault in chosen:
            start = time.monotonic()
            verdict = tried(fault, Path(scratch))
            found.setdefault(fault.room, []).append(verdict)
            print(f"{verdict}  {fault.file}: {fault.new}  ({time.monotonic() - start:.0f} s)", flush=True)
    for room, verdicts in found.items():
        print(f"{room}: {verdicts.count('caught')} of {len(verdicts)} caught")
    return int(any(verdict != "caught" for verdicts in found.values() for verdict in verdicts))


def tried(fault: Fault, scratch: Path) -> str:
    """Return what the tests say to a copy with the fault in it."""
    copy = scratch / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    for name in ("src", "tests", "examples"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", copy)
    path = copy / "src" / "consmarl" / fault.file
    path.write_text(path.read_text(encoding="utf-8").replace(fault.old, fault.new), encoding="utf-8")
    # programs that a fault leaves as they are need not be compiled for each of them
    kept = {
        "JAX_COMPILATION_CACHE_DIR": str(scratch / "compiled"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "-m",
        "not slow",
        "-p",
        "no:cacheprovider",
        *(f"tests/{each}" for each in fault.tests),
    ]
    settings = os.environ | kept | {"PYTHONPATH": str(copy / "src")}
    done = subprocess.run(command, cwd=copy, env=settings, capture_output=True, text=True, check=False)
    if done.returncode not in VERDICTS:
        print(done.stdout[-2000:], file=sys.stderr)
    return VERDICTS.get(done.returncode, "ERROR ")


if __name__ == "__main__":
    sys.exit(main())
