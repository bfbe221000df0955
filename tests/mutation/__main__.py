"""Mutation testing: put faults into copies of the code, one at a time, and check that the tests fail.

Run `python -m tests.mutation`, which takes minutes. With words as arguments, only faults whose file or new text
contains one of the words are tried. A fault counts as caught if a test that `make test` runs fails, or with `--slow`
if any test fails; a fault that prevents test collection is reported as an error in the list of faults.
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
SLOW = "--slow"
VERDICTS = {0: "MISSED", 1: "caught"}


def main() -> int:
    """Try the faults; return 1 unless all were caught."""
    words = [word for word in sys.argv[1:] if word != SLOW]
    selected = [] if SLOW in sys.argv else ["-m", "not slow"]
    chosen = [fault for fault in FAULTS if not words or any(word in fault.file + fault.new for word in words)]
    found: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for fault in chosen:
            start = time.monotonic()
            verdict = tried(fault, Path(scratch), selected)
            found.setdefault(fault.room, []).append(verdict)
            print(f"{verdict}  {fault.file}: {fault.new}  ({time.monotonic() - start:.0f} s)", flush=True)
    for room, verdicts in found.items():
        print(f"{room}: {verdicts.count('caught')} of {len(verdicts)} caught")
    return int(any(verdict != "caught" for verdicts in found.values() for verdict in verdicts))


def tried(fault: Fault, scratch: Path, selected: list[str]) -> str:
    """Return the verdict of the tests on a copy of the code with the fault."""
    copy = scratch / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    for name in ("src", "tests", "examples"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", copy)
    path = copy / "src" / "consmarl" / fault.file
    path.write_text(path.read_text(encoding="utf-8").replace(fault.old, fault.new), encoding="utf-8")
    # a compilation cache, because most compiled programs are the same for all faults
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
        *selected,
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
