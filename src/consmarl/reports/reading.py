"""Read a run's files defensively: they may be damaged or untrusted, and must not break a report.

Every number in the results is either NaN, or finite and small enough to be summed and drawn.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Set
from pathlib import Path
from typing import Any, NamedTuple

from consmarl.errors import UsageError
from consmarl.json_files import read_json_object_if_any
from consmarl.metrics import EVALUATED, Schema, from_json
from consmarl.metrics_rows import Fault, read_lines
from consmarl.reports.older_runs import schema_of_older_run

GROUPS = ("share", "learn", "explore")  # groups of settings
LARGEST_NUMBER = 1e100  # sums and squares of such numbers still fit in a float
LARGEST_COUNT = 2**64  # for episodes and seeds

Object = dict[str, Any]


class Metrics(NamedTuple):
    """The contents of a run's metrics file."""

    rows: list[Object]  # with increasing episodes
    faults: list[Fault]  # one per skipped line
    not_finite: dict[str, int]  # how often each metric is NaN, infinite or out of range


def read_config(path: Path) -> Object:
    """Read a run's settings and check those that a report relies on."""
    config = read_json_object_if_any(path) or {}
    _check(path, config, "env", "a string", _is_word)
    _check(path, config, "method", "a string", _is_word)
    _check(path, config, "sharing", "a string", _is_word, is_optional=True)
    _check(path, config, "set", "a list of strings", _are_words, is_optional=True)
    _check(path, config, "by_default", "a list of strings", _are_words, is_optional=True)
    for name in {"seed", "episodes"} & config.keys():
        _check(path, config, name, "a whole number from 0 to 2⁶⁴", _is_count)
    for name in GROUPS:
        _check(path, config, name, "an object", _is_object, is_optional=True)
    return config | {"set": config.get("set") or []}


def read_facts(path: Path) -> Object:
    """Read the facts about a run's sessions and check those that a report shows."""
    facts = read_json_object_if_any(path) or {}
    _check(path, facts, "label", "a string", _is_word, is_optional=True)
    _check(path, facts, "sessions", "a list of objects", _are_objects, is_optional=True)
    for session in facts.get("sessions") or ():
        for name in ("started", "command"):
            _check(path, session, name, "a string", _is_word, is_optional=True)
        for name in ("versions", "machine", "git"):
            _check(path, session, name, "an object", _is_object, is_optional=True)
    return facts


def read_schema(path: Path, facts: Object, config: Object) -> Schema:
    """Return the metrics that a run's facts (the file `path`) declare; for older runs, see `schema_of_older_run`."""
    _check(path, facts, "metrics", "a list of objects", _are_objects, is_optional=True)
    if not facts.get("metrics"):
        return schema_of_older_run(config)
    try:
        return from_json(facts["metrics"])
    except UsageError as error:
        raise UsageError(f"{path} cannot be used: in its metrics, {error}") from error


def read_failure(path: Path) -> str | None:
    """Read why a run failed; None if it did not."""
    failure = read_json_object_if_any(path)
    if failure is None:
        return None
    _check(path, failure, "error", "a string", _is_word, is_optional=True)
    return failure.get("error") or "it failed for an unrecorded reason."


def read_result(path: Path, numbers: Set[str]) -> Object | None:
    """Read a run's result; None if it has not finished. `numbers` are names whose values must be numbers."""
    result = read_json_object_if_any(path)
    if result is None:
        return None
    odd = _tidy(result, Counter(), numbers)
    for name, value in odd.items():
        if _is_a_number_by_name(name, numbers):
            raise UsageError(f"{path} cannot be used: {name} is {_shortened(value)}, not a number.")
    return result


def read_metrics(path: Path, numbers: Set[str]) -> Metrics:
    """Read all usable rows of metrics.

    `numbers` are names whose values must be single numbers. Any other name that holds numbers, or lists of numbers, in
    some rows must not hold anything else in others.

    A row is skipped as a whole, and reported as a fault, if it cannot be read, if it has anything else in place of a
    number, or if its episode does not come after that of the previous row.
    """
    lines = read_lines(path)
    faults = [line.fault for line in lines if line.fault is not None]
    numbered = [(line.number, line.row) for line in lines if line.row is not None]
    not_finite: Counter[str] = Counter()
    odd = {number: found for number, row in numbered if (found := _tidy(row, not_finite, numbers))}
    names = {name for found in odd.values() for name in found}
    needed = {name for name in names if _is_a_number_by_name(name, numbers) or any(name in row for _, row in numbered)}
    rows: list[Object] = []
    for number, row in numbered:
        wrong = next((each for each in odd.get(number, {}).items() if each[0] in needed), None)
        if wrong is not None:
            faults.append(Fault(number, f"has {_shortened(wrong[1])} as {wrong[0]}, not a number"))
        elif rows and row["episode"] <= rows[-1]["episode"]:
            faults.append(Fault(number, f"has episode {row['episode']} after {rows[-1]['episode']}"))
        else:
            rows.append(row)
    return Metrics(rows, sorted(faults), dict(not_finite))


def _tidy(row: Object, not_finite: Counter[str], numbers: Set[str]) -> Object:
    """Keep only numbers and lists of numbers in a row, in place; return everything else except null and []."""
    odd: Object = {}
    for name, value in row.items():
        if type(value) is float or type(value) is int:
            if not -LARGEST_NUMBER <= value <= LARGEST_NUMBER:
                not_finite[name] += 1
                row[name] = math.nan
        elif _are_numbers(value) and not _is_a_number_by_name(name, numbers):
            for place, each in enumerate(value):
                if not -LARGEST_NUMBER <= each <= LARGEST_NUMBER:
                    not_finite[name] += 1
                    value[place] = math.nan
        else:
            odd[name] = value
    for name in odd:
        del row[name]
    return {name: value for name, value in odd.items() if value is not None and value != []}


def _is_a_number_by_name(name: str, numbers: Set[str]) -> bool:
    return name in numbers or name.startswith(EVALUATED)


def _check(
    path: Path,
    holder: Mapping[str, Any],
    name: str,
    what: str,
    is_right: Callable[[Any], bool],
    *,
    is_optional: bool = False,
) -> None:
    value = holder.get(name)
    if value is None and is_optional:
        return
    if value is None:
        raise UsageError(f"{path} cannot be used: it has no {name}.")
    if not is_right(value):
        raise UsageError(f"{path} cannot be used: {name} should be {what}, not {_shortened(value)}.")


def _is_word(value: Any) -> bool:
    return isinstance(value, str)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < LARGEST_COUNT


def _are_words(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_word, value))


def _are_numbers(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and set(map(type, value)) <= {int, float}


def _are_objects(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_object, value))


def _shortened(value: Any) -> str:
    """Return a value as JSON, shortened to fit in a sentence."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else f"{text[:39]}…"
