"""Declarations of metrics: the code that computes a number declares its title, unit and so on, for reports to use.

Environments declare their counters, learners the statistics of an update, sharing mechanisms their traffic, and the
training loop the rest. A run stores all declarations in its facts. An undeclared number is still shown, under a title
derived from its name.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from consmarl.errors import UsageError, shown
from consmarl.records import defaults_of, settle

EVALUATION, TRAINING, LEARNING, SHARING = "Greedy evaluation", "Training", "Learning", "Sharing"
FAMILIES = (EVALUATION, TRAINING, LEARNING, SHARING)  # in display order
EVALUATED = "evaluation_"  # prefix of the names of metrics from greedy episodes
# Bookkeeping columns of rows and results, which are not metrics.
BOOKKEEPING = frozenset({"episode", "env_steps", "seconds", "episodes_evaluated", "return_error"})


@dataclass(frozen=True)
class Metric:
    """A number that a run measures repeatedly, and how to present it."""

    name: str  # in rows and results
    title: str = ""  # by default derived from the name
    family: str = TRAINING
    unit: str = ""
    more_is_better: bool | None = None  # None if neither is better
    part_of: str | None = None  # a less informative total, hidden if its parts are shown
    most: float | None = None  # the maximum per episode, so that values can be shown as a share of it
    by_agent: bool = False  # a list with one number per agent

    def __post_init__(self) -> None:
        """Convert values to their types, and check them."""
        settle(self)
        object.__setattr__(self, "title", self.title or self.name.replace("_", " ").capitalize())
        if self.most is not None and not 0 < self.most < float("inf"):
            raise UsageError(f"most must be above 0 and finite for {self.name}, not {self.most}.")
        if self.part_of == self.name:
            raise UsageError(f"{self.name} cannot be part of itself: name the total that it is part of.")


def place_of(family: str) -> int:
    """Return a family's position in display order; unknown families come last."""
    return FAMILIES.index(family) if family in FAMILIES else len(FAMILIES)


def derived(name: str) -> Metric:
    """Return the declaration that an undeclared metric gets: title and family follow from its name."""
    is_learned = name == "loss" or name.endswith(("_loss", "_norm", "_error"))
    return Metric(name, family=LEARNING if is_learned else TRAINING)


RETURN = Metric("return", unit="reward", more_is_better=True)
AGENT_RETURNS = Metric("agent_returns", "Each agent's return", unit="reward", more_is_better=True, by_agent=True)
EPISODE_STEPS = Metric("episode_steps", "Steps per episode", unit="steps")
EPSILON = Metric("epsilon", "ε", LEARNING, unit="probability")
OF_EPISODES = (RETURN, AGENT_RETURNS, EPISODE_STEPS)

# Statistics of an update that most learners report.
LOSS = Metric("loss", family=LEARNING, more_is_better=False)
TD_ERROR = Metric("td_error", "TD error", LEARNING, unit="reward", more_is_better=False)
Q_VALUE = Metric("q_value", "Q-value", LEARNING, unit="reward")
GRADIENT_NORM = Metric("gradient_norm", family=LEARNING)


@dataclass(frozen=True)
class Schema:
    """The metrics of one or several runs in display order; if a name occurs twice, its first declaration counts."""

    metrics: tuple[Metric, ...] = ()

    @cached_property
    def _declared(self) -> dict[str, Metric]:
        return {each.name: each for each in reversed(self.metrics)}

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(dict.fromkeys(each.name for each in self.metrics))}

    @property
    def numbers(self) -> frozenset[str]:
        """Names of single numbers in rows and results."""
        return BOOKKEEPING | {name for name, each in self._declared.items() if not each.by_agent}

    def __getitem__(self, name: str) -> Metric:
        """Return a metric by its name in rows; for an undeclared one, see `derived`."""
        bare = name.removeprefix(EVALUATED)
        found = self._declared.get(bare) or derived(bare)
        return found if bare == name else dataclasses.replace(found, name=name, family=EVALUATION)

    def in_order(self, names: Iterable[str]) -> list[Metric]:
        """Return these metrics sorted by family, declared ones first, without totals whose parts are among them."""
        there = set(names)
        return sorted((self[name] for name in there if not self._is_told_in_parts(name, there)), key=self._place)

    def counters(self, names: Iterable[str]) -> list[Metric]:
        """Return those of a result's metrics that are counters of the environment, in display order."""
        others = BOOKKEEPING | {each.name for each in OF_EPISODES}
        others |= {name for name, each in self._declared.items() if each.family in (LEARNING, SHARING)}
        return self.in_order(set(names) - others)

    def _place(self, metric: Metric) -> tuple[int, str, int, str]:
        place = self._places.get(metric.name.removeprefix(EVALUATED), len(self._places))
        return place_of(metric.family), metric.family, place, metric.name

    def _is_told_in_parts(self, name: str, there: set[str]) -> bool:
        bare = name.removeprefix(EVALUATED)
        prefix = name.removesuffix(bare)
        return any(each.part_of == bare and prefix + each.name in there for each in self.metrics)


def joined(schemas: Iterable[Schema]) -> Schema:
    """Return one schema with the metrics of several."""
    return Schema(tuple(each for schema in dict.fromkeys(schemas) for each in schema.metrics))


def declared_once(metrics: Iterable[Metric]) -> Schema:
    """Return the schema of one run; duplicate names are an error, since a row has one value per name."""
    schema = Schema(tuple(metrics))
    taken = set(BOOKKEEPING)
    for name in (each.name for each in schema.metrics):
        if name in taken or name.startswith(EVALUATED):
            raise UsageError(f"rows of metrics use the name {shown(name)} for something else: choose another one.")
        taken.add(name)
    return schema


def to_json(schema: Schema) -> list[dict[str, Any]]:
    """Return the declarations as JSON, omitting fields that have their default values."""
    defaults = defaults_of(Metric)
    return [
        {name: value for name, value in dataclasses.asdict(metric).items() if value != defaults[name]}
        for metric in schema.metrics
    ]


def from_json(declared: Sequence[Mapping[str, Any]]) -> Schema:
    """Return the declarations in JSON as a schema, ignoring fields added by later versions."""
    known = {each.name for each in dataclasses.fields(Metric)}
    for each in declared:
        if "name" not in each:
            raise UsageError("each must have a name.")
    return Schema(tuple(Metric(**{name: each[name] for name in known & each.keys()}) for each in declared))
