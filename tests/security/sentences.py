"""What a refusal has to look like."""

from contextlib import contextmanager

import pytest

from consmarl.errors import UsageError


@contextmanager
def refused(said):
    """Expect one sentence, on one line, that says so."""
    with pytest.raises(UsageError, match=said) as error:
        yield error
    text = str(error.value)
    assert text.endswith((".", "?")), text
    assert not text.endswith("..")
    assert "\n" not in text
    assert len(text) < 1000, "a sentence does not repeat all that a file holds"
