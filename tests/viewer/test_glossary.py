"""Every symbol has an explanation that says where the paper defines it."""

import re

import pytest

from consmarl import AdHocTD, Cons
from consmarl.sharing.none import NoSharing
from consmarl.sharing.options import Eligibility
from consmarl.viewer import glossary
from consmarl.viewer.glossary import glossary_of, values_of

SYMBOLS = {"n", "P_ask", "υ_a", "b_ask", "e_i", "max Q", "π", "T", "Γ", "Λ", "w_k", "w_n", "w_p", "τ", "p̃", "κ", "π̃",
           "Γ̃", "q", "|A|"}  # fmt: skip


@pytest.mark.parametrize("entries", [glossary.ASKING, glossary.OF_TEACHERS, glossary.OF_CONS, glossary.OF_ADHOC_TD])
def test_every_symbol_has_a_one_line_meaning_and_a_source(entries):
    for entry in entries.values():
        assert re.match(r"Eq\. \d|Algorithm \d", entry.source)
        assert 20 < len(entry.meaning) < 140
        assert "\n" not in entry.meaning


def test_pages_explain_the_symbols_of_their_mechanisms():
    assert {entry.symbol for entry in glossary_of([Cons()]).values()} >= SYMBOLS
    of_adhoc_td = {entry.symbol for entry in glossary_of([AdHocTD()]).values()}
    assert {"P_ask", "P_give", "υ_g"} <= of_adhoc_td
    assert not {"Γ", "Λ", "w_n"} & of_adhoc_td
    assert {entry.symbol for entry in glossary_of([AdHocTD(), Cons()]).values()} >= SYMBOLS | of_adhoc_td
    assert glossary_of([NoSharing()]) == {}


def test_reasons_for_silence_depend_on_the_eligibility_rule():
    def reasons(*mechanisms):
        entries = glossary_of(mechanisms).values()
        return {entry.symbol for entry in entries if entry.name == "why a teammate is silent"}

    hopeful = dict(eligibility=Eligibility.MORE_HOPEFUL)
    assert reasons(Cons()) == {"knows less"}
    assert reasons(Cons(**hopeful)) == reasons(AdHocTD(**hopeful)) == {"does not expect more"}
    assert reasons(Cons(), Cons(eligibility="more-familiar")) == {"knows less", "has not seen it more often"}
    assert reasons(AdHocTD()) == set()  # Eq. 2 alone decides


def test_values_are_those_of_the_mechanism():
    told = values_of(Cons(update_rate=0.25, temperature=0.3, ask_scale=0.01, start_episode=1234))
    assert told == {"ask_scale": "0.01", "budget": "50,000", "start": "1,234", "policy_temperature": "1",
                    "rate": "0.25", "temperature": "0.3"}  # fmt: skip
    assert values_of(AdHocTD(give_scale=1.5))["give_scale"] == "1.5"
    assert values_of(NoSharing()) == {}
