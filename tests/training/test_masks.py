"""Forbidden actions are never taken, never advised and never bootstrapped from; absent agents learn nothing."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from consmarl.environments.masks import choices, draw_allowed, is_present, only_allowed
from consmarl.errors import UsageError
from consmarl.experiments.configuration.config import TrainConfig
from consmarl.learners import td
from consmarl.learners.ga_comm import GAComm
from consmarl.learners.i2q import I2Q
from consmarl.learners.interface import EpisodeBatch, TeamSpec
from consmarl.learners.iql import IQL, TargetMemory
from consmarl.learners.maven import MAVEN, MavenNotes
from consmarl.learners.policy_gradient import mixed_log_policy
from consmarl.learners.qmix import QMIX
from consmarl.learners.seql import SEQL
from consmarl.learners.team_networks import Weights
from consmarl.learners.temporal_difference import following_best
from consmarl.learners.vdn import VDN
from consmarl.sharing.cons import Cons
from consmarl.sharing.consulting import Consulting
from consmarl.sharing.record import Reply
from consmarl.training.exploration import (
    EpsilonGreedy,
    EpsilonGreedyTogether,
    EpsilonSquared,
    EpsilonZGreedy,
    Exploration,
    ExploringBeginners,
    Greedy,
    Run,
    SampledPolicy,
)
from consmarl.training.loop import Trainer
from tests.training.masked import ALLOWED, LIMIT, NEVER, NUM_ACTIONS, NUM_AGENTS, Turnstile

WORLD = Turnstile()
SPEC = TeamSpec.of(WORLD)


def some_masks(seed, *shape):
    """Draw masks with at least one allowed action in every row."""
    allowed = np.random.default_rng(seed).random(shape) < 0.5
    allowed[..., -1] |= ~allowed.any(axis=-1)
    return jnp.asarray(allowed)


def is_fine(actions, allowed):
    return np.take_along_axis(np.asarray(choices(allowed)), np.asarray(actions)[..., None], axis=-1)[..., 0]


EXPLORATIONS = [
    EpsilonGreedy(),
    EpsilonSquared(),
    EpsilonGreedyTogether(),
    EpsilonZGreedy(),
    SampledPolicy(),
    ExploringBeginners(EpsilonZGreedy(), experts=(1,)),
    Greedy(),
]


@pytest.mark.parametrize("exploration", EXPLORATIONS, ids=lambda each: type(each).__name__)
def test_no_exploration_takes_forbidden_actions(exploration):
    shape = (3, 200, 5)
    state, choose = exploration.begin(*shape[:2]), jax.jit(exploration.choose_allowed)
    for number in range(4):  # several steps, so that some runs reach a step where their action is forbidden
        key_scores, key_choose = jax.random.split(jax.random.key(number))
        allowed = some_masks(number, *shape).at[2, :50].set(False)  # absent
        among = choices(allowed)
        scores = only_allowed(jax.random.normal(key_scores, shape), among)
        choice = choose(key_choose, scores, jnp.float32(0.7), state, among)
        assert is_fine(choice.actions, allowed).all()
        assert (np.asarray(choice.actions)[2, :50] == 0).all()
        greedy = ~choice.is_exploring & (type(exploration) is not SampledPolicy)
        np.testing.assert_array_equal(choice.actions[greedy], jnp.argmax(scores, axis=-1)[greedy])
        state = choice.state


@pytest.mark.parametrize("exploration", [EpsilonGreedy(), EpsilonGreedyTogether(), EpsilonZGreedy(), SampledPolicy()])
def test_exploring_is_uniform_over_the_allowed_actions(exploration):
    shape = (2, 6000, 4)
    allowed = jnp.broadcast_to(jnp.array([[[True, False, True, True]], [[False, True, False, True]]]), shape)
    state = exploration.begin(*shape[:2])
    scores = only_allowed(jnp.zeros(shape), allowed)
    choice = jax.jit(exploration.choose_allowed)(jax.random.key(3), scores, jnp.float32(1.0), state, allowed)
    for agent, expected in enumerate(([1 / 3, 0, 1 / 3, 1 / 3], [0, 1 / 2, 0, 1 / 2])):
        shares = np.bincount(np.asarray(choice.actions)[agent], minlength=4) / shape[1]
        np.testing.assert_allclose(shares, expected, atol=0.03)  # four standard deviations are 0.026


def test_a_repeated_action_ends_where_it_is_forbidden():
    under_way = Run(jnp.full((1, 2), 2), jnp.full((1, 2), 9))
    allowed = jnp.array([[[True, True, True], [True, True, False]]])
    scores = only_allowed(jnp.array([[[5.0, 1.0, 0.0]] * 2])[0][None], allowed)
    choice = jax.jit(EpsilonZGreedy().choose_allowed)(jax.random.key(0), scores, jnp.float32(0.0), under_way, allowed)
    assert choice.actions.tolist() == [[2, 0]]
    assert choice.is_exploring.tolist() == [[True, False]]
    assert choice.state.num_left.tolist() == [[8, 0]]


def test_only_allowed_actions_are_drawn():
    allowed = some_masks(0, 5000, 6)
    drawn = draw_allowed(jax.random.key(0), allowed)
    assert is_fine(drawn, allowed).all()


def test_a_masked_policy_equals_one_over_only_the_allowed_actions():
    logits, allowed = jax.random.normal(jax.random.key(0), (5,)), jnp.array([True, False, True, True, False])
    for epsilon in (0.0, 0.3, 1.0):
        masked = mixed_log_policy(logits, jnp.float32(epsilon), allowed)
        np.testing.assert_allclose(masked[allowed], mixed_log_policy(logits[allowed], jnp.float32(epsilon)), atol=1e-6)
        assert (masked[~allowed] == -jnp.inf).all()
        gradient = jax.grad(lambda some, e=epsilon: mixed_log_policy(some, jnp.float32(e), allowed)[2])(logits)
        assert jnp.isfinite(gradient).all()


def test_the_following_value_is_the_best_of_the_allowed_actions():
    """Compares with a slow version that goes step by step."""
    rng = np.random.default_rng(1)
    values, online = rng.normal(size=(2, 5, 7, 4)).astype(np.float32)
    actions, allowed = rng.integers(0, 4, (5, 7)), np.array(some_masks(2, 5, 7, 4))
    allowed[1, 3] = False  # absent
    for choosing in (None, online):
        found = following_best(jnp.asarray(values), jnp.asarray(actions), choosing, jnp.asarray(allowed))
        for step, episode in np.ndindex(5, 7):
            may = np.flatnonzero(allowed[step, episode])
            by = (values if choosing is None else choosing)[step, episode]
            expected = 0.0 if not len(may) else values[step, episode, may[np.argmax(by[may])]]
            assert found.values[step, episode] == pytest.approx(expected)
            if step + 1 < 5 and len(may):
                taken = actions[step + 1, episode]
                assert bool(found.is_best[step, episode]) == (taken == may[np.argmax(by[may])])


def batch_of(num_episodes=5, **changes):
    """Return random episodes with the masks of `Turnstile`."""
    rng = np.random.default_rng(5)
    allowed = jnp.broadcast_to(
        jnp.asarray(ALLOWED).swapaxes(0, 1)[:, None], (NUM_AGENTS, num_episodes, *ALLOWED.shape[::2])
    )
    actions = draw_allowed(jax.random.key(2), choices(allowed[:, :, :-1]))
    batch = EpisodeBatch(
        codes=jnp.asarray(rng.integers(0, 4, (NUM_AGENTS, num_episodes, LIMIT + 1, 2)), jnp.uint8),
        actions=actions.astype(jnp.uint8),
        rewards=jnp.asarray(rng.normal(size=actions.shape), jnp.float32),
        num_steps=jnp.array([LIMIT, LIMIT, 4, 3, LIMIT][:num_episodes]),
        terminated=jnp.array([False, True, True, False, False][:num_episodes]),
        epsilon=jnp.full((num_episodes, LIMIT), 0.1),
        notes=MavenNotes(jnp.arange(num_episodes) % 2, jnp.full(num_episodes, 0.5)),
        allowed=allowed,
    )
    return batch._replace(**changes)


WHOLE = dict(hidden_size=4, target_memory=TargetMemory.WHOLE_EPISODE)
LEARNERS = {
    "iql": IQL(SPEC, **WHOLE),
    "iql-shared-watkins": IQL(SPEC, **WHOLE, weights=Weights.SHARED, target=td.Target.WATKINS, double_q=True),
    "iql-optimistic": IQL(SPEC, **WHOLE, target=td.Target.OPTIMISTIC, settle_after=0.2, trace_tolerance=0.1),
    "seql": SEQL(SPEC, **WHOLE),
    "i2q": I2Q(SPEC, hidden_size=4, value_size=4),
    "vdn": VDN(SPEC, hidden_size=4),
    "qmix": QMIX(SPEC, hidden_size=4, mixer_size=4),
    "maven": MAVEN(SPEC, hidden_size=4, mixer_size=4, num_strategies=2, policy_size=4, discriminator_size=4),
}


def loved(networks, action, amount=1000.0):
    """Return networks, of any kind, that value one action far above all others, by the bias of their heads."""

    def raised(path, leaf):
        name = jax.tree_util.keystr(path)
        is_head = ("head_bias" in name and "mixer" not in name) and leaf.shape[-1] == NUM_ACTIONS
        return leaf.at[..., action].add(amount) if is_head else leaf

    return jax.tree_util.tree_map_with_path(raised, networks)


@pytest.mark.parametrize("name", LEARNERS)
def test_no_learner_bootstraps_from_forbidden_actions(name):
    """A huge value of a forbidden action does not change the loss; if nothing is forbidden, it does."""
    learner = LEARNERS[name]
    state = jax.jit(learner.init)(jax.random.key(0))
    update = jax.jit(lambda state, batch: learner.update(state, batch, jax.random.key(1))[1]["loss"])
    in_love = state._replace(target=loved(state.target, NEVER), online=loved(state.online, NEVER))
    assert not jax.tree.all(jax.tree.map(lambda a, b: (a == b).all(), state.target, in_love.target))
    batch = batch_of()
    expected = update(state, batch)
    assert jnp.isfinite(expected).all()
    np.testing.assert_allclose(update(in_love, batch), expected, rtol=1e-4)
    free = batch_of(allowed=None)
    assert not np.allclose(update(in_love, free), update(state, free), rtol=1e-2)


@pytest.mark.parametrize("name", ["iql", "i2q"])
def test_an_agent_learns_nothing_from_steps_in_which_it_is_absent(name):
    learner = LEARNERS[name]
    state = jax.jit(learner.init)(jax.random.key(0))
    update = jax.jit(lambda batch: learner.update(state, batch, jax.random.key(1))[1])
    batch = batch_of()
    was_there = np.asarray(is_present(batch.allowed[:, :, :-1]))
    assert not was_there.all()
    expected = update(batch)
    elsewhere = update(batch._replace(rewards=jnp.where(was_there, batch.rewards, 50.0)))
    here = update(batch._replace(rewards=jnp.where(was_there, 50.0, batch.rewards)))
    np.testing.assert_array_equal(elsewhere["loss"], expected["loss"])
    assert not np.allclose(here["loss"], expected["loss"])
    gone = update(batch._replace(allowed=batch.allowed.at[1].set(False)))  # agent 1 was never present
    assert jnp.isfinite(gone["loss"]).all()
    assert float(gone["loss"][1]) == 0


def test_no_value_follows_when_an_agent_leaves():
    learner, batch = LEARNERS["iql"], batch_of()
    own = batch._replace(allowed=batch.allowed[2])
    # agent 2 is absent in steps 2 and 3: nothing follows step 1, like every step before an absence
    np.testing.assert_array_equal(learner.continues(own)[:, 0], [1, 0, 0, 1, 1, 0])
    np.testing.assert_array_equal(learner.counted(own)[:, 0], [1, 1, 0, 0, 1, 1])
    np.testing.assert_array_equal(learner.counted(own)[:, 3], [1, 1, 0, 0, 0, 0])  # three steps were played


def test_a_policy_gradient_ignores_forbidden_actions():
    learner = GAComm(SPEC, hidden_size=4, attention_size=4, critic_size=4)
    state = jax.jit(learner.init)(jax.random.key(0))
    update = jax.jit(lambda state, batch: learner.update(state, batch, jax.random.key(1))[1])
    actor = state.actor
    bias = actor.head.bias.at[NEVER].add(1000.0)
    in_love = state._replace(actor=actor._replace(head=actor.head._replace(bias=bias)))
    batch = batch_of(num_episodes=2, notes=())
    expected = update(state, batch)
    assert jnp.isfinite(expected["loss"]).all()
    np.testing.assert_allclose(update(in_love, batch)["loss"], expected["loss"], rtol=1e-4)


def trainer_of(sharing=None, **changes):
    parts = dict(world=WORLD, learner=IQL(SPEC, hidden_size=4), num_envs=4, batch_episodes=2, replay_episodes=8,
                 warmup_steps=0, exploration=EpsilonZGreedy())  # fmt: skip
    return Trainer(**parts | changes, **({} if sharing is None else {"sharing": sharing}))


class TestATeamThatShares:
    """CONS with forbidden actions: playing, recording and learning."""

    @pytest.fixture(scope="class")
    @classmethod
    def run(cls):
        sharing = Cons(start_episode=0, ask_scale=0.01, requires_seen=False, initial_places=1024)
        trainer = trainer_of(sharing)
        state, report = trainer.run(trainer.init(0), 6, is_recording=True)
        return trainer, jax.device_get(state), jax.device_get(report)

    def test_forbidden_actions_are_not_taken(self, run):
        _, state, report = run
        assert (report.counters.team["caught"] == 0).all()
        assert report.returns.min() > -1
        assert np.isfinite(report.learning["loss"]).all()
        stored = state.replay.episodes
        np.testing.assert_array_equal(
            stored.allowed, np.broadcast_to(ALLOWED.swapaxes(0, 1)[:, None], stored.allowed.shape)
        )
        assert is_fine(stored.actions.astype(int), jnp.asarray(stored.allowed[:, :, :-1])).all()

    def test_forbidden_actions_are_not_advised(self, run):
        record = run[2].records.step  # [round, step, agent, env, …]
        asked = record.is_asking
        assert asked.sum() > 20
        assert record.student.is_advised[asked].sum() > 5
        allowed = jnp.asarray(record.allowed)[asked]
        for part in (record.teachers.best_action, record.teachers.worst_action):
            named = part[asked].astype(int)  # [request, teacher]
            sent = record.teachers.reply[asked] == Reply.ANSWERED
            per_teacher = jnp.broadcast_to(allowed[:, None], (*named.shape, NUM_ACTIONS))
            assert is_fine(named, per_teacher)[sent].all()
        for policy in (record.student.policy_before, record.student.modified, record.student.policy_after):
            assert (policy[asked][~np.asarray(allowed)] == 0).all()
        np.testing.assert_allclose(record.student.policy_after[asked].sum(axis=-1), 1, atol=1e-5)
        assert is_fine(record.action[asked].astype(int), allowed).all()

    def test_agents_without_a_choice_and_absent_agents_do_not_ask(self, run):
        record = run[2].records.step
        assert not record.is_asking[record.allowed.sum(axis=-1) < 2].any()

    def test_greedy_and_consulting_agents_do_not_take_forbidden_actions(self, run):
        trainer, state, _ = run
        parameters = trainer.learner.parameters(jax.tree.map(jnp.asarray, state.learner))
        in_love = loved(parameters, NEVER)
        for sharing in (None, *(Consulting(mode) for mode in ("mean", "cons"))):
            played = trainer.evaluate(in_love, jax.random.key(0), 2, *([] if sharing is None else [sharing]))
            assert (played.counters.team["caught"] == 0).all()


def test_environments_without_masks_store_none():
    free = dataclasses.replace(WORLD, is_masked=False)
    trainer = trainer_of(world=free, learner=IQL(TeamSpec.of(free), hidden_size=4))
    shapes = trainer.shapes()
    assert shapes.replay.episodes.allowed is None
    episodes = jax.eval_shape(
        lambda: trainer.evaluate(
            trainer.learner.parameters(trainer.learner.init(jax.random.key(0))), jax.random.key(0), 2
        )
    )
    assert episodes.batch.allowed is None


@dataclasses.dataclass(frozen=True)
class Heedless(Exploration):
    def begin(self, num_agents, num_envs):
        del num_agents, num_envs
        return ()

    def choose(self, key, scores, epsilon, state):
        raise NotImplementedError


@pytest.mark.usefixtures("unregistered")
def test_explorations_that_ignore_masks_are_refused():
    import consmarl

    consmarl.register_world("turnstile", Turnstile)
    consmarl.register_exploration("heedless", Heedless)
    with pytest.raises(UsageError, match=r"turnstile may forbid actions, which exploration heedless does not heed"):
        TrainConfig(env="turnstile", exploration="heedless", episodes=8).trainer()
    with pytest.raises(UsageError, match="Heedless cannot be used"):
        Heedless().choose_allowed(None, None, None, None, None)
    assert TrainConfig(env="turnstile", episodes=8).trainer().replay.num_masked == NUM_ACTIONS
