"""GA-Comm: an actor-critic whose agents listen to each other by hard and soft attention.

One actor serves all agents: Linear → ReLU → GRU → messages from teammates → Linear. A central critic values all
agents' observations together, and its one-step error is every agent's advantage. There is one update per round.

Axes: `[agent, row, …]` for the actor, where a row is an environment or a step of an episode; `[step, episode]` for the
critic, which has no agents.
"""

import dataclasses
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import optax

from consmarl.environments.masks import is_present
from consmarl.environments.validation import Positive, Size
from consmarl.learners import td
from consmarl.learners.interface import EpisodeBatch, Learner, Metrics, Scores, TeamSpec
from consmarl.learners.optimiser import Optimiser, RMSprop
from consmarl.learners.policy_gradient import mixed_log_policy, policy_gradient_loss
from consmarl.learners.rewards import team_reward
from consmarl.learners.targets import copied_when_due, copy_of
from consmarl.learners.team_networks import TeamNetworks, Weights
from consmarl.metrics import GRADIENT_NORM, LEARNING, LOSS, Metric
from consmarl.networks.attention import (
    AttentionParameters,
    draw_noise,
    init_attention,
    listen,
)
from consmarl.networks.drqn import step_trunk, unroll_trunk
from consmarl.networks.gru import GRUParameters, init_gru
from consmarl.networks.linear import (
    Linear,
    apply_linear,
    apply_perceptron,
    init_linear,
    init_perceptron,
    join_last,
)
from consmarl.records import internal


class ActorParameters(NamedTuple):
    """Weights of the network that acts for all agents."""

    encoder_weights: jax.Array  # [input, hidden]
    encoder_bias: jax.Array  # [hidden]
    gru: GRUParameters
    attention: AttentionParameters
    head: Linear  # [hidden + attention, action]


Critic = tuple[Linear, ...]


class GACommState(NamedTuple):
    """GA-Comm's training state."""

    actor: ActorParameters
    critic: Critic
    target: Critic
    actor_optimiser: Any
    critic_optimiser: Any
    num_updates: jax.Array  # int32


@dataclass(frozen=True)
class GAComm(Learner[ActorParameters, GACommState, jax.Array]):
    """Central-V actor-critic with attention between agents; defaults are those of the baseline's release."""

    spec: TeamSpec
    hidden_size: int = 64
    attention_size: Size = 32
    """Length of messages, queries and keys [C: 32]."""
    critic_size: int = internal(128)
    discount: float = 0.99  # γ
    target_every_updates: int = 200
    optimiser: Optimiser = field(default_factory=lambda: RMSprop(learning_rate=1e-4))
    critic_learning_rate: Positive = 1e-3
    """Learning rate of the critic [C: 1e-3]."""
    bootstrap_time_limit: bool = False

    is_on_policy = True
    handles_masks = True
    scores = Scores.LOGITS
    metrics: ClassVar[tuple[Metric, ...]] = (
        LOSS,
        GRADIENT_NORM,
        Metric("critic_loss", family=LEARNING, more_is_better=False),
        Metric("value", family=LEARNING, unit="reward"),
        Metric("advantage", family=LEARNING, unit="reward"),
        Metric("entropy", family=LEARNING, unit="nats"),
        Metric("listening", family=LEARNING, unit="share"),
    )

    @property
    def networks(self) -> TeamNetworks:
        """The actor's inputs: observation, last action, and the agent's id."""
        return TeamNetworks(self.spec, Weights.SHARED, self.hidden_size)

    @property
    def critic_optimiser(self) -> Optimiser:
        """The critic's optimiser, which has its own learning rate."""
        return dataclasses.replace(self.optimiser, learning_rate=self.critic_learning_rate)

    @property
    def critic_sizes(self) -> tuple[int, ...]:
        """The sizes of the critic's layers, from all agents' concatenated observations to one value."""
        return (self.spec.num_agents * self.spec.observation_size, self.critic_size, self.critic_size, 1)

    def init(self, key: jax.Array) -> GACommState:
        """Draw initial weights; the target critic starts equal to the critic."""
        key_encoder, key_gru, key_attention, key_head, key_critic = jax.random.split(key, 5)
        actor = ActorParameters(
            *init_linear(key_encoder, self.networks.input_size, self.hidden_size),
            gru=init_gru(key_gru, self.hidden_size, self.hidden_size),
            attention=init_attention(key_attention, self.hidden_size, self.attention_size),
            head=init_linear(key_head, self.hidden_size + self.attention_size, self.spec.num_actions),
        )
        critic = init_perceptron(key_critic, self.critic_sizes)
        return GACommState(
            actor=actor,
            critic=critic,
            target=copy_of(critic),
            actor_optimiser=self.optimiser.transformation().init(actor),
            critic_optimiser=self.critic_optimiser.transformation().init(critic),
            num_updates=jnp.zeros((), jnp.int32),
        )

    def parameters(self, state: GACommState) -> ActorParameters:
        """Return the actor."""
        return state.actor

    def begin(self, parameters: ActorParameters, key: jax.Array, codes: jax.Array) -> jax.Array:
        """Return empty memories."""
        del parameters, key
        return self.networks.first_memory(codes.shape[1]).hidden

    def act(
        self, parameters: ActorParameters, memory: jax.Array, codes: jax.Array, last_actions: jax.Array, key: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """Return the policies' logits; gates are sampled in evaluation, too."""
        num_agents, num_envs, _ = codes.shape
        inputs = jax.vmap(self.networks.inputs)(jnp.arange(num_agents), codes, last_actions)
        joined = (num_agents * num_envs, -1)
        hidden = step_trunk(parameters, memory.reshape(joined), inputs.reshape(joined)).reshape(memory.shape)
        logits, _ = self.decide(parameters, hidden, self.noise(key, num_envs))
        return hidden, logits

    def noise(self, key: jax.Array, num_rows: int) -> jax.Array:
        """Draw the noise that opens and closes gates: [other, agent, row, 2]."""
        return draw_noise(key, self.spec.num_agents, num_rows)

    def decide(self, actor: ActorParameters, hidden: jax.Array, noise: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Listen and decide: hidden states [agent, row, hidden] → (logits, gates [other, agent, row])."""
        heard = listen(actor.attention, hidden, noise)
        return apply_linear(actor.head, jnp.concatenate([hidden, heard.messages], axis=-1)), heard.gates

    def remember(self, actor: ActorParameters, batch: EpisodeBatch) -> jax.Array:
        """Return the hidden states of all agents in all steps: [agent, step · episode, hidden]."""
        num_agents, num_episodes, limit = batch.actions.shape
        inputs = jax.vmap(self.networks.episode_inputs)(jnp.arange(num_agents), batch.codes, batch.actions)
        # the GRU treats agents and episodes as one axis; the step after the last action is not needed
        by_step = inputs[:, :-1].swapaxes(0, 1).reshape(limit, num_agents * num_episodes, -1)
        hidden = unroll_trunk(actor, jnp.zeros((num_agents * num_episodes, self.hidden_size)), by_step)
        by_agent = hidden.reshape(limit, num_agents, num_episodes, -1).swapaxes(0, 1)
        return by_agent.reshape(num_agents, limit * num_episodes, -1)

    def update(self, state: GACommState, batch: EpisodeBatch, key: jax.Array) -> tuple[GACommState, Metrics]:
        """Take one gradient step on each loss; the actor's advantages are computed before the critic's step."""
        _, num_episodes, limit = batch.actions.shape
        by_critic, (advantages, critic_metrics) = jax.grad(self.critic_loss, has_aux=True)(
            state.critic, state.target, batch
        )
        noise = self.noise(key, limit * num_episodes)
        by_actor, actor_metrics = jax.grad(self.actor_loss, has_aux=True)(state.actor, advantages, batch, noise)

        descent, critic_descent = self.optimiser.transformation(), self.critic_optimiser.transformation()
        actor_changes, actor_optimiser = descent.update(by_actor, state.actor_optimiser)
        critic_changes, critic_optimiser = critic_descent.update(by_critic, state.critic_optimiser)
        critic = optax.apply_updates(state.critic, critic_changes)
        metrics = actor_metrics | critic_metrics | {"gradient_norm": optax.tree.norm(by_actor)}
        following = GACommState(
            actor=optax.apply_updates(state.actor, actor_changes),
            critic=critic,
            target=copied_when_due(state.target, critic, state.num_updates, self.target_every_updates),
            actor_optimiser=actor_optimiser,
            critic_optimiser=critic_optimiser,
            num_updates=state.num_updates + 1,
        )
        return following, {name: value[None] for name, value in metrics.items()}  # [network], of which there is one

    def critic_loss(
        self, critic: Critic, target: Critic, batch: EpisodeBatch
    ) -> tuple[jax.Array, tuple[jax.Array, Metrics]]:
        """Return the mean δ² of δ = R + γ V̄(s') − V(s), and δ itself, [step, episode], with metrics."""
        limit = batch.actions.shape[-1]
        seen = join_last(self.spec.observations(batch.codes).transpose(2, 1, 0, 3))  # s: [step + 1, episode, …]
        values_tm1 = apply_perceptron(critic, seen[:-1])[..., 0]
        values_t = jax.lax.stop_gradient(apply_perceptron(target, seen[1:]))[..., 0]
        mask = td.step_mask(batch.num_steps, limit)
        goes_on = td.continues(batch.num_steps, batch.terminated, limit, bootstrap_time_limit=self.bootstrap_time_limit)
        targets = td.td_targets(team_reward(batch).T, goes_on, values_t, self.discount)
        errors = targets - values_tm1  # δ
        loss = td.masked_squared_error(values_tm1, targets, mask)
        metrics = {
            "critic_loss": loss,
            "value": _mean(values_tm1, mask),
            "advantage": _mean(jnp.abs(errors), mask),
        }
        return loss, (errors, metrics)

    def actor_loss(
        self, actor: ActorParameters, advantages: jax.Array, batch: EpisodeBatch, noise: jax.Array
    ) -> tuple[jax.Array, Metrics]:
        """Return −mean(δ · log π(a)) over agents and steps, where all agents share a step's δ, and metrics."""
        num_agents, num_episodes, limit = batch.actions.shape
        logits, gates = self.decide(actor, self.remember(actor, batch), noise)
        by_step = (num_agents, limit, num_episodes)
        allowed = None if batch.allowed is None else batch.allowed[:, :, :-1].swapaxes(1, 2)
        log_policy = mixed_log_policy(logits.reshape(*by_step, -1), batch.epsilon.T[None, :, :, None], allowed)
        chosen = td.chosen_values(log_policy, batch.actions.swapaxes(1, 2).astype(jnp.int32))
        mask = td.step_mask(batch.num_steps, limit)
        # absent agents do not decide
        decides = mask if allowed is None else mask[None] * is_present(allowed)
        loss = policy_gradient_loss(chosen, advantages[None], jnp.broadcast_to(decides, by_step))
        return loss, {
            "loss": loss,
            "entropy": _mean(jax.scipy.special.entr(jnp.exp(log_policy)).sum(axis=-1), decides),
            "listening": _mean(gates.reshape(*gates.shape[:2], limit, num_episodes), mask),
        }


def _mean(values: jax.Array, mask: jax.Array) -> jax.Array:
    """Return the mean of values [..., step, episode] over the steps that were played, or 0 if there are none."""
    played = jnp.broadcast_to(mask, values.shape)
    return jnp.sum(played * values) / jnp.maximum(jnp.sum(played), 1.0)
