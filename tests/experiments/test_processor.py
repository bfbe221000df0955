"""The name of the processor that a run's record holds."""

import pytest

from consmarl.experiments import processor

HIDDEN = """processor	: 0
vendor_id	: AuthenticAMD
cpu family	: {family}
model		: {model}
model name	: AMD EPYC
"""


@pytest.fixture
def told(monkeypatch, tmp_path):
    """Pretend that the system reports this about its processor."""

    def tell(text):
        (tmp_path / "cpuinfo").write_text(text)
        monkeypatch.setattr(processor, "_CPUINFO", tmp_path / "cpuinfo")

    return tell


def test_models_that_a_virtual_machine_hides_have_different_names(told):
    told(HIDDEN.format(family=25, model=17))
    genoa = processor.name()
    told(HIDDEN.format(family=26, model=2))
    assert genoa == "AMD EPYC (family 25, model 17)"
    assert processor.name() == "AMD EPYC (family 26, model 2)"


def test_an_arm_processor_is_named_by_its_numbers(told, monkeypatch):
    told("CPU implementer\t: 0x41\nCPU part\t: 0xd0c\n")
    monkeypatch.setattr(processor.platform, "processor", lambda: "")
    monkeypatch.setattr(processor.platform, "machine", lambda: "aarch64")
    assert processor.name() == "aarch64 (implementer 0x41, part 0xd0c)"


def test_a_system_that_reports_nothing_has_a_name_too(monkeypatch, tmp_path):
    monkeypatch.setattr(processor, "_CPUINFO", tmp_path / "none")
    monkeypatch.setattr(processor.platform, "processor", lambda: "a processor")
    assert processor.reported() == {}
    assert processor.name() == "a processor"
