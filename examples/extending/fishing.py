"""An environment of your own: agents fish in a lake, and two of them are needed to catch a large fish.

    consmarl --plugin examples/extending/fishing.py train --env fishing --episodes 4000
    consmarl --plugin examples/extending/fishing.py watch --env fishing

An environment is a frozen dataclass whose methods are pure functions on JAX arrays, so it runs in the compiled loop.
The values that `counters` returns appear in metrics, reports and TensorBoard.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import consmarl
from consmarl.environments.draw.painter import Painter
from consmarl.environments.grid import (
    WALK_NAMES,
    WalkerWorld,
    draw_distinct_cells,
    in_channel,
    row_major,
    same_cell,
    walk,
)
from consmarl.environments.interface import Counters, Outcome


class Lake(NamedTuple):
    """The initial positions of agents and fish."""

    agents: jax.Array  # int32 [agent, (row, column)]
    fish: jax.Array  # int32 [fish, (row, column)], the large ones first


class FishingState(NamedTuple):
    """The state of an episode."""

    agents: jax.Array
    fish: jax.Array
    is_caught: jax.Array  # bool [fish]
    num_caught: jax.Array  # int32 [agent], number of catches that each took part in
    num_steps: jax.Array


class FishingPainter(Painter):
    """Draws the fish; the base class draws agents and the panel beside the board."""

    def paint_board(self, canvas: Any, world: "Fishing", state: FishingState, cell_box: Any) -> None:
        """Draw the fish that are left, large ones larger."""
        for number in np.flatnonzero(~np.asarray(state.is_caught)):
            margin = 0.15 if number < world.num_large else 0.3
            box = cell_box(*np.asarray(state.fish)[number])
            canvas.disc(box.part(margin, margin + 0.1, 1 - margin, 0.9 - margin), (74, 144, 194), (30, 80, 120))


@dataclass(frozen=True, kw_only=True)
class Fishing(WalkerWorld[Lake, FishingState]):
    """Fish do not move; an agent on a fish's cell catches it, but a large one only together with another agent."""

    grid: tuple[int, int] = (6, 6)
    num_agents: int = 3
    view: tuple[int, int] = (3, 3)
    episode_limit: int = 25
    num_large: int = 2
    num_small: int = 4
    large_reward: float = 4.0  # to each agent that catches it
    small_reward: float = 1.0
    step_cost: float = 0.05

    action_names: ClassVar[tuple[str, ...]] = WALK_NAMES  # type: ignore[misc]
    channel_names: ClassVar[tuple[str, str, str]] = ("agents", "large fish", "small fish")
    channel_scales: ClassVar[tuple[float, float]] = (1.0, 1.0)
    channel_limits: ClassVar[tuple[int, int]] = (1, 1)
    family = "Fishing"
    painter = FishingPainter
    presets: ClassVar[dict[str, Any]] = {"recommended": {"mirror_episodes": True}}  # type: ignore[misc]

    @property
    def is_large(self) -> jax.Array:
        """Which of the fish are large: bool [fish]."""
        return jnp.arange(self.num_large + self.num_small) < self.num_large

    def generate_layout(self, key: jax.Array) -> Lake:
        """Place agents and fish on distinct random cells."""
        drawn = draw_distinct_cells(key, self.grid, self.num_agents + self.num_large + self.num_small)
        agents, large, small = jnp.split(drawn, [self.num_agents, self.num_agents + self.num_large])
        fish = jnp.concatenate([row_major(large, self.grid), row_major(small, self.grid)])
        return Lake(row_major(agents, self.grid), fish)

    def begin(self, layout: Lake) -> FishingState:
        """Return the initial state, in which no fish is caught."""
        nobody = jnp.zeros(self.num_agents, jnp.int32)
        return FishingState(*layout, jnp.zeros(len(layout.fish), bool), nobody, jnp.zeros((), jnp.int32))

    def advance(self, state: FishingState, actions: jax.Array, draws: tuple[()]) -> tuple[FishingState, Outcome]:
        """Move all agents, then catch fish and compute rewards."""
        del draws
        agents = walk(state.agents, actions, self.grid)
        is_there = same_cell(agents, state.fish) & ~state.is_caught[None, :]  # [agent, fish]
        is_caught = is_there.sum(axis=0) >= jnp.where(self.is_large, 2, 1)
        catches = is_there & is_caught[None, :]
        worth = jnp.where(self.is_large, self.large_reward, self.small_reward)
        state = FishingState(
            agents,
            state.fish,
            state.is_caught | is_caught,
            state.num_caught + catches.sum(axis=1),
            state.num_steps + 1,
        )
        rewards = (catches * worth[None, :]).sum(axis=1) - self.step_cost
        return state, Outcome(rewards.astype(jnp.float32), state.is_caught.all(), state.num_steps >= self.episode_limit)

    def observe(self, state: FishingState) -> jax.Array:
        """Return each agent's position, the time, and the contents of its window."""
        left = ~state.is_caught
        packed = in_channel(left & self.is_large, 1) + in_channel(left & ~self.is_large, 2)
        return self._codes(state.agents, state.num_steps, state.fish, packed)

    def counters(self, state: FishingState) -> Counters:
        """Return the number of catches of every agent, and of large fish caught by the team."""
        large = (state.is_caught & self.is_large).sum()
        return Counters(per_agent={"fish_caught": state.num_caught}, team={"large_fish_caught": large})


consmarl.register_world("fishing", Fishing, "Fishing: 3 agents, large fish are caught by two together")
consmarl.register_world("fishing-large", Fishing, "Fishing for large fish alone", num_large=4, num_small=0)
