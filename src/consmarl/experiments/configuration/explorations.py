"""The explorations by name, and their options."""

from collections.abc import Mapping
from dataclasses import dataclass

from consmarl.options import OptionField, Options, check_options, joined, option_names
from consmarl.registry import Registry, check_record, home_of
from consmarl.training.exploration import (
    EpsilonGreedy,
    EpsilonGreedyTogether,
    EpsilonSquared,
    EpsilonZGreedy,
    Exploration,
    SampledPolicy,
)


@dataclass(frozen=True)
class ExplorationEntry:
    """A registered exploration."""

    summary: str
    kind: type[Exploration]

    @property
    def options(self) -> list[str]:
        """The names of its options."""
        return option_names(self.kind)


EXPLORATIONS: Registry[ExplorationEntry] = Registry("exploration")


def register_exploration(name: str, kind: type[Exploration], summary: str = "") -> None:
    """Register an exploration under a name.

    `kind` is a frozen dataclass derived from `training.exploration.Exploration`; its fields become options
    `--explore.NAME`, described by the strings below them.
    """
    what = f"the exploration {name!r}"
    check_record(what, kind, Exploration)
    check_options(what, kind)
    joined({each: entry.kind for each, entry in EXPLORATIONS.items() if each != name} | {name: kind})
    EXPLORATIONS.add(name, ExplorationEntry(summary, kind), home_of(kind))


class ExploreOptions(Options):
    """Options of explorations that override the defaults."""

    group = "explore"

    @classmethod
    def known(cls) -> Mapping[str, OptionField]:
        """Return the options of all explorations."""
        return joined({name: entry.kind for name, entry in EXPLORATIONS.items()})


register_exploration("epsilon-greedy", EpsilonGreedy, "with probability epsilon a random action")
register_exploration("epsilon-greedy-together", EpsilonGreedyTogether, "the same, with agents often exploring as one")
register_exploration("epsilon-squared", EpsilonSquared, "with probability epsilon squared a random action")
register_exploration("epsilon-z-greedy", EpsilonZGreedy, "random actions that are repeated for a random time")
register_exploration("policy", SampledPolicy, "actions drawn from a policy, for methods that learn one")
