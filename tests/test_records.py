"""Values given to typed records are converted to the types of the fields, or refused in one sentence."""

import enum
from dataclasses import dataclass, field
from typing import Any, Optional

import numpy as np
import pytest

from consmarl.errors import UsageError
from consmarl.records import settle, typed


class Colour(enum.Enum):
    RED = "red"
    GREEN = "green"


@dataclass(frozen=True)
class Inner:
    size: int = 3
    rate: float = 0.5

    def __post_init__(self):
        settle(self, "inner.")


@dataclass(frozen=True)
class Outer:
    inner: Inner = field(default_factory=lambda: Inner(rate=0.25))

    def __post_init__(self):
        settle(self)


@pytest.mark.parametrize(
    ("hint", "given", "made"),
    [
        (Colour, "red", Colour.RED),
        (Colour | None, "green", Colour.GREEN),
        (Optional[Colour], "green", Colour.GREEN),  # noqa: UP045  # the older notation
        (Colour | None, None, None),
        (int, np.int64(5), 5),
        (int, 1e4, 10_000),
        (float, 3, 3.0),
        (float, np.float32(0.5), 0.5),
        (bool, np.True_, True),
        (tuple[str, ...], ["a", "b"], ("a", "b")),
        (tuple[int, ...], np.arange(3), (0, 1, 2)),
        (tuple[int, ...], range(2), (0, 1)),
        (tuple[int, int], [4, 5.0], (4, 5)),
        (Any, "red", "red"),
        (Colour | int, "red", "red"),  # a field of several types has to tell them apart itself
    ],
)
def test_equivalent_values_are_converted_to_the_fields_type(hint, given, made):
    settled = typed("it", hint, given)
    assert settled == made
    assert type(settled) is type(made)


@pytest.mark.parametrize(
    ("hint", "given", "sentence"),
    [
        (Colour, "rde", r"^it has no value 'rde': did you mean 'red'"),
        (Colour, "banana", r"^it has no value 'banana': choose from 'red', 'green'\.$"),
        (Colour, ["red"], r"^it has no value \['red'\]: "),
        (Colour, None, r"^it has no value None: "),
        (int, True, r"^it must be a whole number, not True\.$"),
        (int, "5", r"^it must be a whole number, not '5'\.$"),
        (int, 2.5, r"^it must be a whole number, not 2\.5\.$"),
        (int, float("nan"), r"^it must be a whole number, not nan\.$"),
        (int, float("inf"), r"^it must be a whole number, not inf\.$"),
        (float, [0.5], r"^it must be a number, not \[0\.5\]\.$"),
        (float, False, r"^it must be a number, not False\.$"),
        (float, "fast", r"^it must be a number, not 'fast'\.$"),
        (float, 10**400, r"^it must be a smaller number than"),
        (bool, 1, r"^it must be true or false, not 1\.$"),
        (str, 5, r"^it must be a string, not 5\.$"),
        (tuple[str, ...], "grid=4,4", r"^it must be a list, not 'grid=4,4'\.$"),
        (tuple[int, ...], 5, r"^it must be a list, not 5\.$"),
        (tuple[int, ...], [1, "b"], r"^each of it must be a whole number, not 'b'\.$"),
        (tuple[int, int], [1], r"^it must be a list of 2, not \[1\]\.$"),
        (Inner, "inner", r"^it must be of type Inner, not 'inner'\.$"),
        (str, ["x" * 50] * 50, r"^it must be a string, not .{20,80}\.$"),
    ],
)
def test_invalid_values_are_refused_in_one_short_sentence(hint, given, sentence):
    with pytest.raises(UsageError, match=sentence):
        typed("it", hint, given)


def test_a_dict_changes_the_fields_default():
    assert Outer(inner={"size": 4}) == Outer(Inner(size=4, rate=0.25))
    with pytest.raises(UsageError, match=r"no setting 'inner\.sise': did you mean 'size'"):
        Outer(inner={"sise": 4})
    with pytest.raises(UsageError, match=r"inner\.size must be a whole number, not 'big'"):
        Outer(inner={"size": "big"})


def test_a_string_is_returned_unchanged():
    class Marked(str):
        pass

    text = Marked("pgm-3ag")
    assert typed("env", str, text) is text


def test_unresolvable_type_hints_accept_any_value():
    @dataclass(frozen=True)
    class Foreign:
        value: "NowhereDefined" = 1  # noqa: F821

        def __post_init__(self):
            settle(self)

    assert Foreign("anything").value == "anything"
