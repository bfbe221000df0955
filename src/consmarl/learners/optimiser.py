"""Optimisers by name, each with gradients clipped by their norm, and a learning rate that may fall over a run."""

import abc
from dataclasses import dataclass
from typing import Any

import optax

from consmarl.records import settle


@dataclass(frozen=True)
class Optimiser(abc.ABC):
    """Settings that all optimisers have."""

    learning_rate: float = 5e-4
    max_gradient_norm: float = 10.0
    final_learning_rate: float | None = None  # reached in equal parts after `anneal_updates`; None: it stays as it is
    anneal_updates: int = 0

    def __post_init__(self) -> None:
        """Bring what was given into its types."""
        settle(self)

    def transformation(self) -> optax.GradientTransformation:
        """Return it as an optax transformation."""
        return optax.chain(optax.clip_by_global_norm(self.max_gradient_norm), self.rule(self._rate()))

    @abc.abstractmethod
    def rule(self, rate: Any) -> optax.GradientTransformation:
        """Return what makes a step of a clipped gradient, at a learning rate that is a number or a schedule."""

    def _rate(self) -> Any:
        if self.final_learning_rate is None:
            return self.learning_rate
        return optax.linear_schedule(self.learning_rate, self.final_learning_rate, max(self.anneal_updates, 1))


@dataclass(frozen=True)
class RMSprop(Optimiser):
    """RMSprop as the paper's runs had it: g/(√v + ε), ε outside the root as in PyTorch."""

    decay: float = 0.99  # α
    epsilon: float = 1e-8

    def rule(self, rate: Any) -> optax.GradientTransformation:
        """Return optax's."""
        return optax.rmsprop(rate, self.decay, self.epsilon, eps_in_sqrt=False)


@dataclass(frozen=True)
class Adam(Optimiser):
    """Adam with its usual settings."""

    def rule(self, rate: Any) -> optax.GradientTransformation:
        """Return optax's."""
        return optax.adam(rate)
