"""Patient Gold Miner (PGM): gold pays off, but only after many costly steps; stones pay a little at once.

An agent on a mine pays for `mining_steps` steps (T_d) and gets its gold in the next one; the count is kept when
it leaves. On a pile it gets one stone per step until it has `stones_per_pile` (T_s). Every agent has its own gold in
every mine; a mine vanishes when all agents have theirs, a pile when no agent can take more.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from consmarl.environments import validation
from consmarl.environments.counted import gold_miner_metrics
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


class GoldMinerLayout(NamedTuple):
    """Initial positions: cells [thing, (row, column)]."""

    agents: jax.Array
    golds: jax.Array
    stones: jax.Array


class GoldMinerState(NamedTuple):
    """The state at one step of an episode."""

    agents: jax.Array  # int32 [agent, 2]
    golds: jax.Array  # int32 [mine, 2]
    stones: jax.Array  # int32 [pile, 2]
    steps_mined: jax.Array  # int32 [agent, mine], paid so far, at most T_d
    gold_mined: jax.Array  # bool [agent, mine]
    stones_taken: jax.Array  # int32 [agent, pile], at most T_s
    num_steps: jax.Array  # int32


@dataclass(frozen=True, kw_only=True)
class GoldMiner(WalkerWorld[GoldMinerLayout, GoldMinerState]):
    """The PGM environments; the defaults are PGM-6ag."""

    grid: tuple[int, int] = (12, 12)
    num_agents: int = 6
    view: tuple[int, int] = (5, 5)
    episode_limit: int = 50  # L, steps
    num_mines: int = 2  # N_g
    num_piles: int = 3  # N_p
    mining_steps: int = 10  # T_d, paid steps before the gold
    stones_per_pile: int = 10  # T_s, per agent
    gold_reward: float = 30.0  # R_g
    stone_reward: float = 0.3
    mining_cost: float = 1.0  # per step of mining
    step_cost: float = 0.2

    action_names: ClassVar[tuple[str, ...]] = WALK_NAMES  # type: ignore[misc]
    channel_names: ClassVar[tuple[str, str, str]] = ("agents", "mines", "piles")
    channel_scales: ClassVar[tuple[float, float]] = (1.0, 1.0)  # a mine; a pile
    channel_limits: ClassVar[tuple[int, int]] = (1, 1)
    family = "Patient Gold Miner"
    painter = "consmarl.environments.draw.gold_miner:GoldMinerPainter"
    presets = {  # noqa: RUF012  # never modified
        "recommended": {
            "mirror_episodes": True,
            "learn.trace_decay": 0.9,
            "learn.settle_after": 0.15,
            "learn.trace_tolerance": 0.5,
            "learn.footprints": True,
            "coverage_bonus": 0.3,
            "coverage_after": 0.15,
            "learning_rate_end": 1.0,
            "exploration": "epsilon-z-greedy",
            "epsilon_end": 0.02,
            "epsilon_final": 0.01,
            # mining takes many steps in a row: whoever has to be told how must not stop asking in between
            "share.ask_scale": 0.03,
            # newcomers ask only when they exploit, so long exploration would keep them from getting advice
            "if_taught.epsilon_anneal_steps": 5_000,
        },
    }

    def __post_init__(self) -> None:
        """Validate and normalise the settings."""
        super().__post_init__()
        for name, least in (("num_mines", 0), ("num_piles", 0), ("mining_steps", 0), ("stones_per_pile", 1)):
            self._settle(name, validation.whole_number(name, getattr(self, name), least=least))
        self._settle_numbers("gold_reward", "stone_reward", "mining_cost", "step_cost")
        validation.room_for(self.grid, {"agents": self.num_agents, "mines": self.num_mines, "piles": self.num_piles})

    def generate_layout(self, key: jax.Array) -> GoldMinerLayout:
        """Place everything on distinct cells; agents, mines and piles are numbered from the top left."""
        num_walkers, num_mines = self.num_agents, self.num_mines
        drawn = draw_distinct_cells(key, self.grid, num_walkers + num_mines + self.num_piles)
        agents, golds, stones = jnp.split(drawn, [num_walkers, num_walkers + num_mines])
        return GoldMinerLayout(*(row_major(group, self.grid) for group in (agents, golds, stones)))

    def layout_from(self, description: Mapping[str, Any]) -> GoldMinerLayout:
        """Validate a given start; agents may share cells, mines and piles may not."""
        counts = {"agents": self.num_agents, "golds": self.num_mines, "stones": self.num_piles}
        validation.known_keys("layout", description, counts)
        cells = {name: validation.cells(name, description[name], counts[name], self.grid) for name in counts}
        validation.distinct({name: cells[name] for name in ("golds", "stones")})
        return GoldMinerLayout(**{name: jnp.asarray(group) for name, group in cells.items()})

    def begin(self, layout: GoldMinerLayout) -> GoldMinerState:
        """Return the initial state of an episode on this layout."""
        mines, piles = (self.num_agents, self.num_mines), (self.num_agents, self.num_piles)
        return GoldMinerState(
            *layout,
            steps_mined=jnp.zeros(mines, jnp.int32),
            gold_mined=jnp.zeros(mines, bool),
            stones_taken=jnp.zeros(piles, jnp.int32),
            num_steps=jnp.zeros((), jnp.int32),
        )

    def advance(
        self,
        state: GoldMinerState,
        actions: jax.Array,
        draws: tuple[()],  # noqa: ARG002
    ) -> tuple[GoldMinerState, Outcome]:
        """Move all agents, then process mines and piles."""
        agents = walk(state.agents, actions, self.grid)
        on_mine = same_cell(agents, state.golds) & ~self.mine_is_gone(state)[None, :]
        pays = on_mine & (state.steps_mined < self.mining_steps)
        strikes_gold = on_mine & ~pays & ~state.gold_mined
        takes_stone = same_cell(agents, state.stones) & (state.stones_taken < self.stones_per_pile)

        state = state._replace(
            agents=agents,
            steps_mined=state.steps_mined + pays,
            gold_mined=state.gold_mined | strikes_gold,
            stones_taken=state.stones_taken + takes_stone,
            num_steps=state.num_steps + 1,
        )
        rewards = (
            self.gold_reward * strikes_gold.sum(axis=1)
            - self.mining_cost * pays.sum(axis=1)
            + self.stone_reward * takes_stone.sum(axis=1)
            - self.step_cost
        )
        return state, Outcome(
            rewards=rewards.astype(jnp.float32),
            # an environment without mines has nothing to finish
            terminated=self.mine_is_gone(state).all() if self.num_mines else jnp.zeros((), bool),
            truncated=state.num_steps >= self.episode_limit,
        )

    def mine_is_gone(self, state: GoldMinerState) -> jax.Array:
        """Return which mines are gone, because all agents have their gold: bool [mine]."""
        return state.gold_mined.all(axis=0)

    def pile_is_gone(self, state: GoldMinerState) -> jax.Array:
        """Return which piles are gone, because no agent can take more: bool [pile]."""
        return (state.stones_taken >= self.stones_per_pile).all(axis=0)

    def observe(self, state: GoldMinerState) -> jax.Array:
        """Return every agent's observation; a mine stays visible to an agent that has its gold."""
        things = jnp.concatenate([state.golds, state.stones])
        packed = [in_channel(~self.mine_is_gone(state), 1), in_channel(~self.pile_is_gone(state), 2)]
        return self._codes(state.agents, state.num_steps, things, jnp.concatenate(packed))

    def counters(self, state: GoldMinerState) -> Counters:
        """Return every agent's gold by mine, and its stones by pile."""
        gold = state.gold_mined.astype(jnp.int32)
        return Counters(per_agent={"gold_mined": gold, "stones_taken": state.stones_taken}, team={})

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Declarations of the counters; every agent can get gold from every mine and stones from every pile."""
        num_stones = self.num_piles * self.stones_per_pile
        return gold_miner_metrics(self.num_agents * self.num_mines, self.num_agents * num_stones)
