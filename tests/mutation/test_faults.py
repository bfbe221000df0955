"""The list of faults matches the code: each text to replace occurs exactly once in its file, and the tests exist."""

from pathlib import Path

import pytest

import consmarl
from tests.mutation.faults import FAULTS, LEARNERS, SHARING, TRAINING

PACKAGE, TESTS = Path(consmarl.__file__).parent, Path(__file__).parents[1]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.file}-{fault.new}")
def test_every_fault_can_be_injected(fault):
    assert (PACKAGE / fault.file).read_text(encoding="utf-8").count(fault.old) == 1
    assert fault.old != fault.new
    assert all((TESTS / each).is_file() for each in fault.tests)


def test_every_subpackage_has_faults():
    assert {fault.room for fault in FAULTS} == {SHARING, LEARNERS, TRAINING}
