"""Damaged files on the command line: one sentence, exit code 2, and no file is changed."""

import pytest

from consmarl.cli import main
from tests.viewer.small import contents

DAMAGES = {
    "not_utf_8": b'\xff\xfe{"env": "pgm-3ag"}',
    "deep": b"[" * 100_000 + b"]" * 100_000,
    "deep_inside": b'{"set": ' + b"[" * 600 + b"]" * 600 + b"}",
    "list": b"[]",
    "half": b'{"env": ',
}
COMMANDS = {
    "config.json": ["train --config run/config.json", "bench --config run/config.json", "resume run", "view run",
                    "export run"],
    "run.json": ["resume run", "view run", "export run"],
    "sweep.json": ["sweep --config run/sweep.json", "sweep --config run/sweep.json --dry-run"],
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize(("name", "command"), [(name, each) for name, every in COMMANDS.items() for each in every])
def test_a_damaged_file_is_refused_in_one_sentence(tmp_path, monkeypatch, capsys, name, command, damage):
    monkeypatch.chdir(tmp_path)
    run = tmp_path / "run"
    run.mkdir()
    (run / "config.json").write_text("{}")
    (run / name).write_bytes(DAMAGES[damage])
    before = contents(tmp_path)
    assert main(command.split()) == 2
    (sentence,) = capsys.readouterr().err.splitlines()
    assert sentence.startswith("consmarl: ")
    assert name in sentence
    assert sentence.endswith(".")
    assert len(sentence) < 1000
    assert contents(tmp_path) == before
