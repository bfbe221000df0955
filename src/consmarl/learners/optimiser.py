"""RMSprop as the paper's runs had it, with gradients clipped by their norm."""

from dataclasses import dataclass

import optax

from consmarl.records import settle


@dataclass(frozen=True)
class RMSprop:
    """Settings of the optimiser."""

    learning_rate: float = 5e-4
    decay: float = 0.99  # α
    epsilon: float = 1e-8
    max_gradient_norm: float = 10.0

    def __post_init__(self) -> None:
        """Bring what was given into its types."""
        settle(self)

    def transformation(self) -> optax.GradientTransformation:
        """Return it as an optax transformation: g/(√v + ε), ε outside the root as in PyTorch."""
        return optax.chain(
            optax.clip_by_global_norm(self.max_gradient_norm),
            optax.rmsprop(self.learning_rate, self.decay, self.epsilon, eps_in_sqrt=False),
        )
