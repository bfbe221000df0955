"""What single methods of learning have beside the settings that all have in common.

Each option says whose it is and where its default comes from. None leaves it to the preset, and where that says nothing
to the method. Names are those of the learners' own fields, so an option reaches whichever method has it.
"""

import dataclasses
from dataclasses import dataclass
from typing import Any

from consmarl.environments import validation
from consmarl.errors import UsageError
from consmarl.learners.interface import AnyLearner
from consmarl.learners.iql import TargetMemory
from consmarl.learners.td import Target
from consmarl.networks.drqn import Head
from consmarl.records import settle


def fields_of(learner: type[AnyLearner]) -> set[str]:
    """Return the names of a learner's settings."""
    return {each.name for each in dataclasses.fields(learner)} if dataclasses.is_dataclass(learner) else set()


@dataclass(frozen=True)
class LearnOptions:
    """Departures from what preset and method have."""

    target: Target | None = None
    """What values are learned towards [P: one-step]."""
    trace_decay: float | None = None
    """Lambda of targets that look further than one step [ours: 0.8]."""
    settle_after: float | None = None
    """Share of the run after which optimism fades and trace_tolerance comes in [P: 1, never]."""
    trace_tolerance: float | None = None
    """How much worse than the best an action may look in the end and still keep the trace [P: 0]."""
    head: Head | None = None
    """How a network puts out action values [P: plain]."""
    footprints: bool | None = None
    """Whether networks are told their agent's own way in this episode: how often it has been on each cell in view, and
    in which directions there are cells it has not seen [P: no]."""
    target_memory: TargetMemory | None = None
    """From where on the target network remembers; IQL and those that learn as it does, SEQL [C: next-observations]."""
    others_weight: float | None = None
    """Lambda, what others' episodes count beside one's own; SEQL [its own code: 1]."""
    expectile: float | None = None
    """How far towards the best of what was seen the ideal value leans; I2Q [its own code: 0.52]."""
    ideal_weight: float | None = None
    """Lambda, weight of the ideal goal beside the ordinary one; I2Q [its own code: 0.2]."""
    value_size: int | None = None
    """Width of the networks for ideal values; I2Q [its own code: 256]."""
    double_q: bool | None = None
    """Whether the online network says which action is best; VDN, QMIX [ours: yes], MAVEN [C: no], IQL, SEQL [P: no]."""
    averages_weights: bool | None = None
    """Whether to evaluate and export weights averaged over the last updates [P: no]."""
    mixer_size: int | None = None
    """Width of the mixing network; QMIX, MAVEN [C: 32]."""
    num_strategies: int | None = None
    """How many strategies a team has; MAVEN [C: 16]."""
    information_weight: float | None = None
    """Lambda_MI, weight of the discriminator's loss; MAVEN [C: 0.001]."""
    entropy_weight: float | None = None
    """Weight of the entropy of the policy over strategies; MAVEN [ours: 0.1; C: 0.001, unused there]."""
    critic_learning_rate: float | None = None
    """Of the critic; GA-Comm [C: 1e-3]."""
    attention_size: int | None = None
    """Length of messages, queries and keys; GA-Comm [C: 32]."""

    def __post_init__(self) -> None:
        """Bring what was given into its types, and check each option that was set."""
        settle(self, "learn.")
        for name, value in self.given().items():
            if name in ("value_size", "mixer_size", "num_strategies", "attention_size"):
                validation.whole_number(f"learn.{name}", value, least=2 if name == "num_strategies" else 1)
            elif name in ("expectile", "ideal_weight", "trace_decay", "settle_after"):
                validation.fraction(f"learn.{name}", value)
            elif name.endswith(("_weight", "_tolerance")) and validation.finite_number(f"learn.{name}", value) < 0:
                raise UsageError(f"learn.{name} must be at least 0, not {value}.")
            elif name.endswith("_rate") and validation.finite_number(f"learn.{name}", value) <= 0:
                raise UsageError(f"learn.{name} must be above 0, not {value}.")

    def given(self) -> dict[str, Any]:
        """Return the options that were set."""
        values = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}
        return {name: value for name, value in values.items() if value is not None}
