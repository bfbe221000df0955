"""The Advisor against the compiled mechanism, and as used by other code."""

import functools
import importlib.util
from pathlib import Path

import jax
import numpy as np
import pytest

from consmarl import AdHocTD, Advisor, Cons, UsageError
from consmarl.sharing.interface import Prepared, Situation
from consmarl.sharing.options import AskGate, AskWhen, Eligibility, Preset, TeacherMemory

EXAMPLES = Path(__file__).parents[2] / "examples"
NUM_AGENTS, NUM_ACTIONS, NUM_STEPS = 4, 5, 12
AT_ONCE = Cons(start_episode=0)

MECHANISMS = {
    "CONS, paper": Cons(start_episode=0, budget_requests=40, budget_answers=30),
    "CONS, release": Cons.preset(Preset.RELEASE, start_episode=0),
    "CONS, first visits": Cons(start_episode=0, ask_when=AskWhen.FIRST_VISIT, ask_scale=0.01),
    "CONS, when exploiting": Cons(start_episode=0, ask_gate=AskGate.EXPLOITING, eligibility=Eligibility.MORE_HOPEFUL),
    "AdHocTD, paper": AdHocTD(start_episode=0, budget_answers=8),
    "AdHocTD, release": AdHocTD.preset(Preset.RELEASE, start_episode=0),
}


def team(random):
    """Random values [teacher, student, action], observations that often repeat, intended actions, and who explores."""
    values = random.normal(size=(NUM_AGENTS, NUM_AGENTS, NUM_ACTIONS)).astype(np.float32)
    codes = random.integers(0, 2, (NUM_AGENTS, 3)).astype(np.uint8)
    return values, codes, random.integers(NUM_ACTIONS, size=NUM_AGENTS), random.random(NUM_AGENTS) < 0.6


@functools.partial(jax.jit, static_argnums=0)
def compiled_step(mechanism, key, situation, values, state, memory):
    ready = Prepared(lambda students, _envs: values[:, students])
    return mechanism.share(key, situation, lambda _: ready, state, memory)


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_advisor_agrees_exactly_with_the_compiled_mechanism(name):
    mechanism = MECHANISMS[name]
    advisor = Advisor(NUM_AGENTS, NUM_ACTIONS, mechanism)
    state = mechanism.init(NUM_AGENTS, NUM_ACTIONS)
    random, num_advised = np.random.default_rng(1), 0
    for episode in range(25):
        advisor.begin_episode()
        memory = mechanism.begin(NUM_AGENTS, 1, NUM_STEPS)
        for step in range(NUM_STEPS):
            values, codes, actions, explores = team(random)
            key = jax.random.key(episode * NUM_STEPS + step)
            situation = Situation(
                codes=codes[:, None], values=values[range(NUM_AGENTS), range(NUM_AGENTS)][:, None],
                actions=actions.astype(np.int32)[:, None], is_exploring=explores[:, None],
                is_starting=explores[:, None], is_live=np.ones(1, bool), epsilon=np.float32(0.3),
                episode=np.array([episode], np.int32), step=np.int32(step),
            )  # fmt: skip
            shared = compiled_step(mechanism, key, situation, values, state, memory)
            state, memory = shared.state, shared.memory
            decided = advisor.decide(key, situation, codes, lambda j, i, _seen, values=values: values[j, i])
            assert decided.tolist() == shared.actions[:, 0].tolist()
            assert advisor.is_advised.tolist() == (shared.traffic.advised[:, 0] == 1).tolist()
            assert advisor.requests_left.tolist() == state.requests_left.tolist()
            assert advisor.answers_left.tolist() == state.answers_left.tolist()
            num_advised += int(shared.traffic.advised.sum())
    assert num_advised > 10


def play(advisor, random, num_steps):
    taken = []
    for _ in range(num_steps):
        values, codes, actions, explores = team(random)
        own = values[range(NUM_AGENTS), range(NUM_AGENTS)]
        chosen = advisor.advise(codes, own, actions, lambda j, i, _seen, values=values: values[j, i],
                                is_exploring=explores, epsilon=0.3)  # fmt: skip
        taken.append(chosen.tolist())
    return taken


REMEMBERING = Cons(start_episode=0, ask_scale=1e-6, teacher_memory=TeacherMemory.HISTORY)


def test_teachers_with_history_get_the_students_observations_and_actions():
    advisor, random = Advisor(2, 3, REMEMBERING), np.random.default_rng(0)
    seen, done, shown = [], [], []

    def ask(teacher, student, history):
        assert teacher != student
        shown.append((student, history))
        return random.normal(size=3)

    reused = np.zeros((2, 4), np.float32)  # environments may reuse their arrays
    for episode in range(3):
        advisor.begin_episode()
        seen, done = [], [np.full(2, -1)]
        for _ in range(4):
            reused[:] = random.normal(size=reused.shape)
            seen.append(reused.copy())
            shown.clear()
            done.append(advisor.advise(reused, random.normal(size=(2, 3)), random.integers(3, size=2), ask))
            assert {student for student, _ in shown} == (set() if episode == 0 else {0, 1})
            for student, history in shown:
                np.testing.assert_array_equal(history.observations, np.array(seen)[:, student], strict=True)
                np.testing.assert_array_equal(history.last_actions, np.array(done)[:-1, student])
    assert advisor.requests_left.max() < 50_000  # both were advised, and did as advised


def test_histories_can_be_saved_and_restored_in_the_middle_of_an_episode(tmp_path):
    advisor = Advisor(NUM_AGENTS, NUM_ACTIONS, REMEMBERING)

    def goes_on(advisor):
        histories, random = [], np.random.default_rng(5)
        for _ in range(3):
            values, codes, actions, _ = team(random)
            own = values[range(NUM_AGENTS), range(NUM_AGENTS)]
            advisor.advise(
                codes, own, actions, lambda j, i, past, values=values: histories.append(past) or values[j, i]
            )
        return [(history.observations.tolist(), history.last_actions.tolist()) for history in histories]

    advisor.begin_episode()
    advisor.begin_episode()
    goes_on(advisor)
    np.savez(tmp_path / "state.npz", **advisor.state_dict())
    other = Advisor(NUM_AGENTS, NUM_ACTIONS, REMEMBERING)
    with np.load(tmp_path / "state.npz") as saved:
        other.load_state_dict(dict(saved))
    expected = goes_on(advisor)
    assert goes_on(other) == expected
    assert max(len(observations) for observations, _ in expected) == 6
    state = advisor.state_dict()
    with pytest.raises(UsageError, match="observations and actions do not fit together"):
        other.load_state_dict(state | {"history.0.actions": state["history.0.actions"][1:]})
    with pytest.raises(UsageError, match=r"lacks 'history.0.observations': it is of another team, of other settings"):
        other.load_state_dict(Advisor(NUM_AGENTS, NUM_ACTIONS, AT_ONCE).state_dict())


def test_observations_that_change_shape_are_refused_with_history():
    advisor = Advisor(2, 2, REMEMBERING)
    advisor.begin_episode()
    advisor.advise([np.zeros(2), np.zeros(3)], np.zeros((2, 2)), [0, 0], lambda *_: [0.0, 0.0])
    with pytest.raises(UsageError, match=r"of one shape .*: agent 1's had \(3,\), and this one has \(2,\)\."):
        advisor.advise([np.zeros(2), np.zeros(2)], np.zeros((2, 2)), [0, 0], lambda *_: [0.0, 0.0])


@pytest.mark.parametrize("name", ["CONS, paper", "CONS, first visits", "AdHocTD, release"])
def test_a_restored_advisor_continues_identically(name, tmp_path):
    advisor = Advisor(NUM_AGENTS, NUM_ACTIONS, MECHANISMS[name], seed=3)
    random = np.random.default_rng(0)
    advisor.begin_episode()
    play(advisor, random, 5)
    advisor.begin_episode()
    play(advisor, random, 5)
    np.savez(tmp_path / "state.npz", **advisor.state_dict())
    later_draws = np.random.default_rng(7)
    expected = play(advisor, later_draws, 30)

    other = Advisor(NUM_AGENTS, NUM_ACTIONS, MECHANISMS[name])
    with np.load(tmp_path / "state.npz") as saved:
        other.load_state_dict(dict(saved))
    assert play(other, np.random.default_rng(7), 30) == expected
    assert other.requests_left.tolist() == advisor.requests_left.tolist()
    assert other.answers_left.tolist() == advisor.answers_left.tolist()


def test_the_same_seed_gives_the_same_advice_and_another_seed_other_advice():
    def advice(seed):
        advisor = Advisor(NUM_AGENTS, NUM_ACTIONS, MECHANISMS["CONS, paper"], seed=seed)
        advisor.begin_episode()
        advisor.begin_episode()
        return play(advisor, np.random.default_rng(0), 30)

    assert advice(1) == advice(1)
    assert advice(1) != advice(2)


def test_teachers_without_budget_are_not_asked():
    advisor = Advisor(3, 2, Cons(start_episode=0, budget_answers=0, ask_scale=1e-6))
    advisor.begin_episode()
    advisor.begin_episode()

    def refuse(teacher, student, observation):
        raise AssertionError((teacher, student, observation))

    assert advisor.advise([0, 1, 2], np.zeros((3, 2)), [0, 1, 0], refuse).tolist() == [0, 1, 0]
    assert len(advisor.exchanges) == 3  # all asked, and nobody could answer


def test_observations_may_be_numbers_or_arrays_and_negative_zero_is_zero():
    advisor = Advisor(2, 2, Cons(start_episode=0, ask_scale=1e-6))
    advisor.begin_episode()
    seen = []
    ask = lambda _j, _i, observation: seen.append(observation) or [1.0, 0.0]  # noqa: E731
    advisor.begin_episode()
    advisor.advise([np.array([0.0, 1.0]), 5], np.zeros((2, 2)), [0, 0], ask)
    advisor.advise([np.array([-0.0, 1.0]), 5], np.zeros((2, 2)), [0, 0], ask)
    assert advisor.exchanges[0].teachers.num_visits.tolist() == [2, 0]
    assert advisor.exchanges[1].teachers.num_visits.tolist() == [0, 2]


VALUES = np.zeros((3, 2))


@pytest.mark.parametrize(
    ("arguments", "settings", "sentence"),
    [
        (([0, 1], VALUES, [0, 0, 0]), {}, "observations must be 3"),
        (([0, 1, 2], np.zeros((3, 4)), [0, 0, 0]), {}, r"values must be finite numbers of shape \(3, 2\)"),
        (([0, 1, 2], VALUES * np.nan, [0, 0, 0]), {}, "values must be finite"),
        (([0, 1, 2], VALUES, [0, 0, 2]), {}, "actions must be 3 whole numbers from 0 to 1"),
        (([0, 1, 2], VALUES, [0.0, 0.5, 1.0]), {}, "actions must be 3 whole numbers"),
        (([0, 1, 2], VALUES, [0, 0, 0]), dict(ask_gate=AskGate.EXPLORING), "by is_exploring"),
        (([0, 1, 2], VALUES, [0, 0, 0]), dict(ask_gate=AskGate.EXPLOITING), "by is_exploring"),
        (([0, 1, {}], VALUES, [0, 0, 0]), {}, "an observation must be a number or an array"),
    ],
)
def test_invalid_input_is_refused_and_not_counted(arguments, settings, sentence):
    advisor = Advisor(3, 2, Cons(start_episode=0, **settings))
    advisor.begin_episode()
    with pytest.raises(UsageError, match=sentence):
        advisor.advise(*arguments, lambda *_: [0.0, 0.0])
    counts = [rows for name, rows in advisor.state_dict().items() if name.endswith("counts")]
    assert all(len(rows) == 0 for rows in counts)  # nothing was counted


def test_misuse_of_an_advisor_is_refused():
    with pytest.raises(UsageError, match="begin_episode"):
        Advisor(3, 2, AT_ONCE).advise([0, 1, 2], VALUES, [0, 0, 0], lambda *_: [0.0, 0.0])
    with pytest.raises(UsageError, match="at least 2 agents"):
        Advisor(1, 2, AT_ONCE)
    with pytest.raises(UsageError, match="must be a mechanism"):
        Advisor(3, 2, "cons")
    with pytest.raises(UsageError, match="3 agents with 2 actions"):
        Advisor(3, 4, AT_ONCE).load_state_dict(Advisor(3, 2, AT_ONCE).state_dict())
    with pytest.raises(UsageError, match="the state lacks"):
        Advisor(3, 2, AT_ONCE).load_state_dict({})
    release = Advisor(3, 2, Cons.preset("release", start_episode=0))
    release.begin_episode()
    with pytest.raises(UsageError, match="by epsilon"):
        release.advise([0, 1, 2], VALUES, [0, 0, 0], lambda *_: [0.0, 0.0], is_exploring=[True] * 3)


def test_an_advisor_warns_if_sharing_starts_late():
    with pytest.warns(UserWarning, match=r"until episode 5,000 is over: pass Cons\(start_episode=0\)") as said:
        Advisor(3, 2)
    assert [each.filename for each in said] == [__file__]  # the warning points to the line that created the Advisor
    with pytest.warns(UserWarning, match=r"pass AdHocTD\(start_episode=0\)"):
        Advisor(3, 2, AdHocTD())
    with pytest.warns(UserWarning, match="nothing will be shared in 200 episodes: sharing begins after episode 300"):
        Advisor(3, 2, Cons(start_episode=300), episodes=200)


def test_the_default_start_fits_the_number_of_episodes():
    # warnings are errors here
    assert Advisor(3, 2, episodes=2_000).sharing == Cons(start_episode=250)
    assert Advisor(3, 2, Cons.preset("recommended"), episodes=100_000).sharing.start_episode == 1_000
    assert Advisor(3, 2, Cons(start_episode=300), episodes=2_000).sharing.start_episode == 300
    assert Advisor(3, 2, Cons(start_episode=300)).sharing.start_episode == 300


@pytest.mark.parametrize(
    ("arguments", "settings", "sentence"),
    [
        (("three", 2), {}, "num_agents must be a whole number"),
        ((3, 2.5), {}, "num_actions must be a whole number"),
        ((3, 2), dict(episodes="many"), "episodes must be a whole number"),
        ((3, 2), dict(seed=True), "seed must be a whole number"),
    ],
)
def test_invalid_sizes_are_refused(arguments, settings, sentence):
    with pytest.raises(UsageError, match=sentence):
        Advisor(*arguments, AT_ONCE, **settings)


def example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tabular_example_opens_more_locks_with_advice():
    openings = example("tabular_advisor").openings
    alone, advised_alone = openings(shares=False)
    together, advised = openings(shares=True)
    assert advised_alone == 0
    assert advised > 50
    assert together > alone + 0.5  # of four locks


def test_the_torch_example_trains():
    pytest.importorskip("torch")
    returns, num_advised = example("torch_dqn_advisor").train(25, start_episode=3)
    assert len(returns) == 25
    assert num_advised > 0


def test_the_recurrent_torch_example_trains():
    pytest.importorskip("torch")
    returns, num_advised = example("torch_drqn_advisor").train(25, start_episode=3)
    assert len(returns) == 25
    assert num_advised > 0
