"""Ways to explore, by name."""

import enum

from consmarl.training.exploration import (
    EpsilonGreedy,
    EpsilonGreedyTogether,
    EpsilonSquared,
    EpsilonZGreedy,
    Exploration,
    SampledPolicy,
)


class ExplorationKind(enum.Enum):
    """Ways to explore."""

    EPSILON_GREEDY = "epsilon-greedy"
    EPSILON_GREEDY_TOGETHER = "epsilon-greedy-together"
    EPSILON_SQUARED = "epsilon-squared"
    EPSILON_Z_GREEDY = "epsilon-z-greedy"
    POLICY = "policy"


EXPLORATIONS: dict[ExplorationKind, Exploration] = {
    ExplorationKind.EPSILON_GREEDY: EpsilonGreedy(),
    ExplorationKind.EPSILON_GREEDY_TOGETHER: EpsilonGreedyTogether(),
    ExplorationKind.EPSILON_SQUARED: EpsilonSquared(),
    ExplorationKind.EPSILON_Z_GREEDY: EpsilonZGreedy(),
    ExplorationKind.POLICY: SampledPolicy(),
}
