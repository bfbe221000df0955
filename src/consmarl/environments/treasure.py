"""Find the Treasure (FT): it takes two agents to open a box, and one of the red boxes holds the treasure.

Opening costs the team at once, so searching looks bad until the treasure is found. Every yellow box holds a coin;
one red box holds the treasure. Pick-ups are processed before openings, so an item cannot be taken in the step that
uncovers it. Green boxes (FT-multi) are a second set like the red ones, with their own treasure.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from consmarl.environments import validation
from consmarl.environments.counted import treasure_metrics
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
from consmarl.metrics import Metric

OPEN, PICK = 5, 6
KINDS = ("yellow", "red", "green")
BOX_CODES = {"yellow": 2, "red": 4, "green": 3}  # quarters
COIN_CODE, TREASURE_CODE = 1, 2  # halves


class TreasureLayout(NamedTuple):
    """Initial positions: cells [thing, (row, column)], and which boxes hold the treasures."""

    agents: jax.Array
    yellow: jax.Array
    red: jax.Array
    green: jax.Array
    treasure: jax.Array  # int32, index into red
    green_treasure: jax.Array  # int32, index into green


class TreasureState(NamedTuple):
    """The state at one step of an episode; boxes are in the order yellow, red, green."""

    agents: jax.Array  # int32 [agent, 2]
    boxes: jax.Array  # int32 [box, 2]
    has_item: jax.Array  # bool [box], whether it held an item at the start
    opened: jax.Array  # bool [box]
    taken: jax.Array  # bool [box]
    num_steps: jax.Array  # int32


@dataclass(frozen=True, kw_only=True)
class FindTreasure(WalkerWorld[TreasureLayout, TreasureState]):
    """The FT environments; the defaults are FT. Rewards and costs of boxes are the team's, split evenly."""

    grid: tuple[int, int] = (8, 8)
    num_agents: int = 4
    view: tuple[int, int] = (5, 5)
    episode_limit: int = 50  # L, steps
    num_yellow: int = 3
    num_red: int = 6
    num_green: int = 0
    openers_needed: int = 2  # agents that must open a box in the same step
    coin_reward: float = 2.0
    treasure_reward: float = 15.0
    yellow_cost: float = 1.0
    red_cost: float = 2.0
    green_cost: float = 2.0
    step_cost: float = 0.01  # per agent

    action_names: ClassVar[tuple[str, ...]] = (*WALK_NAMES, "open", "pick")  # type: ignore[misc]
    channel_names: ClassVar[tuple[str, str, str]] = ("agents", "closed boxes", "items")
    channel_scales: ClassVar[tuple[float, float]] = (0.25, 0.5)  # a closed box; an uncovered item
    channel_limits: ClassVar[tuple[int, int]] = (max(BOX_CODES.values()), TREASURE_CODE)
    family = "Find the Treasure"
    acts_as_one = True
    painter = "consmarl.environments.draw.treasure:TreasurePainter"
    presets = {  # noqa: RUF012  # never modified
        "paper": {"share.weight_shape": 0.3},
        "release": {"share.weight_shape": 0.7},
        "recommended": {
            "share.weight_shape": 0.3,
            # agents share one network, so a teacher that expects slightly more knows no more: only its id differs
            "share.hope_margin": 0.5,
            "mirror_episodes": True,
            "learn.trace_tolerance": 1.0,
            "exploration": "epsilon-greedy-together",
            "epsilon_anneal_steps": 150_000,
            "epsilon_final": 0.01,
        },
    }

    def __post_init__(self) -> None:
        """Validate and normalise the settings."""
        super().__post_init__()
        for name, least in (("num_yellow", 0), ("num_red", 0), ("num_green", 0), ("openers_needed", 1)):
            self._settle(name, validation.whole_number(name, getattr(self, name), least=least))
        self._settle_numbers("coin_reward", "treasure_reward", "yellow_cost", "red_cost", "green_cost", "step_cost")
        boxes = {f"{kind} boxes": count for kind, count in self.box_counts.items()}
        validation.room_for(self.grid, {"agents": self.num_agents, **boxes})

    @property
    def box_counts(self) -> dict[str, int]:
        """Number of boxes of each kind."""
        return {"yellow": self.num_yellow, "red": self.num_red, "green": self.num_green}

    def _by_box(self, yellow: float, red: float, green: float) -> NDArray[np.float32]:
        """Return each kind's value repeated for each of its boxes."""
        return np.repeat([yellow, red, green], list(self.box_counts.values())).astype(np.float32)

    @cached_property
    def kind_of_box(self) -> tuple[str, ...]:
        """The kind of every box, in order."""
        return tuple(np.repeat(KINDS, list(self.box_counts.values())).tolist())

    def generate_layout(self, key: jax.Array) -> TreasureLayout:
        """Place everything on distinct cells, numbered from the top left, and hide the treasures."""
        key_cells, key_red, key_green = jax.random.split(key, 3)
        counts = [self.num_agents, *self.box_counts.values()]
        drawn = draw_distinct_cells(key_cells, self.grid, sum(counts))
        agents, yellow, red, green = (row_major(group, self.grid) for group in jnp.split(drawn, np.cumsum(counts)[:-1]))
        return TreasureLayout(
            agents=agents,
            yellow=yellow,
            red=red,
            green=green,
            treasure=jax.random.randint(key_red, (), 0, max(self.num_red, 1)),
            green_treasure=jax.random.randint(key_green, (), 0, max(self.num_green, 1)),
        )

    def layout_from(self, description: Mapping[str, Any]) -> TreasureLayout:
        """Validate a given start; agents may share cells, boxes may not.

        Entries for kinds of boxes that this environment lacks may be omitted.
        """
        unused: dict[str, Any] = {}
        for kind, holder in (("yellow", None), ("red", "treasure"), ("green", "green_treasure")):
            if self.box_counts[kind] == 0:
                unused |= {kind: []} | ({holder: 0} if holder else {})
        description = unused | dict(description)
        validation.known_keys("layout", description, TreasureLayout._fields)
        counts = {"agents": self.num_agents, **self.box_counts}
        cells = {name: validation.cells(name, description[name], counts[name], self.grid) for name in counts}
        validation.distinct({kind: cells[kind] for kind in KINDS})
        holders = {
            "treasure": validation.index_into("red", "treasure", description, self.num_red),
            "green_treasure": validation.index_into("green", "green_treasure", description, self.num_green),
        }
        return TreasureLayout(
            **{name: jnp.asarray(group) for name, group in cells.items()},
            **{name: jnp.asarray(index, jnp.int32) for name, index in holders.items()},
        )

    def begin(self, layout: TreasureLayout) -> TreasureState:
        """Return the initial state of an episode on this layout."""
        boxes = jnp.concatenate([layout.yellow, layout.red, layout.green])
        holds_treasure = [
            jnp.arange(self.num_red) == layout.treasure,
            jnp.arange(self.num_green) == layout.green_treasure,
        ]
        return TreasureState(
            agents=layout.agents,
            boxes=boxes,
            has_item=jnp.concatenate([jnp.ones(self.num_yellow, bool), *holds_treasure]),
            opened=jnp.zeros(len(boxes), bool),
            taken=jnp.zeros(len(boxes), bool),
            num_steps=jnp.zeros((), jnp.int32),
        )

    def advance(
        self,
        state: TreasureState,
        actions: jax.Array,
        draws: tuple[()],  # noqa: ARG002
    ) -> tuple[TreasureState, Outcome]:
        """Move all agents, then process pick-ups, then openings."""
        agents = walk(state.agents, actions, self.grid)
        at_box = same_cell(agents, state.boxes)
        num_picking = (at_box & (actions == PICK)[:, None]).sum(axis=0)
        num_opening = (at_box & (actions == OPEN)[:, None]).sum(axis=0)
        taken_now = self.item_is_visible(state) & (num_picking >= 1)
        opened_now = ~state.opened & (num_opening >= self.openers_needed)

        values = self._by_box(self.coin_reward, self.treasure_reward, self.treasure_reward)
        costs = self._by_box(self.yellow_cost, self.red_cost, self.green_cost)
        gain = (taken_now * values).sum() - (opened_now * costs).sum()
        state = state._replace(
            agents=agents,
            opened=state.opened | opened_now,
            taken=state.taken | taken_now,
            num_steps=state.num_steps + 1,
        )
        reward = (gain / self.num_agents - self.step_cost).astype(jnp.float32)
        return state, Outcome(
            rewards=jnp.broadcast_to(reward, (self.num_agents,)),
            terminated=jnp.zeros((), bool),  # the episode continues even when everything is found
            truncated=state.num_steps >= self.episode_limit,
        )

    def item_is_visible(self, state: TreasureState) -> jax.Array:
        """Return which boxes show an item that can be picked up: bool [box]."""
        return state.opened & state.has_item & ~state.taken

    def observe(self, state: TreasureState) -> jax.Array:
        """Return every agent's observation: closed boxes by colour, items once uncovered."""
        box_codes = jnp.asarray(self._by_box(*(BOX_CODES[kind] for kind in KINDS)))
        item_codes = jnp.asarray(self._by_box(COIN_CODE, TREASURE_CODE, TREASURE_CODE))
        closed = in_channel(jnp.where(state.opened, 0, box_codes), 1)
        items = in_channel(jnp.where(self.item_is_visible(state), item_codes, 0), 2)
        return self._codes(state.agents, state.num_steps, state.boxes, closed + items)

    def counters(self, state: TreasureState) -> Counters:
        """Return boxes opened and items taken, both for every box and summed by kind."""
        kinds = np.array(self.kind_of_box, dtype=object)
        summed = {f"{kind}_opened": state.opened[kinds == kind].sum() for kind in KINDS if kind in kinds}
        is_coin = kinds == "yellow"
        return Counters(
            per_agent={},
            team={
                "opened": state.opened.astype(jnp.int32),
                "items_taken": state.taken.astype(jnp.int32),
                **summed,
                "coins_taken": state.taken[is_coin].sum(),
                "treasures_taken": state.taken[~is_coin].sum(),
            },
        )

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Declarations of the counters: every yellow box holds a coin, and each of the other sets one treasure."""
        return treasure_metrics({kind: count for kind, count in self.box_counts.items() if count})
