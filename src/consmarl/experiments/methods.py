"""The methods by name: a way to learn, and the way of sharing that goes with it."""

import enum
from collections.abc import Callable
from dataclasses import dataclass

from consmarl.experiments.learn_options import fields_of
from consmarl.experiments.sharing_options import SharingKind, options_of
from consmarl.learners.ga_comm import GAComm
from consmarl.learners.i2q import I2Q
from consmarl.learners.interface import AnyLearner, Scores
from consmarl.learners.iql import IQL
from consmarl.learners.maven import MAVEN
from consmarl.learners.qmix import QMIX
from consmarl.learners.seql import SEQL
from consmarl.learners.vdn import VDN
from consmarl.training.exploration import LinearSchedule


class Method(enum.Enum):
    """Methods by name."""

    IQL = "iql"
    ADHOC_TD = "adhoc-td"
    CONS = "cons"
    I2Q = "i2q"
    SEQL = "seql"
    GA_COMM = "ga-comm"
    MAVEN = "maven"
    VDN = "vdn"
    QMIX = "qmix"


def _common_epsilon(episode_limit: int) -> LinearSchedule:
    """The paper's: in 50,000 steps from 1 to 0.05, however long episodes are."""
    del episode_limit
    return LinearSchedule(1.0, 0.05, 50_000)


def _policy_epsilon(episode_limit: int) -> LinearSchedule:
    """The authors' code: from 0.5 to 0.02 by 0.00064 an episode."""
    return LinearSchedule(0.5, 0.02, 750 * episode_limit)


# How the loop learns from replay, named as it names it; methods without replay have none of these settings.
OF_LOOP = ("batch_episodes", "replay_episodes", "warmup_steps", "mirror_episodes", "coverage_bonus")
OF_REPLAY = (*OF_LOOP, "coverage_after")


@dataclass(frozen=True)
class MethodEntry:
    """What a name stands for."""

    summary: str
    learner: type[AnyLearner]
    sharing: SharingKind = SharingKind.NONE
    weights_by_world: bool = False  # whether the world decides if agents share weights, rather than the learner
    epsilon: Callable[[int], LinearSchedule] = _common_epsilon  # by the world's limit of steps

    @property
    def is_value_based(self) -> bool:
        """Whether agents have values, which they can explore on and advise each other on."""
        return self.learner.scores is Scores.VALUES

    def has(self, name: str) -> bool:
        """Whether the learner has a setting of this name."""
        return name in fields_of(self.learner)

    def has_setting(self, name: str, sharing: SharingKind) -> bool:
        """Whether a setting of a run means anything to this method with this sharing."""
        group, _, option = name.rpartition(".")
        if group == "share":
            return option in options_of(sharing)
        if group == "learn" or name in ("weights", "reward_of"):
            return self.has(option)
        if name in ("sharing", "exploration"):
            return self.is_value_based
        if name in OF_REPLAY:
            return not self.learner.is_on_policy
        return True


METHODS = {
    Method.IQL: MethodEntry(
        "independent recurrent Q-learning: everybody for themselves", IQL, weights_by_world=True
    ),
    Method.ADHOC_TD: MethodEntry(
        "IQL whose agents advise each other on their best action, within a budget",
        IQL, SharingKind.ADHOC_TD, weights_by_world=True,
    ),
    Method.CONS: MethodEntry(
        "IQL whose agents share their best and worst actions, and take them in with caution",
        IQL, SharingKind.CONS, weights_by_world=True,
    ),
    Method.I2Q: MethodEntry("independent Q-learning as if the others did their best from the next step on", I2Q),
    Method.SEQL: MethodEntry("IQL whose agents learn from everybody's episodes as well as their own", SEQL),
    Method.GA_COMM: MethodEntry(
        "actor-critic whose agents choose whom to listen to in every step", GAComm, epsilon=_policy_epsilon
    ),
    Method.MAVEN: MethodEntry("QMIX whose team commits itself to one of several strategies for an episode", MAVEN),
    Method.VDN: MethodEntry("one value of the team, the sum of the agents' own", VDN),
    Method.QMIX: MethodEntry("one value of the team, a monotonic mixture of the agents' own", QMIX),
}  # fmt: skip
