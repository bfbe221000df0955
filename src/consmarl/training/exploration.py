"""Exploration, independent of learner and sharing.

An exploration is a frozen dataclass of pure functions; its state is reset at the start of every episode.
Axes: `[agent, env]`. If actions have several dimensions, whether to explore is drawn once for all of them; actions are
`[agent, env, branch]` and scores `[agent, env, branch, action]`.
"""

import abc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from consmarl.environments.branches import of_every_branch
from consmarl.environments.masks import draw_allowed, is_allowed
from consmarl.environments.validation import Fraction
from consmarl.errors import UsageError
from consmarl.learners.interface import Scores
from consmarl.learners.policy_gradient import mixed_log_policy
from consmarl.records import settle


@dataclass(frozen=True)
class LinearSchedule:
    """ε as a function of environment steps: linear from `start` to `end`, then to `final` if that is set."""

    start: float = 1.0
    end: float = 0.05
    anneal_steps: int = 50_000
    final: float | None = None  # reached after `final_steps`; by default ε stays at `end`
    final_steps: int = 0

    def __post_init__(self) -> None:
        """Convert values to their types."""
        settle(self)

    def __call__(self, num_env_steps: jax.Array) -> jax.Array:
        """Return ε after this many environment steps."""
        per_step = (self.start - self.end) / max(self.anneal_steps, 1)
        first_leg = jnp.maximum(self.start - per_step * num_env_steps, self.end)
        if self.final is None:
            return first_leg
        steps_since = jnp.maximum(num_env_steps - self.anneal_steps, 0)
        share_done = jnp.minimum(steps_since / max(self.final_steps - self.anneal_steps, 1), 1.0)
        return first_leg + (self.final - self.end) * share_done


class Choice(NamedTuple):
    """The agents' choices."""

    actions: jax.Array  # int32 [agent, env, …]
    is_exploring: jax.Array  # bool [agent, env]
    is_starting: jax.Array  # bool [agent, env], exploring because of a draw in this step, not continuing an earlier one
    state: Any


class Exploration(abc.ABC):
    """A way to explore."""

    scores: ClassVar[Scores] = Scores.VALUES  # the kind of scores that it needs
    handles_masks: ClassVar[bool] = False  # whether it can be used if actions can be forbidden
    handles_branches: ClassVar[bool] = False  # whether it can be used if actions have several dimensions

    @abc.abstractmethod
    def begin(self, num_agents: int, num_envs: int) -> Any:
        """Return the state at the start of an episode."""

    def begin_in_branches(self, num_agents: int, num_envs: int, num_branches: int) -> Any:
        """Return the state at the start of an episode whose actions have several dimensions; by default the same."""
        del num_branches
        return self.begin(num_agents, num_envs)

    @abc.abstractmethod
    def choose(self, key: jax.Array, scores: jax.Array, epsilon: jax.Array, state: Any) -> Choice:
        """Choose actions by their scores [agent, env, action]; higher is better; ε is a scalar or [agent, 1]."""

    def choose_allowed(
        self, key: jax.Array, scores: jax.Array, epsilon: jax.Array, state: Any, allowed: jax.Array
    ) -> Choice:
        """Choose among the allowed actions, bool [agent, env, action], at least one per agent; other scores are −∞.

        An exploration that only uses scores needs no method of its own and just sets `handles_masks`; one that draws
        actions itself must override this method and draw allowed ones only.
        """
        del allowed
        if not self.handles_masks:
            raise UsageError(f"{type(self).__name__} cannot be used where actions are forbidden.")
        return self.choose(key, scores, epsilon, state)


def _merged(
    is_exploring: jax.Array, is_starting: jax.Array, proposals: jax.Array, scores: jax.Array, state: Any
) -> Choice:
    best = jnp.argmax(scores, axis=-1)
    takes_proposal, proposals = (of_every_branch(each, best) for each in (is_exploring, proposals))
    return Choice(jnp.where(takes_proposal, proposals, best).astype(jnp.int32), is_exploring, is_starting, state)


@dataclass(frozen=True)
class EpsilonGreedy(Exploration):
    """With probability ε a uniformly random action, else the best one (as in the paper)."""

    handles_masks = True
    handles_branches = True

    def begin(self, num_agents: int, num_envs: int) -> tuple[()]:
        """Return an empty state."""
        del num_agents, num_envs
        return ()

    def choose(self, key: jax.Array, scores: jax.Array, epsilon: jax.Array, state: tuple[()]) -> Choice:
        """Explore with probability ε."""
        key_whether, key_what = jax.random.split(key)
        is_exploring = jax.random.uniform(key_whether, scores.shape[:2]) < epsilon
        proposals = jax.random.randint(key_what, scores.shape[:-1], 0, scores.shape[-1])
        return _merged(is_exploring, is_exploring, proposals, scores, state)

    def choose_allowed(
        self, key: jax.Array, scores: jax.Array, epsilon: jax.Array, state: tuple[()], allowed: jax.Array
    ) -> Choice:
        """Explore with probability ε, with an allowed action."""
        key_whether, key_what = jax.random.split(key)
        is_exploring = jax.random.uniform(key_whether, scores.shape[:2]) < epsilon
        return _merged(is_exploring, is_exploring, draw_allowed(key_what, allowed), scores, state)


@dataclass(frozen=True)
class EpsilonSquared(EpsilonGreedy):
    """With probability ε² a uniformly random action, as the authors' CONS and AdHocTD do while they get no advice.

    IQL with this exploration is the control needed to attribute a gain over plain IQL to sharing.
    """

    def choose(self, key: jax.Array, scores: jax.Array, epsilon: jax.Array, state: tuple[()]) -> Choice:
        """Explore with probability ε²."""
        return super().choose(key, scores, epsilon**2, state)

    def choose_allowed(
        self, key: jax.Array, scores: jax.Array, epsilon: jax.Array, state: tuple[()], allowed: jax.Array
    ) -> Choice:
        """Explore with probability ε², with an allowed action."""
        return super().choose_allowed(key, scores, epsilon**2, state, allowed)


@dataclass(frozen=True)
class EpsilonGreedyTogether(Exploration):
    """ε-greedy whose agents often explore at the same moment, with the same action.

    If an event occurs only when several agents do the same at once, agents that draw independently hardly ever see it.
    Each agent still explores with probability ε and a uniform action: only the correlation of draws changes.
    """

    share: Fraction = 0.5
    """Share of the steps in which the whole team draws as one [ours: 0.5]."""

    handles_masks = True
    handles_branches = True

    def __post_init__(self) -> None:
        """Convert values to their types."""
        settle(self)

    def begin(self, num_agents: int, num_envs: int) -> tuple[()]:
        """Return an empty state."""
        del num_agents, num_envs
        return ()

    def choose(self, key: jax.Array, scores: jax.Array, epsilon: jax.Array, state: tuple[()]) -> Choice:
        """Explore with probability ε; in a share of the steps, either all agents do or none."""
        key_as_one, key_whether, key_what = jax.random.split(key, 3)
        num_agents, num_envs, *branches, num_actions = scores.shape
        as_one = jax.random.uniform(key_as_one, (1, num_envs)) < self.share
        # row 0 is the team's draw, the other rows are the agents'
        whether = jax.random.uniform(key_whether, (num_agents + 1, num_envs))
        what = jax.random.randint(key_what, (num_agents + 1, num_envs, *branches), 0, num_actions)
        is_exploring = jnp.where(as_one, whether[:1], whether[1:]) < epsilon
        proposals = jnp.where(of_every_branch(as_one, what), what[:1], what[1:])
        return _merged(is_exploring, is_exploring, proposals, scores, state)

    def choose_allowed(
        self, key: jax.Array, scores: jax.Array, epsilon: jax.Array, state: tuple[()], allowed: jax.Array
    ) -> Choice:
        """Explore together; an agent that is not allowed the action drawn for the team draws its own."""
        key_as_one, key_whether, key_what = jax.random.split(key, 3)
        key_team, key_own = jax.random.split(key_what)
        num_agents, num_envs, *branches, num_actions = scores.shape
        as_one = jax.random.uniform(key_as_one, (1, num_envs)) < self.share
        whether = jax.random.uniform(key_whether, (num_agents + 1, num_envs))
        is_exploring = jnp.where(as_one, whether[:1], whether[1:]) < epsilon
        teams = jax.random.randint(key_team, (1, num_envs, *branches), 0, num_actions)
        teams = jnp.broadcast_to(teams, (num_agents, num_envs, *branches))
        follows = of_every_branch(as_one, teams) & is_allowed(allowed, teams)
        proposals = jnp.where(follows, teams, draw_allowed(key_own, allowed))
        return _merged(is_exploring, is_exploring, proposals, scores, state)


class Run(NamedTuple):
    """An action that is being repeated."""

    action: jax.Array  # int32 [agent, env, …]
    num_left: jax.Array  # int32 [agent, env], remaining repetitions


@dataclass(frozen=True)
class EpsilonZGreedy(Exploration):
    """Temporally extended ε-greedy: an exploring agent repeats its random action for a random number of steps.

    P(duration ≥ k) = 1/k, so long runs are rare but do happen: this is how a miner stays long enough to find gold.
    A run ends when its action is no longer allowed.
    """

    handles_masks = True
    handles_branches = True

    def begin(self, num_agents: int, num_envs: int) -> Run:
        """Return a state in which no agent is repeating an action."""
        nothing = jnp.zeros((num_agents, num_envs), jnp.int32)
        return Run(nothing, nothing)

    def begin_in_branches(self, num_agents: int, num_envs: int, num_branches: int) -> Run:
        """Return the same for actions with several dimensions."""
        none_left = jnp.zeros((num_agents, num_envs), jnp.int32)
        return Run(jnp.zeros((num_agents, num_envs, num_branches), jnp.int32), none_left)

    def choose(self, key: jax.Array, scores: jax.Array, epsilon: jax.Array, state: Run) -> Choice:
        """Continue a run, or start one with probability ε."""

        def draw(key: jax.Array) -> jax.Array:
            return jax.random.randint(key, scores.shape[:-1], 0, scores.shape[-1])

        return self._next(key, scores, epsilon, state, draw)

    def choose_allowed(
        self, key: jax.Array, scores: jax.Array, epsilon: jax.Array, state: Run, allowed: jax.Array
    ) -> Choice:
        """Continue a run as long as its action is allowed, or start one with probability ε."""
        may_go_on = is_allowed(allowed, state.action)
        if may_go_on.ndim > state.num_left.ndim:
            may_go_on = may_go_on.all(axis=-1)
        left = Run(state.action, jnp.where(may_go_on, state.num_left, 0))
        return self._next(key, scores, epsilon, left, lambda key: draw_allowed(key, allowed))

    def _next(
        self,
        key: jax.Array,
        scores: jax.Array,
        epsilon: jax.Array,
        state: Run,
        draw: Callable[[jax.Array], jax.Array],
    ) -> Choice:
        key_whether, key_what, key_length = jax.random.split(key, 3)
        shape = state.num_left.shape
        goes_on = state.num_left > 0
        begins = ~goes_on & (jax.random.uniform(key_whether, shape) < epsilon)
        drawn = draw(key_what)
        chance = jax.random.uniform(key_length, shape, minval=1e-6)
        length = jnp.floor(1 / chance).astype(jnp.int32)
        action = jnp.where(of_every_branch(begins, drawn), drawn, state.action)
        num_left = jnp.where(begins, length - 1, jnp.maximum(state.num_left - 1, 0))
        return _merged(goes_on | begins, begins, action, scores, Run(action, num_left))


@dataclass(frozen=True)
class SampledPolicy(Exploration):
    """An action drawn from the policy with these logits, mixed with ε of the uniform policy (GA-Comm)."""

    scores = Scores.LOGITS
    handles_masks = True

    def begin(self, num_agents: int, num_envs: int) -> tuple[()]:
        """Return an empty state."""
        del num_agents, num_envs
        return ()

    def choose(self, key: jax.Array, scores: jax.Array, epsilon: jax.Array, state: tuple[()]) -> Choice:
        """Draw from the policy (1 − ε) softmax + ε / A; no agent counts as exploring."""
        return self._drawn(key, mixed_log_policy(scores, epsilon), state)

    def choose_allowed(
        self, key: jax.Array, scores: jax.Array, epsilon: jax.Array, state: tuple[()], allowed: jax.Array
    ) -> Choice:
        """Draw from the same policy over the allowed actions."""
        return self._drawn(key, mixed_log_policy(scores, epsilon, allowed), state)

    def _drawn(self, key: jax.Array, log_policy: jax.Array, state: tuple[()]) -> Choice:
        nowhere = jnp.zeros(log_policy.shape[:-1], bool)
        return Choice(jax.random.categorical(key, log_policy).astype(jnp.int32), nowhere, nowhere, state)


@dataclass(frozen=True)
class ExploringBeginners(Exploration):
    """Any exploration for beginners, while experts act greedily."""

    of_beginners: Exploration
    experts: tuple[int, ...]

    handles_masks = True  # unless `of_beginners` does not, which raises its own error
    handles_branches = True

    def begin(self, num_agents: int, num_envs: int) -> Any:
        """Return the beginners' initial state."""
        return self.of_beginners.begin(num_agents, num_envs)

    def begin_in_branches(self, num_agents: int, num_envs: int, num_branches: int) -> Any:
        """Return the beginners' initial state for actions with several dimensions."""
        return self.of_beginners.begin_in_branches(num_agents, num_envs, num_branches)

    def choose(self, key: jax.Array, scores: jax.Array, epsilon: jax.Array, state: Any) -> Choice:
        """Let beginners explore; the random draws do not depend on which agents are experts."""
        return self._but_for_experts(self.of_beginners.choose(key, scores, epsilon, state), scores)

    def choose_allowed(
        self, key: jax.Array, scores: jax.Array, epsilon: jax.Array, state: Any, allowed: jax.Array
    ) -> Choice:
        """Let beginners explore among the allowed actions."""
        return self._but_for_experts(self.of_beginners.choose_allowed(key, scores, epsilon, state, allowed), scores)

    def _but_for_experts(self, choice: Choice, scores: jax.Array) -> Choice:
        explores = ~np.isin(np.arange(len(scores)), self.experts)[:, None]
        is_exploring = choice.is_exploring & explores
        return _merged(is_exploring, choice.is_starting & explores, choice.actions, scores, choice.state)


@dataclass(frozen=True)
class Greedy(Exploration):
    """Always the best action, for evaluation."""

    handles_masks = True
    handles_branches = True

    def begin(self, num_agents: int, num_envs: int) -> tuple[()]:
        """Return an empty state."""
        del num_agents, num_envs
        return ()

    def choose(self, key: jax.Array, scores: jax.Array, epsilon: jax.Array, state: tuple[()]) -> Choice:
        """Never explore."""
        del key, epsilon
        nowhere = jnp.zeros(scores.shape[:2], bool)
        return _merged(nowhere, nowhere, nowhere.astype(jnp.int32), scores, state)
