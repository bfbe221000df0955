"""Counts of observations that never repeat exactly, checked against exact counts of the same states."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import consmarl
from consmarl import Advisor, Cons, TrainConfig, UsageError
from consmarl.learners.interface import TeamSpec
from consmarl.learners.iql import IQL
from consmarl.sharing import simhash
from consmarl.sharing.codebook import CodebookCounting
from consmarl.sharing.counting import ExactCounting
from consmarl.sharing.counts import NEWCOMER
from consmarl.sharing.equations import asking_probability
from consmarl.sharing.simhash import SimHashCounting
from consmarl.training import checkpoints
from consmarl.training.loop import Trainer
from tests.sharing.wandering import Wandering, counted, counts_of, looked_up, wandered

WAYS = (SimHashCounting(), CodebookCounting())
NOISY = Wandering(noise=0.02)
# hyperplanes for 3 numbers and 4 bits, from NumPy's generator with the seed of simhash.py
GOLDEN_NORMALS = [-0.24889825, -0.74809611, -0.19521227, 0.75429821]
GOLDEN_OFFSETS = [1.62987626, 0.85104597, 0.75672853, -1.50835621]


@functools.cache
def calibration(way, noise, *, sees_others):
    """Return the rank correlation of pseudo-counts with exact counts, and the ratio of the resulting asking rates."""
    from scipy.stats import spearmanr  # takes more than a second, which only slow tests should pay

    exact, noisy = wandered(Wandering(noise=noise, sees_others=sees_others), 80 if sees_others else 40)
    expected, counts = counts_of(ExactCounting(), exact)[0], counts_of(way, noisy)[0]
    shares = [float(jnp.mean(asking_probability(each[len(each) // 8 :], 0.5))) for each in (expected, counts)]
    late = slice(len(expected) // 2, None)
    return spearmanr(expected[late].ravel(), counts[late].ravel())[0], shares[1] / shares[0]


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("sees_others", [False, True], ids=["25 states", "625 states"])
def test_noisy_floats_are_counted_like_the_underlying_states(way, sees_others):
    """The bounds are requirements; the measured values are in docs/decisions/0016."""
    rank, ratio = calibration(way, 0.02, sees_others=sees_others)
    assert rank >= 0.9
    assert 0.8 <= ratio <= 1.2


def test_a_codebook_counts_well_even_with_more_noise():
    rank, ratio = calibration(CodebookCounting(), 0.05, sees_others=True)
    assert rank >= 0.99
    assert 0.95 <= ratio <= 1.05


def slow_counts(codes, bits):
    """Return SimHash's counts, computed one visit at a time: codes [step, agent, env, code]."""
    rows = np.asarray(codes, np.float64)
    num_steps, num_agents, num_envs, size = rows.shape
    first = next(step for step in range(num_steps) if step * num_agents * num_envs >= simhash.SETTLED)
    known = rows[:first].reshape(-1, size)
    normals, offsets = simhash.hyperplanes(size, bits)
    far = np.clip((rows - known.mean(axis=0)) / known.std(axis=0), -5, 5) @ normals - offsets
    cells, totals = {}, np.zeros(rows.shape[:3], int)
    for step in range(first, num_steps):
        for agent in range(num_agents):
            for env in range(num_envs):
                key = (agent, tuple(far[step, agent, env] > 0))
                cells[key] = cells.get(key, 0) + 1
        for agent in range(num_agents):
            for env in range(num_envs):
                own = far[step, agent, env]
                close = [
                    bit for bit in np.argsort(abs(own))[: simhash.NUM_CLOSEST] if abs(own[bit]) < simhash.TOLERANCE
                ]
                for choice in range(1 << len(close)):
                    sides = own > 0
                    for place, bit in enumerate(close):
                        sides[bit] ^= bool(choice >> place & 1)
                    totals[step, agent, env] += cells.get((agent, tuple(sides)), 0)
    return totals


def test_simhash_counts_match_the_slow_reference():
    codes = wandered(NOISY, 4)[1]
    np.testing.assert_array_equal(counts_of(SimHashCounting(12), codes)[0], slow_counts(codes, 12))


def test_the_hyperplanes_never_change():
    normals, offsets = simhash.hyperplanes(3, 4)
    np.testing.assert_allclose(np.linalg.norm(normals, axis=0), 1, rtol=1e-6)
    # as first drawn; different hyperplanes would invalidate the counts of existing runs
    np.testing.assert_allclose(normals[0], GOLDEN_NORMALS, rtol=1e-5)
    np.testing.assert_allclose(offsets, GOLDEN_OFFSETS, rtol=1e-5)
    assert np.array_equal(simhash.hyperplanes(3, 4)[0], normals)


def slow_codebook(codes, size, radius):
    """Return one agent's counts, with the codebook as a plain list: codes [visit, code]."""
    examples, counts, totals = [], [], []
    for number, code in enumerate(np.asarray(codes, np.float64)):
        seen = np.asarray(codes[: number + 1], np.float64)
        varies = seen.std(axis=0) > 0
        scale = np.where(varies, seen.std(axis=0), 1)
        far = [np.sqrt((((each - code) / scale) ** 2).sum() / max(varies.sum(), 1)) for each in examples]
        near = [cell for cell, each in enumerate(far) if each <= radius]
        if not near and len(examples) < size:
            examples.append(code)
            counts.append(1)
            totals.append(1)
            continue
        closest = int(np.argmin(far))
        counts[closest] += 1
        totals.append(sum(counts[cell] for cell in near or [closest]))
    return totals


@pytest.mark.parametrize("size", [4, 64])
def test_codebook_counts_match_the_slow_reference_even_when_full(size):
    codes = wandered(NOISY, 2, num_envs=1)[1][:, :1]
    counts, state = counts_of(CodebookCounting(size, 0.2), codes)
    assert counts.ravel().tolist() == slow_codebook(codes[:, 0, 0], size, 0.2)
    assert (int(state.num_filled[0]) == size) == (size == 4)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**16), spread=st.sampled_from([0.01, 1.0, 100.0]))
def test_simhash_counts_never_decrease(seed, spread):
    way, random = SimHashCounting(9), np.random.default_rng(seed)
    codes = jnp.asarray(random.normal(size=(200, 1, 2, 3)) * spread, jnp.float32)
    _, state = counts_of(way, codes[:100])
    asked, seats, once = codes[:100, 0, 0], jnp.zeros(100, jnp.int32), jnp.ones(100, jnp.int32)
    before = looked_up(way, state, asked, seats)
    after = looked_up(way, counted(way, state, codes[100:, 0, 0], seats, once)[0], asked, seats)
    assert (after >= before).all()
    assert int(after.sum()) > int(before.sum())


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_other_agents_visits_do_not_count(way):
    codes = wandered(NOISY, 6, num_envs=1)[1]
    counts, state = counts_of(way, codes)
    seen, me, other = codes[-20:, 0, 0], jnp.zeros(20, jnp.int32), jnp.ones(20, jnp.int32)
    mine = looked_up(way, state, seen, me)
    np.testing.assert_array_equal(mine[-1], counts[-1, 0, 0])
    following, _ = counted(way, state, seen, other, jnp.ones_like(other))
    np.testing.assert_array_equal(looked_up(way, following, seen, me), mine)
    assert int((looked_up(way, following, seen, other) - looked_up(way, state, seen, other)).min()) >= 1
    # the visits of absent agents (amounts of 0) change nothing
    unmoved, none = counted(way, following, seen, other, jnp.zeros_like(other))
    assert int(none.sum()) == 0
    assert all(map(np.array_equal, jax.tree.leaves(unmoved), jax.tree.leaves(following)))


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_newcomers_start_without_counts(way):
    mechanism = Cons(counting="simhash" if way == WAYS[0] else "codebook", join_episode=8, newcomers=(1,))
    mechanism = dataclasses.replace(mechanism, observation_size=2)
    codes = wandered(NOISY, 6, num_envs=1)[1]
    state = mechanism.init(2, 5)._replace(table=counts_of(way, codes)[1])
    joined = mechanism.with_newcomers(state, jnp.array([False, True]))
    seen = codes[-20:, 0, 0]
    agents, episode = jnp.array([0, 1]), jnp.array(8)
    old, new = mechanism.seats(agents, episode)
    assert new == NEWCOMER + 1
    assert int(looked_up(way, joined.table, seen, jnp.full(20, new, jnp.int32)).max()) == 0
    kept = looked_up(way, joined.table, seen, jnp.full(20, old, jnp.int32))
    np.testing.assert_array_equal(kept, looked_up(way, state.table, seen, jnp.full(20, old, jnp.int32)))
    assert int(kept.min()) > 0


@functools.cache
def trainer(counting):
    sharing = Cons(start_episode=1, counting=counting)
    learner = IQL(TeamSpec.of(NOISY), hidden_size=4)
    return Trainer(world=NOISY, learner=learner, sharing=sharing, num_envs=2, replay_episodes=8, batch_episodes=2,
                   warmup_steps=20)  # fmt: skip


@pytest.mark.parametrize("counting", ["simhash", None])
def test_a_resumed_run_is_bitwise_identical(counting, tmp_path):
    run = trainer(counting)
    assert run.sharing.counting == (counting or "codebook")
    state, _ = run.run(run.init(0), 5)
    checkpoints.save(tmp_path, 5, state, run.sharing.facts(state.sharing), keep=1)
    expected, _ = run.run(state, 5)
    restored = checkpoints.restore(tmp_path, lambda facts: run.init(1, facts))
    resumed, report = run.run(restored.state, 5)
    for left, right in zip(jax.tree.leaves(expected.sharing), jax.tree.leaves(resumed.sharing), strict=True):
        np.testing.assert_array_equal(left, right)
    assert int(report.sharing["num_observations"][-1]) > 10
    assert 0 < float(report.sharing["table_fill"][-1]) < 1
    assert ("num_lost" in report.sharing) == (counting == "simhash")


def play(advisor, codes, num_steps):
    asked = []
    for step in range(num_steps):
        if step % 10 == 0:
            advisor.begin_episode()
        advisor.advise(codes[step, :, 0], np.eye(2, 5), [0, 1], lambda j, i, _seen: np.eye(5)[(i + j) % 5])
        asked.append(sorted(advisor.exchanges))
    return asked


@pytest.mark.parametrize("counting", ["simhash", None])
def test_an_advisor_counts_floats_like_the_training_loop_and_can_be_restored(counting):
    codes = np.asarray(wandered(NOISY, 6, num_envs=1)[1])
    sharing = Cons(start_episode=0, counting=counting)
    advisor, other = (Advisor(2, 5, sharing) for _ in range(2))
    asked = play(advisor, codes, 90)
    assert sum(map(len, asked[80:])) < sum(map(len, asked[10:20]))  # with exact counts, both would keep asking
    way = sharing.for_observations(2, np.float32).counter
    expected = counts_of(way, codes[:91])[0][90, :, 0]
    other.load_state_dict(advisor.state_dict())
    assert play(advisor, codes[90:], 20) == play(other, codes[90:], 20)
    again = Advisor(2, 5, sharing)
    play(again, codes, 90)
    again.begin_episode()
    again.advise(codes[90, :, 0], np.eye(2, 5), [0, 1], lambda *_: np.zeros(5))
    np.testing.assert_array_equal([again._tally.counts(codes[90, agent, 0])[agent] for agent in range(2)], expected)
    exact = Advisor(2, 5, Cons(start_episode=0, counting="exact"))
    with pytest.raises(UsageError, match="counted in another way: pass the `counting` that it was counted by"):
        exact.load_state_dict(advisor.state_dict())
    with pytest.raises(UsageError, match="has 3 numbers, and in the first step none had more than 2"):
        again.advise(np.zeros((2, 3)), np.eye(2, 5), [0, 1], lambda *_: np.zeros(5))


def test_an_advisor_counts_integers_exactly_and_keeps_its_way_to_count():
    advisor = Advisor(2, 5, Cons(start_episode=0))
    play(advisor, np.ones((3, 2, 1, 2), int), 3)
    assert "visits.0.counts" in advisor.state_dict()
    floats = Advisor(2, 5, Cons(start_episode=0, counting="exact"))
    play(floats, np.ones((3, 2, 1, 2)), 3)
    begun_exactly = Advisor(2, 5, Cons(start_episode=0))
    begun_exactly.load_state_dict(floats.state_dict())
    play(begun_exactly, np.ones((3, 2, 1, 2)), 3)
    assert begun_exactly.state_dict()["visits.0.counts"].tolist() == [6]


def test_the_codebook_is_the_default_for_floats_and_is_recorded():
    whole = TrainConfig(method="cons", env="jaxmarl:MPE_simple_spread_v3", episodes=40).resolved()
    assert whole.share.given() | {"counting": "codebook", "codebook_size": 2048, "codebook_radius": 0.1} == (
        whole.share.given()
    )
    assert {"share.counting", "share.codebook_size", "share.codebook_radius"} <= set(whole.by_default)
    assert TrainConfig.from_json(whole.to_json()).resolved() == whole
    hashed = whole.with_options({"share.counting": "simhash", "share.hash_bits": 16}).resolved()
    assert hashed.share.given().keys() & {"codebook_size", "codebook_radius"} == set()
    assert hashed.trainer().sharing.counter == SimHashCounting(16)
    smaller = TrainConfig(method="cons", env=whole.env, episodes=40, share={"codebook_size": 99})
    assert smaller.trainer().sharing.counter == CodebookCounting(99)
    assert TrainConfig(method="cons").resolved().share.counting == "exact"
    # a run keeps its way to count, such as this one from before floats had a default of their own
    begun = TrainConfig(method="cons", env=whole.env, episodes=40, share={"counting": "exact"}).resolved()
    assert TrainConfig.from_json(begun.to_json(), is_run=True).trainer().sharing.counter == ExactCounting()


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (lambda: Cons(counting="simhash", counting_options={"hash_bits": 0}), "hash_bits must be a whole number of at"),
        (lambda: Cons(counting="codebook", counting_options={"codebook_radius": 0}), "codebook_radius must be above 0"),
        (lambda: Cons(counting="simhash", counting_options={"codebook_size": 9}),
         "codebook_size is an option of the way to count codebook, not of simhash"),
        (lambda: Cons(counting="simhash", counting_options={"bits": 9}), "simhash has no option 'bits': did you mean"),
        (lambda: TrainConfig(method="cons", share={"hash_bits": 9}).trainer(), "hash_bits is an option of the way to"),
        (lambda: TrainConfig(share={"hash_bits": 9}).trainer(), "share.hash_bits is set, but nobody shares"),
    ],
)  # fmt: skip
def test_invalid_options_are_refused(wrong, sentence):
    with pytest.raises(UsageError, match=sentence):
        wrong()


def test_options_of_ways_to_count_are_in_the_help():
    options = consmarl.ShareOptions.known()
    assert options["hash_bits"].owners == ("simhash",)
    assert "standard deviations" in options["codebook_radius"].description
