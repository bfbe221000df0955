"""Optimisers by name, each with gradient-norm clipping and a learning rate that may decrease over a run."""

import abc
import dataclasses
import enum
from dataclasses import dataclass
from typing import Any

import optax

from consmarl.records import settle


@dataclass(frozen=True)
class Optimiser(abc.ABC):
    """Settings shared by all optimisers."""

    learning_rate: float = 5e-4
    max_gradient_norm: float = 10.0
    final_share: float = 1.0  # the learning rate decreases linearly to this share of it over `anneal_updates`
    anneal_updates: int = 1

    def __post_init__(self) -> None:
        """Convert values to their types."""
        settle(self)

    def transformation(self) -> optax.GradientTransformation:
        """Return the optimiser as an optax transformation, with gradient clipping."""
        return optax.chain(optax.clip_by_global_norm(self.max_gradient_norm), self.rule(self._rate()))

    @abc.abstractmethod
    def rule(self, rate: Any) -> optax.GradientTransformation:
        """Return the update rule for clipped gradients, with a constant or scheduled learning rate."""

    def _rate(self) -> Any:
        if self.final_share == 1:
            return self.learning_rate
        return optax.linear_schedule(self.learning_rate, self.final_share * self.learning_rate, self.anneal_updates)


@dataclass(frozen=True)
class RMSprop(Optimiser):
    """RMSprop as in the paper's runs: g/(√v + ε), with ε outside the root as in PyTorch."""

    decay: float = 0.99  # α
    epsilon: float = 1e-8

    def rule(self, rate: Any) -> optax.GradientTransformation:
        """Return optax's RMSprop."""
        return optax.rmsprop(rate, self.decay, self.epsilon, eps_in_sqrt=False)


@dataclass(frozen=True)
class Adam(Optimiser):
    """Adam with its usual settings."""

    def rule(self, rate: Any) -> optax.GradientTransformation:
        """Return optax's Adam."""
        return optax.adam(rate)


class OptimiserKind(enum.Enum):
    """Optimisers by name."""

    RMSPROP = "rmsprop"
    ADAM = "adam"

    @classmethod
    def of(cls, optimiser: Optimiser) -> "OptimiserKind":
        """Return the kind of an optimiser."""
        return next(kind for kind, built in _BUILT.items() if type(optimiser) is built)

    def like(self, other: Optimiser, **changes: Any) -> Optimiser:
        """Return an optimiser of this kind with the settings it shares with another, except for `changes`."""
        kind = _BUILT[self]
        there, known = vars(other), {each.name for each in dataclasses.fields(kind)}
        return kind(**{name: value for name, value in (there | changes).items() if name in known})


_BUILT: dict[OptimiserKind, type[Optimiser]] = {OptimiserKind.RMSPROP: RMSprop, OptimiserKind.ADAM: Adam}
