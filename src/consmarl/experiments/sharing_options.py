"""How agents share, as settings of a run: a preset, and single options that depart from it.

Each option says where its value comes from: [P] the paper, [C] the authors' code, [ours]. None is the preset's value.
"""

import dataclasses
import enum
from dataclasses import dataclass
from typing import Any

from consmarl.errors import UsageError
from consmarl.records import settle
from consmarl.sharing.adhoc_td import AdHocTD
from consmarl.sharing.cons import Cons
from consmarl.sharing.interface import Sharing
from consmarl.sharing.mechanism import Mechanism, fitted_start
from consmarl.sharing.none import NoSharing
from consmarl.sharing.options import (
    AskGate,
    AskWhen,
    Eligibility,
    Gained,
    Giving,
    Knowledge,
    Normalisation,
    Preset,
    Sampling,
    TeacherMemory,
)


class SharingKind(enum.Enum):
    """Ways of sharing knowledge."""

    NONE = "none"
    ADHOC_TD = "adhoc-td"
    CONS = "cons"


_BUILT: dict[SharingKind, type[Mechanism]] = {SharingKind.ADHOC_TD: AdHocTD, SharingKind.CONS: Cons}
MECHANISMS: dict[SharingKind, type[Sharing]] = {SharingKind.NONE: NoSharing, **_BUILT}


def options_of(kind: SharingKind) -> set[str]:
    """Return the names of the options that a way of sharing has."""
    built = MECHANISMS[kind]
    return {each.name for each in dataclasses.fields(built)} if dataclasses.is_dataclass(built) else set()


@dataclass(frozen=True)
class ShareOptions:
    """Departures from the preset."""

    ask_scale: float | None = None
    """Upsilon_a of Eq. 1: how soon familiarity ends asking [P: 0.5, in Cleanup 0.01; C: 0.5]."""
    budget_requests: int | None = None
    """Requests with success that each agent may make in a run [P: 50,000]."""
    budget_answers: int | None = None
    """Answers that each agent may give in a run [P: 50,000 for each of the others]."""
    start_episode: int | None = None
    """Episode after which sharing begins [P: 5,000; ours: 1,000, or an eighth of a short run]."""
    ask_gate: AskGate | None = None
    """When an agent may think of asking [P: always; C: exploring; ours: exploiting]."""
    ask_when: AskWhen | None = None
    """In which steps [P: every-step; C: first-step]."""
    has_second_draw: bool | None = None
    """Whether exploring agents without advice draw epsilon once more [P: no; C: yes]."""
    enforces_answer_budget: bool | None = None
    """Whether answering costs budget [P: yes; C: no]."""
    teacher_memory: TeacherMemory | None = None
    """What teachers remember when they look at a student's observation [C: student, before the step; ours: history,
    what their own networks make of the student's episode]."""
    eligibility: Eligibility | None = None
    """Who may teach, by the halves of Eq. 6 [P: either in CONS, anyone in AdHocTD; ours: one half alone]."""
    hope_margin: float | None = None
    """By how much max Q of a teacher must exceed the student's where hoping for more counts [P: 0]."""
    give_scale: float | None = None
    """Upsilon_g of Eq. 2, AdHocTD only [P: 1.5]."""
    giving: Giving | None = None
    """Who answers, AdHocTD only [P: by-importance; C: always]."""
    weight_shape: float | None = None
    """a of Eq. 8, CONS only [P: 0 in PGM, 0.3 in FT, -0.5 in Cleanup; C: 0.7 in FT]."""
    knowledge: Knowledge | None = None
    """Which knowledge counts, CONS only [P: schedule; C: negative-only]."""
    fixed_negative_weight: float | None = None
    """Weight of negative knowledge where it is fixed, CONS only [C: 0.5]."""
    update_rate: float | None = None
    """Tau of Eq. 9, CONS only [C: 0.6]."""
    policy_temperature: float | None = None
    """T of Eq. 5, CONS only [P: 1]."""
    temperature: float | None = None
    """Kappa, of the softmax that makes the new policy, CONS only [P: 1, implied; C: 0.3]."""
    normalisation: Normalisation | None = None
    """Among whom teachers' weights add up to 1, CONS only [P: all-naming; C: passing]."""
    gained: Gained | None = None
    """What makes answers knowledge, CONS only [P: probability-changed; C: teacher-passed]."""
    sampling: Sampling | None = None
    """How to draw from the new policy, CONS only [P: targeted]."""
    requires_seen: bool | None = None
    """Whether teachers must have met the observation, CONS only [P: no; C: yes]."""

    def __post_init__(self) -> None:
        """Bring what was given into its types."""
        settle(self, "share.")

    def given(self) -> dict[str, Any]:
        """Return the options that were set."""
        values = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}
        return {name: value for name, value in values.items() if value is not None}

    def start(self, kind: SharingKind, preset: Preset, episodes: int, usual: int | None = None) -> int | None:
        """Return after which episode of a run sharing begins; None where nobody shares.

        `usual` is when it begins in a long run, by default as the mechanism has it in this preset.
        """
        if kind is SharingKind.NONE:
            return None
        if self.start_episode is not None:
            return self.start_episode
        if usual is None:
            usual = _BUILT[kind].preset(preset).start_episode
        return usual if preset is Preset.PAPER else fitted_start(usual, episodes)

    def mechanism(self, kind: SharingKind, preset: Preset) -> Sharing:
        """Build the mechanism."""
        given = self.given()
        if kind is SharingKind.NONE:
            if given:
                raise UsageError(
                    f"share.{next(iter(given))} is set, and nobody shares: choose --method cons or adhoc-td."
                )
            return NoSharing()
        known = options_of(kind)
        for name in given:
            if name not in known:
                others = SharingKind.ADHOC_TD if kind is SharingKind.CONS else SharingKind.CONS
                raise UsageError(f"share.{name} is an option of {others.value}: {kind.value} has no such thing.")
        return _BUILT[kind].preset(preset, **given)
