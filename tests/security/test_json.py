"""Untrusted JSON: every fault is refused in one sentence."""

import pytest

from consmarl.experiments.configuration.pairs import settings_from
from consmarl.json_files import MOST_BYTES, MOST_LEVELS, parse_json, parse_json_object, read_json_object
from tests.security.sentences import refused


def nested(levels, inside=""):
    return "[" * levels + inside + "]" * levels


FAULTS = {
    b"": "is not JSON",
    b'{"a": ': "is not JSON",
    b"\xff\xfe{}": "is not UTF-8",
    b'{"a": ' + b"9" * 5000 + b"}": "is not JSON",  # ValueError, not JSONDecodeError
    b'{"a": ' + nested(100_000).encode() + b"}": "nested too deeply",
    # Python parses it without complaint, but it is too deep to copy or to write again
    b'{"a": ' + nested(MOST_LEVELS + 1).encode() + b"}": "nested too deeply",
    b'{"a": ' * 700 + b"1" + b"}" * 700: "nested too deeply",
    b"[]": "must contain an object.*not a list",
    b"null": "must contain an object.*not null",
    b"7": "must contain an object.*not a number",
}


@pytest.mark.parametrize("content", FAULTS, ids=lambda content: FAULTS[content][:24] + content[:8].decode("latin-1"))
def test_every_fault_is_refused_in_one_sentence_that_names_the_file(tmp_path, content):
    path = tmp_path / "facts.json"
    path.write_bytes(content)
    with refused(FAULTS[content]) as error:
        read_json_object(path)
    assert str(error.value).startswith(str(path))


def test_missing_and_too_large_files_are_refused(tmp_path):
    with refused("there is no file"):
        read_json_object(tmp_path / "absent.json")
    with refused("there is no file"):
        read_json_object(tmp_path)
    path = tmp_path / "large.json"
    with path.open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    with refused("too large"):
        read_json_object(path)


def test_valid_json_is_read():
    assert parse_json("[1, 2]", "it") == [1, 2]
    assert parse_json_object('{"a": "\\ud83d\\ude00 [[{{"}', "it") == {"a": "😀 [[{{"}
    wide = "[" + ",".join(["[]"] * 200) + "]"
    assert parse_json(wide, "it") == [[]] * 200
    assert parse_json(nested(MOST_LEVELS), "it")


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ('{"a\\u001b[2J": ["\\u001b]0;x\\u0007"]}', {"a�[2J": ["�]0;x�"]}),  # would clear or rename a terminal
        ('{"a": "\x9b2J\x7f\\r\\b"}', {"a": "�2J���"}),
        ('{"a": "\\ud800 x\\udc80"}', {"a": "� x�"}),  # cannot be written to a page
        ('{"a": "\\\\u001b é\\n\\t\\ud83d\\ude00"}', {"a": "\\u001b é\n\t😀"}),  # all of this can be shown
    ],
)
def test_unprintable_characters_are_replaced(written, shown):
    assert parse_json(written, "it") == shown


@pytest.mark.parametrize(
    "value", ["-" * 100_000 + "1", "-" * 3000 + "1", "(" * 5000, "1+" * 5000 + "1", "{[]: 1}", "x." * 5000]
)
def test_settings_that_are_not_literals_are_read_as_strings(value):
    assert settings_from((f"name={value}",)) == {"name": value}
