"""Error messages: which names are suggested, and how values are quoted."""

import pytest

from consmarl.errors import close_names, nearest, shown

OPTIONS = ["--learning-rate", "--discount", "--record", "--episodes", "--batch-episodes", "--share.temperature",
           "--share.policy-temperature", "--epsilon-start", "--epsilon-end"]  # fmt: skip


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("--lr", ["--learning-rate"]),  # names used by other libraries
        ("--gamma", ["--discount"]),
        ("--batch_size", ["--batch-episodes"]),
        ("--epsiodes", ["--episodes"]),  # typing errors
        ("--learning_rate", ["--learning-rate"]),
        ("--temperature", ["--share.temperature", "--share.policy-temperature"]),  # parts of names
        ("--epsilon", ["--epsilon-end", "--epsilon-start"]),
        ("--verbose", []),  # nothing similar
        ("--l", []),
    ],
)
def test_similar_names_are_suggested(written, meant):
    assert sorted(close_names(written, OPTIONS)) == sorted(meant)


def test_a_name_like_no_other_gets_a_list_or_another_hint():
    assert nearest("method", ["--ids", "--env"]) == "choose from '--ids', '--env'."
    assert nearest("method", ["--ids", "--env"], otherwise="see --help.") == "see --help."


def test_values_are_quoted_briefly_on_one_line():
    assert shown("odd") == "'odd'"
    assert shown(10**5000) == "a number of thousands of digits"
    assert len(shown("x" * 10_000)) < 100
    assert "\n" not in shown(type("Odd", (), {"__repr__": lambda _: "two\nlines"})())
