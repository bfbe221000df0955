"""Explain every symbol on the page: its name, its meaning in one line, and where the paper defines it."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from consmarl.sharing.adhoc_td import AdHocTD
from consmarl.sharing.cons import Cons
from consmarl.sharing.consulting import Consulting
from consmarl.sharing.interface import Sharing
from consmarl.sharing.mechanism import Mechanism
from consmarl.sharing.options import Eligibility


class Entry(NamedTuple):
    """A symbol and its explanation."""

    symbol: str  # characters after an underscore are a subscript
    name: str
    meaning: str
    source: str
    setting: str | None = None  # the mechanism's field that holds its value


ASKING = {
    "visits": Entry(
        "n", "familiarity", "How often an agent has met this observation; including now for a student.", "Eq. 1"
    ),
    "ask": Entry(
        "P_ask",
        "probability of asking",
        "(1 + υ_a)^−√n: the more often an agent has met an observation, the less it asks.",
        "Eq. 1",
    ),
    "ask_scale": Entry(
        "υ_a", "asking scale", "How quickly familiarity stops agents from asking.", "Eq. 1", "ask_scale"
    ),
    "budget": Entry(
        "b_ask",
        "request budget",
        "How many more requests an agent may act on; one without effect is free.",
        "Algorithm 3",
        "budget_requests",
    ),
    "start": Entry(
        "e_i", "start of sharing", "Agents may ask in all episodes after this one.", "Eq. 8", "start_episode"
    ),
}
OF_TEACHERS = {  # why a teammate may be silent, by rule of who may teach
    Eligibility.EITHER: Entry(
        "knows less",
        "why a teammate is silent",
        "A teammate answers only if it has met the observation more often than the student, or has a higher max Q.",
        "Eq. 6",
    ),
    Eligibility.MORE_FAMILIAR: Entry(
        "has not seen it more often",
        "why a teammate is silent",
        "A teammate answers only if it has met the observation more often than the student: half of the equation.",
        "Eq. 6",
    ),
    Eligibility.MORE_HOPEFUL: Entry(
        "does not expect more",
        "why a teammate is silent",
        "A teammate answers only if its max Q is higher than the student's: half of the equation.",
        "Eq. 6",
    ),
}
OF_CONS = {
    "max_value": Entry("max Q", "best value", "The highest return that an agent expects from here on.", "Eq. 6"),
    "policy": Entry(
        "π", "policy before", "The student's own probabilities: the softmax of its Q-values divided by T.", "Eq. 5"
    ),
    "policy_temperature": Entry(
        "T", "temperature of π", "The lower it is, the more π favours high Q-values.", "Eq. 5", "policy_temperature"
    ),
    "confidence": Entry(
        "Γ", "confidence", "How certain a policy is: 0 if all actions are equally likely, 1 if one is certain.", "Eq. 4"
    ),
    "prestige": Entry(
        "Λ", "prestige", "√n · Γ, from a teacher's familiarity and confidence: how much its advice weighs.", "Eq. 7"
    ),
    "share": Entry(
        "w_k",
        "weight of a teacher",
        "e^Λ as a share of the sum over all teachers who name the same action; in brackets if it does not count.",
        "Eq. 10",
    ),
    "negative": Entry(
        "w_n",
        "weight of negative knowledge",
        "How much “this is the worst action” counts: in the paper 1 when sharing starts, then decreasing.",
        "Eq. 8",
    ),
    "positive": Entry(
        "w_p", "weight of positive knowledge", "1 − w_n: how much “this is the best action” counts.", "Eq. 8"
    ),
    "rate": Entry(
        "τ",
        "update rate",
        "How far answers move a probability: at 1, all the way to the teacher's.",
        "Eq. 9",
        "update_rate",
    ),
    "modified": Entry(
        "p̃", "moved probability", "A probability after the answers have moved it; these need not add up to 1.", "Eq. 9"
    ),
    "temperature": Entry(
        "κ",
        "temperature of π̃",
        "The higher it is, the more evenly π̃ spreads over the actions.",
        "Algorithm 3",
        "temperature",
    ),
    "policy_after": Entry(
        "π̃", "policy after", "The student's new probabilities: the softmax of p̃ divided by κ.", "Algorithm 3"
    ),
    "confidence_after": Entry(
        "Γ̃",
        "confidence after",
        "Γ of π̃. With this probability the student simply takes its most likely action; it also determines q.",
        "Eq. 4, Algorithm 1",
    ),
    "excluded": Entry(
        "q",
        "actions left out",
        "How many of the least likely actions are left out: Γ̃ lies in the q-th of |A| − 1 equal parts of 0 to 1.",
        "Algorithm 1",
    ),
    "actions": Entry("|A|", "number of actions", "How many actions an agent can choose from.", "Algorithm 1"),
}
OF_ADHOC_TD = {
    "max_value": Entry("max Q", "best value", "The highest return that an agent expects from here on.", "Eq. 2"),
    "policy": Entry("π", "policy before", "The student's own probabilities: the softmax of its Q-values.", "Eq. 5"),
    "give": Entry(
        "P_give",
        "probability of answering",
        "1 − (1 + υ_g)^−(√n · |max Q − min Q|): higher if the teacher knows the observation and the choice matters.",
        "Eq. 2",
    ),
    "give_scale": Entry(
        "υ_g", "answering scale", "The larger it is, the more readily teammates answer.", "Eq. 2", "give_scale"
    ),
}

OF_CONSULTING = {
    "max_value": Entry("max Q", "best value", "The highest return that an agent expects from here on.", "Eq. 6"),
    "policy": Entry("π", "policy before", "The student's own probabilities: the softmax of its Q-values.", "Eq. 5"),
}


def glossary_of(mechanisms: Sequence[Sharing]) -> dict[str, Entry]:
    """Return the entries, by key, for a page that shows these sharing mechanisms."""
    found: dict[str, Entry] = {
        each.eligibility.value: OF_TEACHERS[each.eligibility]
        for each in mechanisms
        if isinstance(each, Mechanism) and each.eligibility in OF_TEACHERS
    }
    for kind, entries in (
        (Mechanism, ASKING),
        (Cons, OF_CONS),
        (AdHocTD, OF_ADHOC_TD),
        (Consulting, OF_CONSULTING),
    ):
        if any(isinstance(mechanism, kind) for mechanism in mechanisms):
            found = entries | found
    return dict(sorted(found.items(), key=lambda item: item[0] not in ASKING))


def values_of(sharing: Sharing) -> dict[str, str]:
    """Return the values of the symbols that are constant throughout a run, by key."""
    entries = glossary_of([sharing])
    return {key: _shown(getattr(sharing, entry.setting)) for key, entry in entries.items() if entry.setting}


def _shown(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"
