"""What the library says when it is asked for something that cannot be."""

import difflib
from collections.abc import Iterable


class UsageError(ValueError):
    """A request that cannot be met; its message is one sentence on what was wrong and what would be right."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the tail of an error sentence: the known names nearest to `name`, or all of them."""
    known = list(known)
    close = difflib.get_close_matches(name.lower(), known, n=3, cutoff=0.5)
    if close:
        return f"did you mean {' or '.join(repr(guess) for guess in close)}?"
    return f"known are {', '.join(repr(each) for each in known)}."
