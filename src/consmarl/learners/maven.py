"""MAVEN: a team draws one of several strategies for a whole episode and follows it together.

Agents' values depend on the strategy z. A mixer trains them as in QMIX; a discriminator that guesses z from the team's
intended actions keeps strategies distinct (a lower bound on their mutual information); and a policy over strategies
learns which of them pay off. Without a common strategy, a team explores one step at a time and misses rewards that take
several coordinated steps.

Axes: `[agent, step, episode, …]`, and `[step, episode, …]` for the team.
"""

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import optax

from consmarl.environments.validation import NotNegative, at_least
from consmarl.errors import UsageError
from consmarl.learners import td
from consmarl.learners.devices import map_agents
from consmarl.learners.interface import EpisodeBatch, Metrics
from consmarl.learners.qmix import QMIX
from consmarl.learners.rewards import team_reward
from consmarl.learners.team_networks import Memory, Weights
from consmarl.metrics import LEARNING, Metric
from consmarl.networks.drqn import init_drqn, step_trunk, unroll_trunk
from consmarl.networks.gru import GRUParameters, init_gru, unroll_gru
from consmarl.networks.linear import (
    Linear,
    apply_perceptron,
    init_linear,
    init_perceptron,
    join_last,
)
from consmarl.records import internal


class StrategicAgent(NamedTuple):
    """The network that acts for all agents: a DRQN whose last layer is generated from strategy and agent."""

    encoder_weights: jax.Array  # [input, hidden]
    encoder_bias: jax.Array  # [hidden]
    gru: GRUParameters
    head_weights: Linear  # strategy and agent → [hidden · output]
    head_bias: Linear  # strategy and agent → [output]


class Actor(NamedTuple):
    """The networks needed for acting."""

    agent: StrategicAgent
    strategy_policy: tuple[Linear, ...]  # first state → strategies


class Discriminator(NamedTuple):
    """Guesses the strategy from the team's intended actions and observations, step by step."""

    gru: GRUParameters
    guess: tuple[Linear, ...]


class MavenNetworks(NamedTuple):
    """All networks."""

    agents: Actor
    mixer: Any
    discriminator: Discriminator


class MavenMemory(NamedTuple):
    """A team's memory; the strategy is the same for all agents of an environment."""

    agents: Memory  # [agent, env, …]
    strategy: jax.Array  # int32 [agent, env]
    probability: jax.Array  # float32 [agent, env], with which it was drawn


class MavenNotes(NamedTuple):
    """The data stored with an episode."""

    strategy: jax.Array  # z, int32 [episode]
    probability: jax.Array  # float32 [episode], with which it was drawn


@dataclass(frozen=True)
class MAVEN(QMIX):
    """Multi-agent variational exploration; defaults are those of the library that the paper's authors used."""

    double_q: bool = False
    num_strategies: Annotated[int, at_least(2)] = 16
    """Number of strategies [C: 16]."""
    information_weight: NotNegative = 0.001
    """Lambda_MI, weight of the discriminator's loss [C: 0.001]."""
    entropy_weight: NotNegative = 0.1
    """Weight of the entropy of the policy over strategies: a strategy that is this many standard deviations better is e
    times as likely [ours: 0.1; C: 0.001, unused there]."""
    max_importance: float = internal(10.0)  # bound on π(z|s) / probability at the time of drawing
    policy_size: int = internal(128)
    discriminator_size: int = internal(64)

    metrics: ClassVar[tuple[Metric, ...]] = (
        *QMIX.metrics,
        Metric("guess_loss", family=LEARNING, more_is_better=False),
        Metric("guessed_right", family=LEARNING, unit="share", more_is_better=True),
        Metric("strategy_loss", family=LEARNING, more_is_better=False),
        Metric("strategy_entropy", family=LEARNING, unit="share"),
    )

    def __post_init__(self) -> None:
        """Check that one network acts for all agents."""
        super().__post_init__()
        if self.weights is not Weights.SHARED:
            raise UsageError("maven has one network for all agents: leave out --weights, or choose shared.")

    def init_networks(self, key: jax.Array) -> MavenNetworks:
        """Draw all initial weights."""
        key_agent, key_mixer, key_policy, key_gru, key_guess = jax.random.split(key, 5)
        num_strategies, size = self.num_strategies, self.discriminator_size
        policy = init_perceptron(key_policy, (self._state_size, self.policy_size, num_strategies))
        return MavenNetworks(
            Actor(self._init_agent(key_agent), policy),
            self.init_mixer(key_mixer),
            Discriminator(
                init_gru(key_gru, self._discriminator_inputs, size),
                init_perceptron(key_guess, (size, size // 2, num_strategies)),
            ),
        )

    def _init_agent(self, key: jax.Array) -> StrategicAgent:
        key_trunk, key_weights, key_bias = jax.random.split(key, 3)
        num_outputs, hidden_size = self.networks.num_outputs, self.hidden_size
        trunk = init_drqn(key_trunk, self.networks.input_size, hidden_size, num_outputs)
        return StrategicAgent(
            *trunk[:3],
            head_weights=init_linear(key_weights, self._num_situations, hidden_size * num_outputs),
            head_bias=init_linear(key_bias, self._num_situations, num_outputs),
        )

    @property
    def _num_situations(self) -> int:
        return self.num_strategies + self.spec.num_agents

    @property
    def _discriminator_inputs(self) -> int:
        return self.spec.num_agents * self.spec.num_actions + self._state_size

    def transformation(self) -> optax.GradientTransformation:
        """Optimise values and discriminator together; the policy over strategies has its own optimiser."""

        def labels(networks: MavenNetworks) -> MavenNetworks:
            as_values = jax.tree.map(lambda _: "values", networks)
            own = jax.tree.map(lambda _: "strategies", networks.agents.strategy_policy)
            return as_values._replace(agents=as_values.agents._replace(strategy_policy=own))

        each = self.optimiser.transformation()
        return optax.partition({"values": each, "strategies": each}, labels)

    def begin(self, parameters: Actor, key: jax.Array, codes: jax.Array) -> MavenMemory:
        """Draw every team's strategy, given its first observations."""
        states = join_last(self.spec.observations(codes.swapaxes(0, 1)))
        log_policy = jax.nn.log_softmax(apply_perceptron(parameters.strategy_policy, states))
        strategy = jax.random.categorical(key, log_policy)
        probability = jnp.exp(td.chosen_values(log_policy, strategy))
        shape = codes.shape[:2]
        return MavenMemory(
            self.networks.first_memory(shape[1]),
            jnp.broadcast_to(strategy[None, :].astype(jnp.int32), shape),
            jnp.broadcast_to(probability[None, :], shape),
        )

    def notes(self, memory: MavenMemory) -> MavenNotes:
        """Store the strategy with its episode."""
        return MavenNotes(memory.strategy[0], memory.probability[0])

    def act(
        self, parameters: Actor, memory: MavenMemory, codes: jax.Array, last_actions: jax.Array, key: jax.Array
    ) -> tuple[MavenMemory, jax.Array]:
        """Return every agent's values under its team's strategy."""
        del key

        remembered, inputs = self.networks.step_inputs(memory.agents, codes, last_actions)

        def of_agent(
            agent: jax.Array, hidden: jax.Array, strategy: jax.Array, inputs: jax.Array
        ) -> tuple[jax.Array, jax.Array]:
            hidden = step_trunk(parameters.agent, hidden, inputs)
            return hidden, self._head(parameters.agent, hidden[None], agent, strategy)[0]

        agents = jnp.arange(self.spec.num_agents)
        hidden, values = jax.vmap(of_agent)(agents, remembered.hidden, memory.strategy, inputs)
        return memory._replace(agents=remembered._replace(hidden=hidden)), values

    def _head(
        self, agent_network: StrategicAgent, hiddens: jax.Array, agent: jax.Array, strategy: jax.Array
    ) -> jax.Array:
        """Return values [step, episode, action] of hidden states [step, episode, hidden] under strategies [episode]."""

        def made_by(layer: Linear) -> jax.Array:
            # one-hot vectors of strategy and agent select rows, so no matrix product is needed
            return layer.weights[strategy] + (layer.weights[self.num_strategies + agent] + layer.bias)[None, :]

        weights = made_by(agent_network.head_weights).reshape(-1, self.hidden_size, self.networks.num_outputs)
        outputs = jnp.einsum("seh,eho->seo", hiddens, weights) + made_by(agent_network.head_bias)[None]
        return self.head.values(outputs)

    def action_values(self, agents: Actor, batch: EpisodeBatch) -> jax.Array:
        """Return every agent's values under the strategies of the episodes: [agent, step + 1, episode, action]."""

        def of_agent(each: tuple[jax.Array, StrategicAgent, jax.Array, jax.Array]) -> jax.Array:
            agent, parameters, codes, actions = each
            inputs = self.networks.episode_inputs(agent, codes, actions)
            hiddens = unroll_trunk(parameters, jnp.zeros((inputs.shape[1], self.hidden_size)), inputs)
            return self._head(parameters, hiddens, agent, batch.notes.strategy)

        everybodys = self.networks.by_agent(jax.tree.map(lambda leaf: leaf[None], agents.agent))
        numbers = jnp.arange(self.spec.num_agents)
        codes = self.networks.noticed(batch.codes)
        values: jax.Array = map_agents(of_agent, (numbers, everybodys, codes, batch.actions))
        return values

    def loss(
        self, online: MavenNetworks, target: MavenNetworks, batch: EpisodeBatch, settled: jax.Array | None = None
    ) -> tuple[jax.Array, Metrics]:
        """Return QMIX's error + λ_MI · discriminator's loss + strategy policy's loss."""
        values = self.action_values(online.agents, batch)
        error, metrics = self.team_loss(online, target, values, batch, settled)
        guess_loss, guess_metrics = self.guess_loss(online.discriminator, values, batch)
        policy_loss, policy_metrics = self.policy_loss(online.agents.strategy_policy, batch)
        total = error + self.information_weight * guess_loss + policy_loss
        return total, metrics | guess_metrics | policy_metrics

    def guess_loss(
        self, discriminator: Discriminator, values: jax.Array, batch: EpisodeBatch
    ) -> tuple[jax.Array, Metrics]:
        """Return the mean of −log q(z | the team's intended actions so far), which trains agents, too, and metrics."""
        allowed = None if batch.allowed is None else batch.allowed[:, :, :-1].swapaxes(1, 2)
        policies = join_last(jax.nn.softmax(td.allowed_values(values[:, :-1], allowed)).transpose(1, 2, 0, 3))
        seen = jnp.concatenate([policies, self.team_states(batch)[:-1]], axis=-1)
        hiddens = unroll_gru(discriminator.gru, seen, jnp.zeros((seen.shape[1], self.discriminator_size)))
        log_guess = jax.nn.log_softmax(apply_perceptron(discriminator.guess, hiddens))
        strategy = jnp.broadcast_to(batch.notes.strategy[None, :], log_guess.shape[:2])
        mask = td.step_mask(batch.num_steps, len(log_guess))
        loss = -jnp.sum(mask * td.chosen_values(log_guess, strategy)) / mask.sum()
        is_right = (jnp.argmax(log_guess, axis=-1) == strategy).astype(jnp.float32)
        return loss, {"guess_loss": loss, "guessed_right": jnp.sum(mask * is_right) / mask.sum()}

    def policy_loss(self, policy: tuple[Linear, ...], batch: EpisodeBatch) -> tuple[jax.Array, Metrics]:
        """Return −mean(w · A · log π(z | s₀)) − entropy bonus: REINFORCE on whole episodes.

        A is the episode's return in standard deviations from the batch's mean; w = π / the probability with which z was
        drawn, because replayed episodes come from older policies.
        """
        log_policy = jax.nn.log_softmax(apply_perceptron(policy, self.team_states(batch)[0]))
        log_chosen = td.chosen_values(log_policy, batch.notes.strategy)
        mask = td.step_mask(batch.num_steps, batch.rewards.shape[-1])
        returns = jnp.sum(mask * team_reward(batch).T, axis=0)
        advantages = (returns - returns.mean()) / (returns.std() + 1e-6)
        importance = jnp.minimum(jnp.exp(log_chosen) / batch.notes.probability, self.max_importance)
        entropy = -jnp.sum(jnp.exp(log_policy) * log_policy, axis=-1).mean()
        loss = -jnp.mean(jax.lax.stop_gradient(importance * advantages) * log_chosen)
        metrics = {"strategy_loss": loss, "strategy_entropy": entropy / math.log(self.num_strategies)}
        return loss - self.entropy_weight * entropy, metrics
