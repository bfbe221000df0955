"""Our environments as PettingZoo `ParallelEnv`s, for use in other code."""

import difflib
import functools
from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from pettingzoo import ParallelEnv

from consmarl.environments import validation
from consmarl.environments.grid import GridWorld
from consmarl.environments.interface import Outcome
from consmarl.environments.packages import is_of_package
from consmarl.environments.registry import make
from consmarl.errors import UsageError, nearest

Observations = dict[str, NDArray[np.float32]]
Infos = dict[str, dict[str, Any]]

RENDER_MODES = ("rgb_array",)
RESET_OPTIONS = ("layout", "draws")


class Moment(NamedTuple):
    """The result of a reset or a step, and the key for the next one, computed in one call."""

    key: jax.Array
    state: Any
    observations: jax.Array  # float32 [agent, observation]
    outcome: Outcome | None
    allowed: Any = None  # bool [agent, action]; None if actions are never forbidden


def _moment(world: GridWorld[Any, Any, Any], key: jax.Array, state: Any, outcome: Outcome | None) -> Moment:
    allowed = world.allowed_actions(state) if world.masks_actions else None
    return Moment(key, state, world.observe(state) * world.observation_scale[None, :], outcome, allowed)


# Environments are hashable, so one compilation serves all equal instances.
@functools.partial(jax.jit, static_argnums=0)
def _reset(world: GridWorld[Any, Any, Any], key: jax.Array, layout: Any) -> Moment:
    key_next, key_layout = jax.random.split(key)
    layout = world.generate_layout(key_layout) if layout is None else layout
    return _moment(world, key_next, world.begin(layout), None)


@functools.partial(jax.jit, static_argnums=0)
def _step(world: GridWorld[Any, Any, Any], key: jax.Array, state: Any, actions: jax.Array, draws: Any) -> Moment:
    key_next, key_draws = jax.random.split(key)
    draws = world.draw(key_draws) if draws is None else draws
    return _moment(world, key_next, *world.advance(state, actions, draws))


@functools.partial(jax.jit, static_argnums=0)
def _counters(world: GridWorld[Any, Any, Any], state: Any) -> Any:
    return world.counters(state)


class WorldParallelEnv(ParallelEnv):  # type: ignore[misc]
    """An environment behind PettingZoo's parallel interface.

    Observations are float32. `infos` hold the team's reward in every step and, at the end of an episode, the counters
    (`gold_mined`, `opened`, `apples_eaten`, …): the agent's own if the environment counts by agent, else the team's. If
    the environment forbids actions, `infos[agent]["action_mask"]` says which are allowed.
    """

    def __init__(self, world: GridWorld[Any, Any, Any], render_mode: str | None = None) -> None:
        """Wrap `world`; see `parallel_env` for environments by name."""
        if render_mode is not None and render_mode not in RENDER_MODES:
            raise UsageError(f"there is no render_mode {render_mode!r}: {nearest(str(render_mode), RENDER_MODES)}")
        if world.num_branches > 1:
            raise UsageError(
                f"{world.id} has actions of {world.num_branches} dimensions, which are not wrapped for PettingZoo: "
                "only plain discrete ones are."
            )
        self.world = world
        self.render_mode = render_mode
        self.metadata = {
            "name": world.id,
            "render_modes": list(RENDER_MODES),
            "render_fps": 6,
            "is_parallelizable": True,
        }
        self.possible_agents = [f"agent_{index}" for index in range(world.num_agents)]
        self.agents: list[str] = []
        low = np.zeros(world.observation_size, np.float32)
        high = world.observation_limit.astype(np.float32) * world.observation_scale
        self.observation_spaces = {
            agent: gymnasium.spaces.Box(low, high, dtype=np.float32) for agent in self.possible_agents
        }
        self.action_spaces = {agent: gymnasium.spaces.Discrete(world.num_actions) for agent in self.possible_agents}
        everyone = len(self.possible_agents)
        self.state_space = gymnasium.spaces.Box(np.tile(low, everyone), np.tile(high, everyone), dtype=np.float32)
        self._moment: Moment | None = None
        self._recorded_draws: Any = None
        self._num_steps = 0
        self._last_actions: NDArray[np.int32] | None = None
        self._returns = np.zeros(everyone)

    def observation_space(self, agent: str) -> gymnasium.spaces.Box:
        """Return the space of an agent's observations, the same for all agents."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> gymnasium.spaces.Discrete:
        """Return the space of an agent's actions; their names are `world.action_names`."""
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observations, Infos]:
        """Start an episode.

        A `seed` determines this episode and all that follow until the next seed. `options` may contain a fixed start,
        `layout`, and recorded random numbers, `draws` (Cleanup; see `Cleanup.draws_from`).
        """
        options = options or {}
        for name in options:
            # PettingZoo allows unknown options, but a typo in one of ours should not go unnoticed
            if name not in RESET_OPTIONS and difflib.get_close_matches(str(name), RESET_OPTIONS):
                raise UsageError(f"reset has no option {name!r}: {nearest(str(name), RESET_OPTIONS)}")
        layout = self.world.layout_from(options["layout"]) if "layout" in options else None
        draws = self.world.draws_from(options["draws"]) if "draws" in options else None
        is_new = seed is not None or self._moment is None
        key = self._key_from(seed) if is_new else self._present().key
        self._moment = _reset(self.world, key, layout)
        self._recorded_draws, self._num_steps, self._last_actions = draws, 0, None
        self._returns[:] = 0
        self.agents = list(self.possible_agents)
        return self._observations(), self._masks()

    def step(
        self, actions: dict[str, int]
    ) -> tuple[Observations, dict[str, float], dict[str, bool], dict[str, bool], Infos]:
        """Perform one step, in which all agents act at once."""
        if not self.agents:
            raise UsageError("no episode is under way: call reset() before step().")
        assert self._moment is not None
        chosen = self._checked(actions)
        draws = jax.tree.map(lambda rows: rows[self._num_steps], self._recorded_draws)
        self._moment = _step(self.world, self._moment.key, self._moment.state, chosen, draws)
        outcome = jax.device_get(self._moment.outcome)
        self._num_steps += 1
        self._last_actions = chosen
        self._returns += outcome.rewards

        agents = self.agents
        rewards = {agent: float(reward) for agent, reward in zip(agents, outcome.rewards, strict=True)}
        masks = self._masks()
        infos: Infos = {agent: {"team_reward": float(outcome.team_reward)} | masks[agent] for agent in agents}
        if outcome.done:
            for index, agent in enumerate(agents):
                infos[agent] |= self._achieved(index)
            self.agents = []
        return (
            self._observations(),
            rewards,
            dict.fromkeys(agents, bool(outcome.terminated)),
            dict.fromkeys(agents, bool(outcome.truncated)),
            infos,
        )

    def state(self) -> NDArray[np.float32]:
        """Return the global state: all agents' observations, concatenated."""
        return np.concatenate(list(self._observations().values()))

    def render(self) -> NDArray[np.uint8] | None:
        """Return the current state as an RGB picture, or None without a render mode."""
        if self.render_mode is None:
            gymnasium.logger.warn(
                "render() draws nothing without a render mode: parallel_env(…, render_mode='rgb_array')."
            )
            return None
        from consmarl.environments.draw import Status, draw_frame  # imported only when needed

        status = Status(actions=self._last_actions, returns=self._returns, num_steps=self._num_steps)
        return draw_frame(self.world, self._present().state, status)

    def close(self) -> None:
        """Do nothing: no resources are held."""

    def counters(self) -> dict[str, NDArray[Any]]:
        """Return the whole team's achievements in this episode so far."""
        achieved = jax.device_get(_counters(self.world, self._present().state))
        return {**achieved.per_agent, **achieved.team}

    def _achieved(self, index: int) -> dict[str, Any]:
        achieved = jax.device_get(_counters(self.world, self._present().state))
        return {name: values[index] for name, values in achieved.per_agent.items()} | achieved.team

    def _masks(self) -> Infos:
        """Return each agent's action mask in PettingZoo's format; empty dicts if actions are never forbidden."""
        allowed = self._present().allowed
        if allowed is None:
            return {agent: {} for agent in self.possible_agents}
        rows = np.asarray(allowed).astype(np.int8)
        return {agent: {"action_mask": row} for agent, row in zip(self.possible_agents, rows, strict=True)}

    def _present(self) -> Moment:
        if self._moment is None:
            raise UsageError("there is nothing to see yet: call reset() first.")
        return self._moment

    def _observations(self) -> Observations:
        rows = np.array(self._present().observations)
        return dict(zip(self.possible_agents, rows, strict=True))

    @staticmethod
    def _key_from(seed: int | None) -> jax.Array:
        entropy = None if seed is None else validation.whole_number("seed", seed, least=0, most=None)
        words = np.random.SeedSequence(entropy).generate_state(2, np.uint32)
        return jax.random.wrap_key_data(jnp.asarray(words), impl="threefry2x32")

    def _checked(self, actions: dict[str, int]) -> NDArray[np.int32]:
        """Return the validated actions in the agents' order."""
        validation.known_keys("actions", actions, self.agents)
        most = self.world.num_actions - 1
        for agent, action in actions.items():
            if not self.action_spaces[agent].contains(action):
                raise UsageError(f"{agent} cannot do {action!r}: actions are whole numbers from 0 to {most}.")
        return np.array([actions[agent] for agent in self.agents], np.int32)


def parallel_env(id: str, render_mode: str | None = None, **parameters: Any) -> WorldParallelEnv:
    """Return an environment by id as a PettingZoo `ParallelEnv`; `parameters` are those of `consmarl.make`."""
    if is_of_package(id):
        raise UsageError(f"{id} belongs to another package, which has its own wrappers: make it there.")
    return WorldParallelEnv(make(id, **parameters), render_mode)
