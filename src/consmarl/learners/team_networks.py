"""A team's recurrent Q-networks: one per agent, or a shared one that is given the agent's id."""

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from consmarl.environments.actions import branch_axis
from consmarl.environments.interface import Ground
from consmarl.errors import UsageError
from consmarl.learners.devices import map_agents
from consmarl.learners.interface import EpisodeBatch, TeamSpec
from consmarl.networks.drqn import (
    DRQNParameters,
    Head,
    init_drqn,
    one_hot_actions,
    several_hot_actions,
    step_drqn,
    unroll_drqn,
)
from consmarl.networks.footprints import first_way, scale_of_told, told, told_in_episodes, with_step


class Weights(enum.Enum):
    """Whether agents have their own weights."""

    SEPARATE = "separate"
    SHARED = "shared"


class Memory(NamedTuple):
    """The agents' memory between steps; [agent, env, …]."""

    hidden: jax.Array  # [agent, env, hidden]
    way: Any = ()  # `Way` [agent, env, cell], or () without footprints


@dataclass(frozen=True)
class TeamNetworks:
    """The networks of a team; parameters have a leading axis of networks, of length n or 1."""

    spec: TeamSpec
    weights: Weights = Weights.SEPARATE
    hidden_size: int = 64
    head: Head = Head.PLAIN
    footprints: bool = False  # whether networks are given their agent's own path; see `networks.footprints`

    @property
    def is_shared(self) -> bool:
        """Whether one network serves all agents."""
        return self.weights is Weights.SHARED

    @property
    def num_networks(self) -> int:
        """Number of networks."""
        return 1 if self.is_shared else self.spec.num_agents

    @property
    def input_size(self) -> int:
        """Size of observation, last action, agent id (if weights are shared) and footprints."""
        size = self.spec.observation_size + self.num_choices + self.is_shared * self.spec.num_agents
        return size + (len(scale_of_told(self.ground.view)) if self.footprints else 0)

    @property
    def num_choices(self) -> int:
        """Number of choices in all dimensions of an action together."""
        return self.spec.num_actions * self.spec.num_branches

    @property
    def ground(self) -> Ground:
        """The grid on which footprints are left."""
        if self.spec.ground is None:
            raise UsageError("footprints take observations that begin with an agent's row and column on a grid.")
        return self.spec.ground

    @property
    def num_outputs(self) -> int:
        """Number of outputs of a network."""
        return self.head.num_outputs(self.num_choices)

    def init(self, key: jax.Array) -> DRQNParameters:
        """Draw the initial weights of every network."""
        keys = jax.random.split(key, self.num_networks)
        return jax.vmap(lambda key: init_drqn(key, self.input_size, self.hidden_size, self.num_outputs))(keys)

    def first_memory(self, num_envs: int) -> Memory:
        """Return the memories at the start of an episode: zeros [agent, env, …]."""
        shape = (self.spec.num_agents, num_envs)
        way = first_way(shape, self.ground.grid) if self.footprints else ()
        return Memory(jnp.zeros((*shape, self.hidden_size)), way)

    def step(
        self, parameters: DRQNParameters, memory: Memory, codes: jax.Array, last_actions: jax.Array
    ) -> tuple[Memory, jax.Array]:
        """Advance all agents by one step: [agent, env, …] → (memory, action values)."""
        memory, inputs = self.step_inputs(memory, codes, last_actions)
        if not self.is_shared:
            hidden, outputs = jax.vmap(step_drqn)(parameters, memory.hidden, inputs)
            return memory._replace(hidden=hidden), self.values(outputs)
        single = jax.tree.map(lambda stacked: stacked[0], parameters)
        num_envs = codes.shape[1]
        flat_hidden, flat_outputs = step_drqn(single, _joined(memory.hidden), _joined(inputs))
        apart = (self.spec.num_agents, num_envs, -1)
        memory = memory._replace(hidden=flat_hidden.reshape(apart))
        values = self.values(flat_outputs)
        return memory, values.reshape(*apart[:2], *values.shape[1:])

    def values(self, outputs: jax.Array) -> jax.Array:
        """Return action values from the outputs of a network: [..., action], or [..., branch, action]."""
        return self.head.values(outputs, self.spec.num_branches)

    def step_inputs(self, memory: Memory, codes: jax.Array, last_actions: jax.Array) -> tuple[Memory, jax.Array]:
        """Return the agents' memories including the current footprints, and their inputs in this step."""
        if self.footprints:
            place = _place(codes)
            way = with_step(memory.way, *place, *self.ground)
            memory, codes = memory._replace(way=way), _beside(codes, told(way, *place, *self.ground))
        return memory, jax.vmap(self.inputs)(jnp.arange(self.spec.num_agents), codes, last_actions)

    def inputs(self, agent: jax.Array, codes: jax.Array, last_actions: jax.Array) -> jax.Array:
        """Return one agent's inputs: codes [..., code], including any footprints, and last actions [...].

        Last actions of several dimensions are [..., branch].
        """
        size = self.spec.observation_size
        as_vectors = one_hot_actions if self.spec.num_branches == 1 else several_hot_actions
        parts = [self.spec.observations(codes[..., :size]), as_vectors(last_actions, self.spec.num_actions)]
        if self.footprints:
            scale = scale_of_told(self.ground.view).reshape((1,) * (codes.ndim - 1) + (-1,))
            parts.append(codes[..., size:].astype(jnp.float32) * scale)
        if self.is_shared:
            identity = jax.nn.one_hot(agent, self.spec.num_agents)
            parts.append(jnp.broadcast_to(identity, (*codes.shape[:-1], self.spec.num_agents)))
        return jnp.concatenate(parts, axis=-1)

    def episode_inputs(self, agent: jax.Array, codes: jax.Array, actions: jax.Array) -> jax.Array:
        """Return one agent's inputs over episodes, codes [episode, step + 1, code] → [step + 1, episode, input]."""
        before_first = jnp.full((len(actions), 1, *branch_axis(self.spec.num_branches)), -1)
        last_actions = jnp.concatenate([before_first, actions.astype(jnp.int32)], axis=1)
        return self.inputs(agent, self.noticed(codes).swapaxes(0, 1), last_actions.swapaxes(0, 1))

    def noticed(self, codes: jax.Array) -> jax.Array:
        """Return whole episodes' codes [..., step + 1, code] with footprints appended, if they are enabled."""
        if not self.footprints or codes.shape[-1] > self.spec.observation_size:  # already there
            return codes
        rows, columns = (jnp.moveaxis(each, -1, 0) for each in _place(codes))
        return _beside(codes, jnp.moveaxis(told_in_episodes(rows, columns, *self.ground), 0, -2))

    def unroll(self, parameters: DRQNParameters, inputs: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Unroll one network from an empty memory: (hidden states, action values) [step, episode, …]."""
        hiddens, outputs = unroll_drqn(parameters, jnp.zeros((inputs.shape[1], self.hidden_size)), inputs)
        return hiddens, self.values(outputs)

    def by_agent(self, parameters: Any) -> Any:
        """Return every agent's parameters: [agent, …], regardless of the number of networks."""
        num_agents = self.spec.num_agents
        return jax.tree.map(lambda stacked: jnp.broadcast_to(stacked, (num_agents, *stacked.shape[1:])), parameters)

    def gradients(self, agent_gradient: "AgentGradient", parameters: Any, batch: EpisodeBatch) -> tuple[Any, Any]:
        """Return (metrics, gradient) for each network, from a function of one agent's parameters and episodes."""
        batch = batch._replace(codes=self.noticed(batch.codes))  # for all agents at once, which is faster
        agents = jnp.arange(batch.codes.shape[0])
        single = jax.tree.map(lambda stacked: stacked[0], parameters) if self.is_shared else None

        def of_agent(each: tuple[Any, ...]) -> tuple[Any, Any]:
            agent, own, codes, actions, rewards, allowed = each
            networks = single if self.is_shared else own
            return agent_gradient(agent, networks, codes, actions, rewards, batch._replace(allowed=allowed))

        own = None if self.is_shared else parameters
        each = map_agents(of_agent, (agents, own, *batch[:3], batch.allowed))
        return jax.tree.map(lambda rows: rows.mean(axis=0, keepdims=True), each) if self.is_shared else each


# (agent, parameters, codes, actions, rewards, whole batch with this agent's `allowed`) → (metrics, gradient)
AgentGradient = Callable[..., tuple[Any, Any]]


def _place(codes: jax.Array) -> tuple[jax.Array, jax.Array]:
    return codes[..., 0].astype(jnp.int32), codes[..., 1].astype(jnp.int32)


def _beside(codes: jax.Array, more: jax.Array) -> jax.Array:
    return jnp.concatenate([codes, more.astype(codes.dtype)], axis=-1)


def _joined(rows: jax.Array) -> jax.Array:
    return rows.reshape(-1, rows.shape[-1])
