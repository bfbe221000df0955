"""Small numbered states to save, and helpers for the tests of checkpoints."""

import numpy as np

from consmarl.training import checkpoints


def counted(number, size=10):
    return {"count": np.full(size, number, np.int32), "step": np.int32(number)}


def save_counted(directory, *numbers, keep=10):
    for number in numbers:
        checkpoints.save(directory, number, counted(number), {"episode": number}, keep=keep)


def names(directory):
    return sorted(path.name for path in directory.iterdir())


def contents(directory):
    return {path.relative_to(directory): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def sentence_of(error):
    text = str(error.value)
    assert text.endswith(".")
    assert "\n" not in text
    return text
