"""The error raised for invalid input, and helpers for its messages."""

import difflib
import reprlib
from collections.abc import Iterable, Mapping
from types import MappingProxyType


class UsageError(ValueError):
    """Invalid input from the user; the message says in one sentence what was wrong and what would be right."""


# Other libraries' names for our settings, which are not similar enough in spelling to be found by `_likeness`.
OTHER_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "lr": "learning-rate", "alpha": "learning-rate", "step-size": "learning-rate",
        "gamma": "discount", "discount-factor": "discount",
        "batch-size": "batch-episodes", "minibatch-size": "batch-episodes",
        "buffer-size": "replay-episodes", "replay-size": "replay-episodes", "memory-size": "replay-episodes",
        "buffer-capacity": "replay-episodes", "learning-starts": "warmup-steps",
        "target-update": "target-every-updates", "target-update-interval": "target-every-updates",
        "n-envs": "num-envs", "parallel-envs": "num-envs", "num-workers": "workers", "jobs": "workers", "j": "workers",
        "algo": "method", "algorithm": "method", "agent": "method", "learner": "method", "model": "method",
        "environment": "env", "world": "env", "game": "env", "map": "env", "worlds": "envs", "environments": "envs",
        "epochs": "episodes", "iterations": "episodes", "timesteps": "episodes", "steps": "episodes",
        "total-timesteps": "episodes", "total-steps": "episodes", "max-steps": "episodes", "n-episodes": "episodes",
        "hidden-dim": "hidden-size", "hidden-units": "hidden-size", "width": "hidden-size",
        "output": "out", "output-dir": "out", "save-dir": "out", "logdir": "out", "log-dir": "out", "dir": "out",
        "o": "out", "name": "out", "random-seed": "seed", "budget": "share.budget-requests",
        "kappa": "share.temperature", "tau": "share.update-rate", "eval-freq": "evaluate-every",
        "eval-interval": "evaluate-every", "eval-episodes": "evaluation-episodes", "save-every": "checkpoint-every",
        "eps-start": "epsilon-start", "eps-end": "epsilon-end", "eps-decay": "epsilon-anneal-steps",
        "epsilon-decay": "epsilon-anneal-steps", "n-agents": "num-agents", "agents": "num-agents",
        "num-players": "num-agents", "grid-size": "grid", "map-size": "grid",
    }
)  # fmt: skip
MIN_LIKENESS = 0.66  # lower similarities are coincidence, such as that of "lr" and "record"
LEAD = 0.15  # names that are less similar than the best one by more than this are not suggested
SAME_PART = 0.8  # minimum similarity for a part of a name to count as a misspelling of another part


def nearest(name: str, known: Iterable[str], *, otherwise: str | None = None) -> str:
    """Return the end of an error message: the known names most similar to `name`, or all of them if none is similar.

    `otherwise`, if given, replaces the list of all names.
    """
    known = list(known)
    if close := close_names(name, known):
        return f"did you mean {' or '.join(repr(guess) for guess in close)}?"
    return otherwise or f"choose from {', '.join(repr(each) for each in known)}."


def close_names(name: str, known: Iterable[str]) -> list[str]:
    """Return up to three known names that the user may have meant by `name`, most likely first."""
    known = list(known)
    meant = OTHER_NAMES.get(_plain(name))
    if meant and (same := [each for each in known if _plain(each) == meant]):
        return same
    likeness = {each: _likeness(_plain(name), _plain(each)) for each in known}
    least = max(MIN_LIKENESS, max(likeness.values(), default=0.0) - LEAD)
    close = [each for each in known if likeness[each] >= least]
    return sorted(close, key=lambda each: -likeness[each])[:3]


def shown(value: object) -> str:
    """Return a value as error messages quote it: its `repr`, on one line, shortened if it is long."""
    try:
        text = repr(value)
    except ValueError:  # Python refuses to print integers with thousands of digits
        return "a number of thousands of digits"
    except RecursionError:
        return "something nested too deeply"
    return text if len(text) <= 200 and text.isprintable() else reprlib.repr(text[:300])


def _plain(name: str) -> str:
    """Return a name in the spelling of options: lower case, hyphens for underscores, no leading hyphens."""
    return name.lstrip("-").replace("_", "-").lower()


def _likeness(name: str, other: str) -> float:
    """Return the similarity of two names, from 0 to 1: letter by letter or part by part, whichever is higher."""
    whole = difflib.SequenceMatcher(None, name, other).ratio()
    return max(whole, _likeness_of_parts(_parts(name), _parts(other)))


def _likeness_of_parts(parts: list[str], others: list[str]) -> float:
    """Return 0.66 to 1, depending on how many of `others` the `parts` cover; 0 unless all parts are among them."""
    if not parts:
        return 0.0
    for part in parts:
        if not any(difflib.SequenceMatcher(None, part, each).ratio() >= SAME_PART for each in others):
            return 0.0
    return MIN_LIKENESS + (1 - MIN_LIKENESS) * min(len(parts) / len(others), 1.0)


def _parts(name: str) -> list[str]:
    return [part for part in name.replace(".", "-").split("-") if part]
