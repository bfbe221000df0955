"""The methods by name: each has a learner and a sharing mechanism."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from consmarl.experiments.configuration.explorations import EXPLORATIONS
from consmarl.experiments.configuration.sharings import NOBODY, SHARINGS
from consmarl.learners.ga_comm import GAComm
from consmarl.learners.i2q import I2Q
from consmarl.learners.interface import AnyLearner, Learner, Scores
from consmarl.learners.iql import IQL
from consmarl.learners.maven import MAVEN
from consmarl.learners.qmix import QMIX
from consmarl.learners.seql import SEQL
from consmarl.learners.vdn import VDN
from consmarl.options import OptionField, Options, check_options, joined, option_names
from consmarl.registry import Registry, check_record, home_of
from consmarl.training.exploration import LinearSchedule

# Settings of learning from replay, named as in the training loop; methods without replay have none of them.
OF_LOOP = (
    "batch_episodes",
    "updates_per_episode",
    "replay_episodes",
    "warmup_steps",
    "mirror_episodes",
    "coverage_bonus",
)
OF_REPLAY = (*OF_LOOP, "coverage_after")
# Settings of learners that are also settings of a run, under the same names; a learner may lack some of them.
COMMON = ("hidden_size", "discount", "target_every_updates", "bootstrap_time_limit", "weights", "reward_of")
_NO_OPTIONS = ("spec", "optimiser", *COMMON)


def paper_epsilon(episode_limit: int) -> LinearSchedule:
    """Return the paper's schedule: from 1 to 0.05 in 50,000 steps, whatever the length of episodes."""
    del episode_limit
    return LinearSchedule(1.0, 0.05, 50_000)


def _policy_epsilon(episode_limit: int) -> LinearSchedule:
    """Return the schedule in the authors' code: from 0.5 to 0.02, by 0.00064 per episode."""
    return LinearSchedule(0.5, 0.02, 750 * episode_limit)


@dataclass(frozen=True)
class MethodEntry:
    """A registered method."""

    summary: str
    learner: type[AnyLearner]
    sharing: str = NOBODY
    weights_by_world: bool = False  # whether the environment, not the learner, decides if agents share weights
    epsilon: Callable[[int], LinearSchedule] = paper_epsilon  # given the environment's step limit

    @property
    def is_value_based(self) -> bool:
        """Whether agents have action values, which exploration and advice rely on."""
        return self.learner.scores is Scores.VALUES

    def has(self, name: str) -> bool:
        """Return whether the learner has a setting of this name."""
        return name in option_names(self.learner)

    def has_setting(self, name: str, sharing: str, exploration: str | None = None) -> bool:
        """Return whether a run's setting applies to this method with this sharing and exploration."""
        group, _, option = name.rpartition(".")
        if group == "share":
            return SHARINGS[sharing].has(option)
        if group == "explore":
            return exploration is None or option in EXPLORATIONS[exploration].options
        if group == "learn" or name in ("weights", "reward_of"):
            return self.has(option)
        if name in ("sharing", "exploration"):
            return self.is_value_based
        if name in OF_REPLAY:
            return not self.learner.is_on_policy
        return True


METHODS: Registry[MethodEntry] = Registry("method")


def register_method(
    name: str,
    learner: type[AnyLearner],
    summary: str = "",
    *,
    sharing: str = NOBODY,
    weights_by_world: bool = False,
    epsilon: Callable[[int], LinearSchedule] = paper_epsilon,
) -> None:
    """Register a learner as a method, for use on the command line and in configurations, sweeps and reports.

    `learner` is a frozen dataclass derived from `learners.interface.Learner`; most derive from `TDLearner` or `IQL`.
    Fields that other methods do not have become options `--learn.NAME`, described by the strings below them. `sharing`
    names the sharing mechanism that goes with the method. `epsilon` returns the exploration schedule for episodes of at
    most a given number of steps.
    """
    what = f"the learner of method {name!r}"
    check_record(what, learner, Learner)
    check_options(what, learner, _NO_OPTIONS)
    if sharing not in SHARINGS:
        SHARINGS.find(sharing)
    joined({each: entry.learner for each, entry in METHODS.items() if each != name} | {name: learner}, _NO_OPTIONS)
    METHODS.add(name, MethodEntry(summary, learner, sharing, weights_by_world, epsilon), home_of(learner))


class LearnOptions(Options):
    """Options of methods that override the defaults of preset and method."""

    group = "learn"

    @classmethod
    def known(cls) -> Mapping[str, OptionField]:
        """Return the options of all methods."""
        return joined({name: entry.learner for name, entry in METHODS.items()}, _NO_OPTIONS)


def owners_of(option: str) -> list[str]:
    """Return the methods that have an option."""
    return [name for name, entry in METHODS.items() if entry.has(option)]


register_method("iql", IQL, "independent recurrent Q-learning: each agent learns on its own", weights_by_world=True)
register_method(
    "adhoc-td",
    IQL,
    "IQL whose agents advise each other on their best action, within a budget",
    sharing="adhoc-td",
    weights_by_world=True,
)
register_method(
    "cons",
    IQL,
    "IQL whose agents share their best and worst actions, and weigh them with caution",
    sharing="cons",
    weights_by_world=True,
)
register_method("i2q", I2Q, "independent Q-learning that assumes the others act optimally from the next step on")
register_method("seql", SEQL, "IQL whose agents also learn from their teammates' experience")
register_method(
    "ga-comm", GAComm, "actor-critic whose agents choose whom to listen to in every step", epsilon=_policy_epsilon
)
register_method("maven", MAVEN, "QMIX whose team commits to one of several strategies for an episode")
register_method("vdn", VDN, "one team value, the sum of the agents' values")
register_method("qmix", QMIX, "one team value, a monotonic mixture of the agents' values")
