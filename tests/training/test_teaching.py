"""Teachers in a student's situation: with any kind of memory, their own networks judge the student's observation."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import consmarl
from consmarl.experiments.configuration.config import TrainConfig
from consmarl.experiments.configuration.methods import METHODS
from consmarl.learners.interface import EpisodeBatch, TeamSpec
from consmarl.learners.iql import IQL
from consmarl.learners.team_networks import Memory, Weights
from consmarl.learners.team_value import TeamValue
from consmarl.sharing.options import TeacherMemory
from consmarl.training import teaching
from consmarl.training.teaching import Place, Teachers, first_recall, in_students_place

WORLD = consmarl.make("pgm-3ag", grid=(3, 4), mining_steps=1, stones_per_pile=2, view=(3, 3), episode_limit=8)
NUM_STEPS, NUM_ENVS = 9, 4


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def asked_and_expected(learner, remember, requests, codes, before, after, last_actions):
    """Every teacher's answers to requests, and the values that its own network computes there: two arrays."""
    parameters = learner.parameters(learner.init(jax.random.key(0)))
    num_agents, num_envs, size = codes.shape
    teachers = Teachers(learner, parameters, remember, jax.random.key(3))
    ready = in_students_place(teachers, Place(codes, last_actions, Memory(before), Memory(after), jnp.int32(2)), ())
    students, envs = (jnp.array(each) for each in zip(*requests, strict=True))
    asked = ready(jnp.zeros((num_agents, num_envs), bool)).ask_teachers(students, envs)

    def of_one(student, env, teacher):
        hidden = {
            TeacherMemory.STUDENT: before[student, env],
            TeacherMemory.STUDENT_AFTER_STEP: after[student, env],
            TeacherMemory.OWN: before[teacher, env],
        }[remember]
        # the teacher acts in a team in which every agent is in the student's situation
        everybody = jnp.broadcast_to(hidden, (num_agents, 1, len(hidden)))
        seen = jnp.broadcast_to(codes[student, env], (num_agents, 1, size))
        did = jnp.full((num_agents, 1), last_actions[student, env])
        return learner.networks.step(parameters, Memory(everybody), seen, did)[1][teacher, 0]

    expected = [[of_one(student, env, teacher) for student, env in requests] for teacher in range(num_agents)]
    return asked, jnp.array(expected)


OF_NOW = [memory for memory in TeacherMemory if memory is not TeacherMemory.HISTORY]


@pytest.mark.parametrize(
    ("remember", "weights"),
    [(memory, Weights.SEPARATE) for memory in OF_NOW] + [(TeacherMemory.STUDENT, Weights.SHARED)],
)
def test_teachers_evaluate_the_students_situation(remember, weights):
    learner = IQL(TeamSpec.of(WORLD), hidden_size=4, weights=weights)
    random = np.random.default_rng(0)
    codes = random.integers(0, 3, (3, 2, WORLD.observation_size)).astype(np.uint8)
    before, after = random.normal(size=(2, 3, 2, 4)).astype(np.float32)
    last_actions = np.array([[0, 1], [2, -1], [3, 4]], np.int32)
    asked, expected = asked_and_expected(learner, remember, ((2, 1), (0, 0)), codes, before, after, last_actions)
    np.testing.assert_allclose(asked, expected, rtol=1e-5, atol=1e-6)
    assert len({row.tobytes() for row in np.asarray(asked).reshape(6, -1)}) == 6  # all answers differ


def learner_of(method, **settings):
    """A method's learner for a small environment."""
    sizes = dict(hidden_size=4, batch_episodes=2, replay_episodes=4, warmup_steps=0)
    config = TrainConfig(method=method, preset="paper", set=("grid=3,4", "view=3,3"), **sizes).with_options(settings)
    return config.trainer().learner


@functools.partial(jax.jit, static_argnums=0)
def told_step_by_step(learner, parameters, first_memory, codes, actions, is_asking):
    """Play an episode and ask about every student: teachers' values [step, teacher, student, env, action], and how many
    steps of each student's episode they remember, [step, student, env]."""
    num_agents, num_envs = is_asking.shape[1:]
    students, envs = (grid.reshape(-1) for grid in jnp.indices((num_agents, num_envs)))
    teachers = Teachers(learner, parameters, TeacherMemory.HISTORY, jax.random.key(3))
    nothing = jnp.full((1, num_agents, num_envs), -1, jnp.int32)

    def step(recall, now):
        number, seen, last_actions, asks = now
        place = Place(seen, last_actions, first_memory, first_memory, number)
        ready = in_students_place(teachers, place, recall)(asks)
        values = ready.ask_teachers(students, envs).reshape(num_agents, num_agents, num_envs, -1)
        return ready.recall, (values, ready.recall.num_steps.reshape(num_agents, num_envs))

    now = (jnp.arange(len(codes)), codes, jnp.concatenate([nothing, actions[:-1]]), is_asking)
    return jax.lax.scan(step, first_recall(teachers.remember, first_memory, codes[0], len(codes)), now)[1]


@functools.partial(jax.jit, static_argnums=0)
def told_by_whole_episodes(learner, parameters, notes, codes, actions):
    """Run every agent's network over a student's whole episode, as in learning: [agent, step, env, …].

    Codes are the student's [step, env, code], actions [step, env].
    """
    num_agents = learner.spec.num_agents
    episodes = codes.swapaxes(0, 1), actions.T
    if isinstance(learner, TeamValue):
        everybodys = [jnp.broadcast_to(rows[None], (num_agents, *rows.shape)) for rows in episodes]
        everybodys[1] = everybodys[1][..., :-1]
        return learner.action_values(parameters, EpisodeBatch(*everybodys, *[None] * 4, notes))

    def of_one(agent, own):
        inputs = learner.networks.episode_inputs(agent, episodes[0], episodes[1][:, :-1])
        return learner.networks.unroll(own, inputs)[1]

    return jax.vmap(of_one)(jnp.arange(num_agents), learner.networks.by_agent(parameters))


LEARNERS = {
    **{method: (method, {}) for method, entry in METHODS.items() if entry.is_value_based},
    "iql with shared weights": ("iql", {"weights": "shared"}),
    "iql with footprints": ("iql", {"learn.footprints": True}),
    "maven with footprints": ("maven", {"learn.footprints": True}),
}


WAYS = [(name, "together") for name in LEARNERS] + [(name, "by lists") for name in ("iql", "maven")]


@pytest.mark.parametrize(("name", "goes_on"), WAYS)
def test_teachers_process_the_students_episode_with_their_own_networks(name, goes_on, monkeypatch):
    if goes_on == "by lists":
        monkeypatch.setattr(teaching, "MOST_TOGETHER", 0)
        monkeypatch.setattr(teaching, "LISTS", (5, 2))
        jax.clear_caches()  # compiled programs depend on these numbers
    method, settings = LEARNERS[name]
    learner = learner_of(method, **settings)
    random = np.random.default_rng(0)
    by_pair = (NUM_STEPS, learner.spec.num_agents, NUM_ENVS)
    codes = random.integers(0, 3, (*by_pair, learner.spec.observation_size)).astype(np.uint8)
    actions = random.integers(0, learner.spec.num_actions, by_pair).astype(np.int32)
    is_asking = random.random(by_pair) < 0.25
    is_asking[2, :-1] = True  # most students ask
    is_asking[4] = False
    is_asking[-1] = True
    parameters = jax.jit(lambda key: learner.parameters(learner.init(key)))(jax.random.key(0))
    memory = learner.begin(parameters, jax.random.key(1), codes[0])
    values, num_steps = told_step_by_step(learner, parameters, memory, codes, actions, is_asking)
    for student in range(learner.spec.num_agents):
        whole = told_by_whole_episodes(
            learner, parameters, learner.notes(memory), codes[:, student], actions[:, student]
        )
        for step, env in np.argwhere(is_asking[:, student]):
            told = values[step, :, student, env]
            np.testing.assert_allclose(told, whole[:, step, env], rtol=1e-4, atol=1e-5)
    assert (
        len(np.unique(np.asarray(values[-1]).round(6))) > values[-1].size / 2
    )  # teacher, student and environment all matter
    steps = np.arange(NUM_STEPS)[:, None, None]
    assert (np.where(is_asking, num_steps == steps, num_steps <= steps)).all()
    if goes_on == "by lists":
        assert (num_steps < steps).sum() > num_steps.size / 4  # memories are updated only where requested
        assert (num_steps[2] == 2).all()  # most were requested, so all are updated
    else:
        assert (num_steps[4] == num_steps[3]).all()  # no student asks, so nothing is updated
