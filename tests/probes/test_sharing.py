"""Sharing in tiny environments: advice passes on what one agent discovered, and agents without knowledge give none."""

import dataclasses
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from consmarl import AdHocTD, Cons
from consmarl.learners.interface import TeamSpec
from consmarl.learners.iql import IQL
from consmarl.learners.optimiser import RMSprop
from consmarl.sharing.none import NoSharing
from consmarl.training.exploration import EpsilonGreedy, LinearSchedule
from consmarl.training.loop import Trainer
from tests.probes.worlds import Probe


@dataclass(frozen=True)
class Lever(Probe):
    """Two agents, two steps, three levers; an agent gets 1 if it pulls the last lever in both steps."""

    num_agents: int = 2
    episode_limit: int = 2
    action_names = ("left", "middle", "right")

    def observe(self, state):
        return jnp.broadcast_to(state.num_steps, (2, 1)).astype(jnp.uint8)

    def begin(self, layout):
        del layout
        return super().begin(jnp.ones((), jnp.int32))

    def advance(self, state, actions, draws):
        is_right = actions == 2
        following, outcome = super().advance(state, actions, draws)
        # the bits of the cue say which agents have been right so far
        was_right = ((state.cue[None] >> jnp.arange(2)) & 1) == 1
        so_far = jnp.where(state.num_steps == 0, is_right, was_right & is_right)
        cue = jnp.sum(so_far << jnp.arange(2)).astype(jnp.int32)
        rewards = jnp.where(self.is_last(state), so_far, False).astype(jnp.float32)
        return following._replace(cue=cue), outcome._replace(rewards=rewards)

    def rewards(self, state, actions):
        del state
        return jnp.zeros_like(actions)


@dataclass(frozen=True)
class Strangers(Lever):
    """The same, but the agents never have an observation in common."""

    def observe(self, state):
        return super().observe(state) + 2 * jnp.arange(2, dtype=jnp.uint8)[:, None]

    @property
    def observation_limit(self):
        return np.full(1, 9)


@dataclass(frozen=True)
class OnlyTheFirstExplores(EpsilonGreedy):
    """The second agent always acts greedily."""

    def choose(self, key, scores, epsilon, state):
        choice = super().choose(key, scores, epsilon, state)
        may = jnp.array([True, False])[:, None]
        greedy = jnp.argmax(scores, axis=-1).astype(jnp.int32)
        return choice._replace(
            actions=jnp.where(may, choice.actions, greedy),
            is_exploring=choice.is_exploring & may,
            is_starting=choice.is_starting & may,
        )


class NeverRight(IQL):
    """Initial networks value the last lever least, so that only exploration finds it."""

    def init(self, key):
        state = super().init(key)
        shy = state.online._replace(head_bias=state.online.head_bias.at[:, 2].add(-1.0))
        return state._replace(online=shy, target=jax.tree.map(jnp.copy, shy))


def pulling_right(beside):
    """Give experts beside the team, if there are any, networks that always value the last lever most."""
    return beside._replace(head_bias=beside.head_bias.at[:, 2].set(5.0)) if beside else beside


EXPLORING, NEVER = LinearSchedule(1.0, 0.2, anneal_steps=1000), LinearSchedule(0.0, 0.0)


def returns_after_training(world, sharing, num_rounds=150, epsilon=EXPLORING):
    learner = NeverRight(TeamSpec.of(world), hidden_size=16, target_every_updates=20,
                         optimiser=RMSprop(learning_rate=5e-3))  # fmt: skip
    trainer = Trainer(
        world=world, learner=learner, sharing=sharing, exploration=OnlyTheFirstExplores(),
        epsilon=epsilon, num_envs=8, replay_episodes=512, warmup_steps=0,
    )  # fmt: skip
    state = trainer.init(0)
    state, report = trainer.run(state._replace(beside=pulling_right(state.beside)), num_rounds)
    played = trainer.evaluate(learner.parameters(state.learner), jax.random.key(1), 4)
    advised = np.asarray(report.sharing["advised"]).sum(axis=(0, 2)) if report.sharing else np.zeros(2)
    return np.asarray(played.batch.rewards.sum(axis=2).mean(axis=1)), advised


# with so few observations, counts grow quickly; a small scale keeps agents asking
CONS = Cons(start_episode=200, ask_scale=0.02, policy_temperature=0.1, temperature=0.1)
ADHOC_TD = AdHocTD(start_episode=200, ask_scale=0.02)


def test_without_advice_the_agent_that_never_explores_does_not_learn():
    returns, _ = returns_after_training(Lever(), NoSharing())
    assert returns.tolist() == [1.0, 0.0]


@pytest.mark.parametrize("sharing", [CONS, ADHOC_TD], ids=["CONS", "AdHocTD"])
def test_with_advice_the_agent_that_never_explores_learns(sharing):
    returns, advised = returns_after_training(Lever(), sharing)
    assert returns.tolist() == [1.0, 1.0]
    assert advised[1] > 0


def test_teachers_that_never_saw_the_observation_do_not_answer():
    returns, advised = returns_after_training(Strangers(), Cons(start_episode=200, ask_scale=0.02, requires_seen=True))
    assert advised.tolist() == [0, 0]
    assert returns.tolist() == [1.0, 0.0]


# with a higher temperature than above, because a student with a sharp policy does not follow advice
FROM_THE_START = dataclasses.replace(CONS, start_episode=0, policy_temperature=1.0)


@pytest.mark.parametrize(
    ("sharing", "expected"),
    [
        (FROM_THE_START, [0.0, 0.0]),
        (dataclasses.replace(FROM_THE_START, num_beside=2), [1.0, 1.0]),
        (dataclasses.replace(ADHOC_TD, start_episode=0, num_beside=2), [1.0, 1.0]),
    ],
    ids=["CONS without experts", "CONS", "AdHocTD"],
)
def test_a_team_that_never_explores_learns_from_experts_beside_it(sharing, expected):
    returns, advised = returns_after_training(Lever(), sharing, epsilon=NEVER)
    assert returns.tolist() == expected
    assert (advised > 0).all() or not sharing.num_beside
