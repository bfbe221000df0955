"""Cleanup: apples grow only while some agents keep the river clean, and only agents elsewhere can eat them.

One step: moves with collisions, eating, cleaning beams, then growth of apples and waste.
Every apple pays every agent. The start is always the same; randomness enters in each step.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from consmarl.environments import validation
from consmarl.environments.cleanup_map import CleanupMap, check_lines, generate_map, read_map
from consmarl.environments.collisions import resolve_moves
from consmarl.environments.counted import CLEANUP_METRICS
from consmarl.environments.grid import GridWorld, read_windows
from consmarl.environments.interface import Counters, Outcome
from consmarl.errors import UsageError
from consmarl.metrics import Metric
from consmarl.records import typed

LEFT, RIGHT, UP, DOWN, STAY, CLEAN = range(6)

# Contents of a cell, as an index into the colours below; agent i is FIRST_AGENT + i.
EMPTY, WALL, APPLE, WASTE, RIVER, BEAM, FIRST_AGENT = range(7)
CELL_COLOURS = ((0, 0, 0), (180, 180, 180), (0, 255, 0), (113, 75, 24), (99, 156, 194), (100, 255, 255))
AGENT_COLOURS = ((159, 67, 255), (2, 81, 154), (204, 0, 204), (216, 30, 54))  # from the authors' release


class WasteRule(enum.Enum):
    """How `waste_probability` is applied in a step in which waste can appear."""

    PER_CELL = "per-cell"  # the release: tries each clean river cell until one is fouled, so one nearly always is
    PER_STEP = "per-step"  # the paper's wording: one new waste cell with that probability


class CleanupLayout(NamedTuple):
    """The starting positions of an episode."""

    agents: jax.Array  # int32 [agent, 2]


class CleanupState(NamedTuple):
    """The state at one step of an episode."""

    agents: jax.Array  # int32 [agent, 2]
    waste: jax.Array  # bool [row, column]
    apples: jax.Array  # bool [row, column]
    beams: jax.Array  # bool [row, column], fired in the last step
    apples_eaten: jax.Array  # int32 [agent]
    waste_cleaned: jax.Array  # int32 [agent]
    num_steps: jax.Array  # int32


class CleanupDraws(NamedTuple):
    """The random numbers of one step, all uniform in [0, 1)."""

    move_priority: jax.Array  # float32 [agent], the smallest enters a contested cell
    apple_chance: jax.Array  # float32 [field], an apple grows where it is below the probability
    waste_chance: jax.Array  # float32, waste appears if it is below the probability
    waste_priority: jax.Array  # float32 [river], waste appears on the clean cell with the smallest


@dataclass(frozen=True, kw_only=True)
class Cleanup(GridWorld[CleanupLayout, CleanupState, CleanupDraws]):
    """The Cleanup environment; the defaults are the paper's."""

    grid: tuple[int, int] = (10, 10)  # including walls
    num_agents: int = 4
    view: tuple[int, int] = (5, 5)
    episode_limit: int = 50  # L, steps
    map: tuple[str, ...] = ()  # see cleanup_map; empty: generated from the published pattern for this grid
    beam_length: int = 3  # cells
    apple_reward: float = 1.0  # to every agent, for every apple that any agent eats
    apple_probability: float = 0.3  # of each field cell in a step, while the river is clean
    waste_probability: float = 0.5
    waste_rule: WasteRule = WasteRule.PER_CELL
    waste_limit: float = 0.4  # fraction of the river at which neither apples nor waste appear any more

    action_names: ClassVar[tuple[str, ...]] = ("left", "right", "up", "down", "stay", "clean")  # type: ignore[misc]
    feature_names: ClassVar[tuple[str, ...]] = ()
    channel_names: ClassVar[tuple[str, str, str]] = ("red", "green", "blue")
    family = "Cleanup"
    painter = "consmarl.environments.draw.cleanup:CleanupPainter"
    presets = {  # noqa: RUF012  # never modified
        "paper": {"share.weight_shape": -0.5, "share.ask_scale": 0.01},
        "release": {"share.weight_shape": -0.5},
        "recommended": {"share.weight_shape": -0.5, "share.ask_scale": 0.01},
    }

    def __post_init__(self) -> None:
        """Validate and normalise the settings."""
        super().__post_init__()
        self._settle("beam_length", validation.whole_number("beam_length", self.beam_length, least=1))
        self._settle_numbers("apple_reward")
        for name in ("apple_probability", "waste_probability"):
            self._settle(name, validation.probability(name, getattr(self, name)))
        self._settle("waste_limit", validation.fraction("waste_limit", self.waste_limit))
        if self.waste_limit == 0:
            raise UsageError("waste_limit must be above 0: at 0 no apple could ever grow.")
        self._settle("waste_rule", typed("waste_rule", WasteRule, self.waste_rule))
        lines = check_lines(self.map) if self.map else generate_map(self.grid, self.num_agents)
        self._settle("map", lines)
        self._settle("grid", (len(lines), len(lines[0])))
        read_map(lines, self.num_agents)

    @cached_property
    def places(self) -> CleanupMap:
        """The parsed map."""
        return read_map(self.map, self.num_agents)

    @cached_property
    def river_cells(self) -> NDArray[np.intp]:
        """The cells where waste can be: [river, 2]."""
        return np.argwhere(self.places.is_river)

    @cached_property
    def field_cells(self) -> NDArray[np.intp]:
        """The cells where apples can grow: [field, 2]."""
        return np.argwhere(self.places.is_field)

    @cached_property
    def observation_scale(self) -> NDArray[np.float32]:
        """1/256 for every colour channel."""
        return np.full(self.view[0] * self.view[1] * 3, 1 / 256, np.float32)

    @cached_property
    def observation_limit(self) -> NDArray[np.int64]:
        """The largest value that each code can take."""
        return np.full(self.view[0] * self.view[1] * 3, 255, np.int64)

    def generate_layout(self, key: jax.Array) -> CleanupLayout:  # noqa: ARG002
        """Return the map's starts; nothing is random."""
        return CleanupLayout(jnp.asarray(self.places.starts))

    def layout_from(self, description: Mapping[str, Any]) -> CleanupLayout:
        """Validate a given start: one agent per cell, and none in a wall."""
        validation.known_keys("layout", description, CleanupLayout._fields)
        agents = validation.cells("agents", description["agents"], self.num_agents, self.grid)
        validation.distinct({f"agent {index}": agents[index : index + 1] for index in range(self.num_agents)})
        in_wall = [tuple(cell.tolist()) for cell in agents if self.places.is_wall[tuple(cell)]]
        if in_wall:
            raise UsageError(f"layout 'agents' has {in_wall[0]} inside a wall: agents start on open ground.")
        return CleanupLayout(jnp.asarray(agents))

    def begin(self, layout: CleanupLayout) -> CleanupState:
        """Return the first state of an episode: no apples yet, waste as on the map."""
        nothing = jnp.zeros(self.grid, bool)
        return CleanupState(
            agents=layout.agents,
            waste=jnp.asarray(self.places.is_waste),
            apples=nothing,
            beams=nothing,
            apples_eaten=jnp.zeros(self.num_agents, jnp.int32),
            waste_cleaned=jnp.zeros(self.num_agents, jnp.int32),
            num_steps=jnp.zeros((), jnp.int32),
        )

    def draw(self, key: jax.Array) -> CleanupDraws:
        """Draw the random numbers of one step."""
        sizes = (self.num_agents, len(self.field_cells), 1, len(self.river_cells))
        chances = jax.random.uniform(key, (sum(sizes),))
        priority, apple, waste, place = jnp.split(chances, np.cumsum(sizes)[:-1])
        return CleanupDraws(priority, apple, waste[0], place)

    def draws_from(self, recording: Mapping[str, Any]) -> CleanupDraws:
        """Convert a recorded episode to its random numbers.

        `order` [step, agent] lists the agents by priority, padded with −1; `spawned` [step, row, column] has 4 where an
        apple and 3 where waste appeared at the end of the step. Both have `episode_limit` rows; an additional first row
        of `spawned`, from the reset, is ignored.
        """
        validation.known_keys("draws", recording, ("order", "spawned"))
        order, spawned = (np.asarray(recording[name]) for name in ("order", "spawned"))
        steps = self.episode_limit
        if spawned.shape[:1] == (steps + 1,):
            spawned = spawned[1:]
        if order.shape != (steps, self.num_agents) or spawned.shape != (steps, *self.grid):
            raise UsageError(
                f"draws must have 'order' of shape {(steps, self.num_agents)} and 'spawned' of shape "
                f"{(steps, *self.grid)}, not {order.shape} and {spawned.shape}."
            )
        never, at_once = 1.0, 0.0
        is_rank_of = order[:, :, None] == np.arange(self.num_agents)  # [step, rank, agent]
        priority = np.where(is_rank_of.any(axis=1), is_rank_of.argmax(axis=1), self.num_agents)
        grown = spawned[:, *self.field_cells.T] == 4
        fouled = spawned[:, *self.river_cells.T] == 3
        return CleanupDraws(
            move_priority=jnp.asarray(priority, jnp.float32),
            apple_chance=jnp.asarray(np.where(grown, at_once, never), jnp.float32),
            waste_chance=jnp.asarray(np.where(fouled.any(axis=1), at_once, never), jnp.float32),
            waste_priority=jnp.asarray(np.where(fouled, at_once, never), jnp.float32),
        )

    def advance(self, state: CleanupState, actions: jax.Array, draws: CleanupDraws) -> tuple[CleanupState, Outcome]:
        """Move agents, eat apples, fire beams, then grow apples and waste."""
        agents = self._move(state.agents, actions, draws.move_priority)
        rows, columns = agents.T
        eats = state.apples[rows, columns]
        apples = state.apples.at[rows, columns].set(False)
        waste, beams, num_cleaned = self._clean(agents, actions == CLEAN, state.waste)
        apples = self._grow_apples(apples, agents, self.apple_growth(waste), draws.apple_chance)
        state = CleanupState(
            agents=agents,
            waste=self._spread_waste(waste, draws),
            apples=apples,
            beams=beams,
            apples_eaten=state.apples_eaten + eats,
            waste_cleaned=state.waste_cleaned + num_cleaned,
            num_steps=state.num_steps + 1,
        )
        reward = self.apple_reward * eats.sum().astype(jnp.float32)
        return state, Outcome(
            rewards=jnp.broadcast_to(reward, (self.num_agents,)),
            terminated=jnp.zeros((), bool),
            truncated=state.num_steps >= self.episode_limit,
        )

    def _move(self, agents: jax.Array, actions: jax.Array, priority: jax.Array) -> jax.Array:
        down = (actions == DOWN).astype(jnp.int32) - (actions == UP)
        right = (actions == RIGHT).astype(jnp.int32) - (actions == LEFT)
        wanted = agents + jnp.stack([down, right], axis=-1)
        hits_wall = jnp.asarray(self.places.is_wall)[wanted[:, 0], wanted[:, 1]]
        wanted = jnp.where(hits_wall[:, None], agents, wanted)
        width = self.grid[1]
        cells, targets = (group[:, 0] * width + group[:, 1] for group in (agents, wanted))
        cells = resolve_moves(cells, targets, actions != CLEAN, priority)
        return jnp.stack([cells // width, cells % width], axis=-1)

    def _clean(self, agents: jax.Array, fires: jax.Array, waste: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Fire the beams; return the remaining waste, the beams, and the number of cells each agent cleaned.

        Firing all beams at once gives the same result as firing them one by one: beams go straight up and stop at an
        agent, so no cell is ever reached by two.
        """
        ahead = jnp.arange(1, self.beam_length + 1)
        rows = jnp.maximum(agents[:, :1] - ahead[None, :], 0)  # [agent, distance]; row 0 is wall, which stops beams
        columns = jnp.broadcast_to(agents[:, 1:], rows.shape)
        has_waste, is_wall = waste[rows, columns], jnp.asarray(self.places.is_wall)[rows, columns]
        stops_beyond = self._occupied(agents)[rows, columns] | has_waste
        comes_through = jnp.concatenate([fires[:, None], ~stops_beyond[:, :-1]], axis=1)
        is_reached = jnp.cumprod(comes_through & ~is_wall, axis=1).astype(bool)
        cleans = is_reached & has_waste
        beams = jnp.zeros(self.grid, bool).at[rows, columns].max(is_reached)
        return waste.at[rows, columns].min(~cleans), beams, cleans.sum(axis=1)

    def _occupied(self, agents: jax.Array) -> jax.Array:
        return jnp.zeros(self.grid, bool).at[agents[:, 0], agents[:, 1]].set(True)

    def apple_growth(self, waste: jax.Array) -> jax.Array:
        """Return the probability that a field cell grows an apple; it decreases linearly with the share of waste."""
        share = waste.sum() / len(self.river_cells)
        return jnp.maximum(self.apple_probability * (1 - share / self.waste_limit), 0.0)

    def waste_growth(self, waste: jax.Array) -> jax.Array:
        """Return the probability that one more cell of the river is fouled."""
        num_clean = len(self.river_cells) - waste.sum()
        probability = jnp.asarray(self.waste_probability)
        if self.waste_rule is WasteRule.PER_CELL:
            probability = 1 - (1 - probability) ** num_clean
        is_covered = waste.sum() / len(self.river_cells) >= self.waste_limit
        return jnp.where(is_covered, 0.0, probability)

    def _grow_apples(self, apples: jax.Array, agents: jax.Array, growth: jax.Array, chance: jax.Array) -> jax.Array:
        rows, columns = self.field_cells.T
        grows = (chance < growth) & ~self._occupied(agents)[rows, columns]
        return apples.at[rows, columns].max(grows)

    def _spread_waste(self, waste: jax.Array, draws: CleanupDraws) -> jax.Array:
        rows, columns = self.river_cells.T
        place = jnp.argmin(jnp.where(waste[rows, columns], jnp.inf, draws.waste_priority))
        is_fouled = draws.waste_chance < self.waste_growth(waste)
        fouled = (jnp.arange(len(rows)) == place) & is_fouled
        return waste.at[rows, columns].max(fouled)

    def cell_codes(self, state: CleanupState) -> jax.Array:
        """Return the code of every cell, with agents and beams on top: int32 [row, column]."""
        ground = np.select([self.places.is_wall, self.places.is_river], [WALL, RIVER], EMPTY)
        codes = jnp.where(state.apples, APPLE, jnp.where(state.waste, WASTE, jnp.asarray(ground)))
        numbers = FIRST_AGENT + jnp.arange(self.num_agents)
        codes = codes.at[state.agents[:, 0], state.agents[:, 1]].set(numbers)
        return jnp.where(state.beams, BEAM, codes)

    @cached_property
    def colours(self) -> NDArray[np.uint8]:
        """The colour of every cell code: uint8 [code, RGB]."""
        # agents beyond the published four get other colours; the strides delay repetitions
        more = [(40 + 53 * i % 200, 40 + 97 * i % 200, 40 + 149 * i % 200) for i in range(4, self.num_agents)]
        return np.array([*CELL_COLOURS, *AGENT_COLOURS, *more], np.uint8)

    def observe(self, state: CleanupState) -> jax.Array:
        """Return the colours around every agent; its own cell always has the first agent's colour."""
        top, left = self.view[0] // 2, self.view[1] // 2
        board = jnp.pad(self.cell_codes(state), ((top, top), (left, left)), constant_values=EMPTY)
        windows = read_windows(board.reshape(-1), state.agents, self.grid, self.view)
        middle = self.view[0] * self.view[1] // 2
        windows = windows.at[:, middle].set(FIRST_AGENT)
        return jnp.asarray(self.colours)[windows].reshape(self.num_agents, -1)

    def counters(self, state: CleanupState) -> Counters:
        """Return the apples eaten and the waste cleaned by each agent."""
        return Counters(per_agent={"apples_eaten": state.apples_eaten, "waste_cleaned": state.waste_cleaned}, team={})

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Declarations of both counters, which have no maximum."""
        return CLEANUP_METRICS
