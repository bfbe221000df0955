"""The form that every refusal must have."""

from contextlib import contextmanager

import pytest

from consmarl.errors import UsageError


@contextmanager
def refused(said):
    """Expect a refusal that matches `said`, in one sentence on one line."""
    with pytest.raises(UsageError, match=said) as error:
        yield error
    text = str(error.value)
    assert text.endswith((".", "?")), text
    assert not text.endswith("..")
    assert "\n" not in text
    assert len(text) < 1000, "a sentence does not repeat all that a file holds"
