"""Fingerprints differ exactly where observations differ."""

import functools
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import consmarl
from consmarl.environments.playback import play, random_actions
from consmarl.sharing.fingerprints import fingerprint, mark_used, of_agent

prints_of = jax.jit(fingerprint)
keys_of_agents = jax.jit(of_agent)

pytestmark = pytest.mark.usefixtures("optimised")

DTYPES = [np.uint8, np.uint16, np.int32, np.float32]


def as_numbers(prints):
    """Fingerprints [..., 2] as 64-bit numbers [...]."""
    first, second = np.moveaxis(np.asarray(prints).astype(np.uint64), -1, 0)
    return (first << np.uint64(32)) | second


def check_tells_apart(codes):
    """Check that different rows of codes [row, code] have different fingerprints, and equal rows the same."""
    distinct, which = np.unique(codes, axis=0, return_inverse=True)
    prints = as_numbers(prints_of(codes))
    assert len(np.unique(prints)) == len(distinct)
    assert len(np.unique(np.stack([which.reshape(-1).astype(np.uint64), prints], axis=1), axis=0)) == len(distinct)


@functools.cache
def codes_of_random_play(id, num_episodes):
    """All observations from random episodes: [row, code]."""
    world = consmarl.make(id)

    @jax.jit
    @jax.vmap
    def play_one(key):
        key_actions, key_play = jax.random.split(key)
        return play(world, key_play, random_actions(world, key_actions)).codes

    codes = play_one(jax.random.split(jax.random.key(0), num_episodes))
    return np.asarray(codes).reshape(-1, codes.shape[-1])


def recoded(codes, dtype):
    """The same observations, scaled to numbers that need this type."""
    if dtype == np.float32:
        return codes / np.float32(7)
    return codes.astype(dtype) * dtype(
        {np.uint8: 1, np.uint16: 257, np.int32: -8_421_504}[dtype]
    )  # ·255 is nearly −2³¹


@pytest.mark.parametrize(("id", "num_episodes"), [("pgm-3ag", 1000), ("cleanup", 300)])
def test_observations_from_random_play_have_distinct_fingerprints(id, num_episodes):
    codes = codes_of_random_play(id, num_episodes)
    assert len(np.unique(codes, axis=0)) > 10_000
    check_tells_apart(codes)


@pytest.mark.parametrize("dtype", DTYPES)
def test_observations_of_every_dtype_have_distinct_fingerprints(dtype):
    codes = recoded(codes_of_random_play("pgm-3ag", 1000)[:20_000], dtype)
    assert codes.dtype == dtype
    assert len(np.unique(codes, axis=0)) > 5_000
    check_tells_apart(codes)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_change_of_any_single_code_changes_the_fingerprint(dtype):
    base = codes_of_random_play("pgm-3ag", 1000)[500]
    changed = np.repeat(base[None], 255 * len(base), axis=0)
    for position in range(len(base)):
        rows = slice(255 * position, 255 * (position + 1))
        changed[rows, position] = np.setdiff1d(np.arange(256), base[position])
    rows = recoded(np.concatenate([base[None], changed]), dtype)
    assert len(np.unique(as_numbers(prints_of(rows)))) == len(rows) == 1 + 255 * len(base)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7])
def test_observations_that_do_not_fill_whole_words_have_distinct_fingerprints(size):
    codes = np.zeros((1 + 255 * size, size), np.uint8)
    for position, value in itertools.product(range(size), range(1, 256)):
        codes[255 * position + value, position] = value
    assert len(np.unique(as_numbers(prints_of(codes)))) == len(codes)


@pytest.mark.parametrize("dtype", DTYPES)
def test_permutations_have_distinct_fingerprints(dtype):
    random = np.random.default_rng(5)
    base = np.arange(48, dtype=np.uint8)
    swaps = [base.copy() for _ in itertools.combinations(range(48), 2)]
    for row, (one, other) in zip(swaps, itertools.combinations(range(48), 2), strict=True):
        row[[one, other]] = row[[other, one]]
    rows = np.concatenate([base[None], swaps, random.permuted(np.tile(base, (10_000, 1)), axis=1)])
    check_tells_apart(recoded(rows, dtype))


def test_the_two_words_of_a_fingerprint_are_independent():
    # if one word followed from the other, 64 bits would be worth only 32
    first, second = np.moveaxis(np.asarray(prints_of(codes_of_random_play("pgm-3ag", 1000))), -1, 0)
    share_of_equal_bits = np.unpackbits((~(first ^ second)).view(np.uint8)).mean()
    assert share_of_equal_bits == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_fingerprint_does_not_depend_on_its_neighbours(dtype):
    codes = recoded(codes_of_random_play("pgm-3ag", 1000)[:12], dtype)
    together = np.asarray(prints_of(codes))
    assert together.dtype == np.uint32
    assert np.array_equal(prints_of(codes.reshape(3, 4, -1)), together.reshape(3, 4, 2))
    for row, expected in zip(codes, together, strict=True):
        assert np.array_equal(fingerprint(jnp.asarray(row)), expected)  # not compiled, and without other axes


@pytest.mark.parametrize("compiled", [False, True])
def test_negative_zero_has_the_same_fingerprint_as_zero(compiled):
    # compilers may drop the addition of zero, which would remove the sign
    plus, minus = np.array([[0.0, 1.0, 0.0], [-0.0, 1.0, -0.0]], np.float32)
    prints = jax.jit(fingerprint) if compiled else fingerprint
    assert np.array_equal(prints(jnp.asarray(plus)), prints(jnp.asarray(minus)))
    assert not np.array_equal(prints(jnp.asarray(plus)), prints(jnp.asarray(-plus)))  # −1 is not 1


# --- never all zeros ---


def test_only_a_key_of_zeros_is_marked_as_used():
    keys = np.array([[0, 0], [0, 7], [7, 0], [7, 7]], np.uint32)
    marked = np.asarray(mark_used(jnp.asarray(keys)))
    assert marked[0].any()
    assert np.array_equal(marked[1:], keys[1:])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("value", [0, 1, 255])
def test_fingerprints_of_plain_observations_are_not_zero(dtype, value):
    assert np.asarray(fingerprint(jnp.full(48, value, dtype))).any()


def scrambled(word):
    """A second implementation of MurmurHash3's finaliser: 0 stays 0, and no other word becomes 0."""
    word = ((word ^ (word >> 16)) * 0x85EBCA6B) % 2**32
    word = ((word ^ (word >> 13)) * 0xC2B2AE35) % 2**32
    return word ^ (word >> 16)


@pytest.mark.parametrize("agent", [0, 1, 19])
def test_a_fingerprint_that_scrambles_to_zeros_still_gives_a_nonzero_key(agent):
    salt = scrambled((agent + 1) * 0x9E3779B9 % 2**32)
    # `of_agent` scrambles fingerprint[0] ^ salt and fingerprint[1] + 5·salt: both are 0 for this one
    prints = np.array([salt, -5 * salt % 2**32], np.uint32)
    key = np.asarray(of_agent(jnp.asarray(prints), jnp.int32(agent)))
    assert key.tolist() == [1, 1]  # zeros as changed by `mark_used`; anything else means that `prints` was wrong


def test_neither_fingerprints_nor_keys_of_a_large_sample_are_zero():
    prints = prints_of(codes_of_random_play("pgm-3ag", 1000))
    agents = np.arange(len(prints), dtype=np.int32) % 3
    assert np.asarray(prints).any(axis=-1).all()
    assert np.asarray(keys_of_agents(prints, agents)).any(axis=-1).all()


# --- whose observation it is ---


def test_different_agents_have_different_keys():
    num_agents = 20
    distinct = np.unique(codes_of_random_play("pgm-3ag", 1000), axis=0)[:5_000]
    prints = np.asarray(prints_of(distinct))
    keys = keys_of_agents(prints[None], np.arange(num_agents, dtype=np.int32)[:, None])
    assert keys.shape == (num_agents, len(distinct), 2)
    numbers = np.concatenate([as_numbers(keys).reshape(-1), as_numbers(prints)])
    assert len(np.unique(numbers)) == (num_agents + 1) * len(distinct)  # and no key equals a fingerprint


def test_the_same_agent_and_observation_have_the_same_key():
    prints = prints_of(np.zeros((2, 48), np.uint8))
    first, second = np.asarray(keys_of_agents(prints, np.array([4, 4], np.int32)))
    assert np.array_equal(first, second)


# --- bits ---

NUM_COUNTED = 1 << 17


def counting_observations():
    """Observations that differ as little as possible: the numbers from 0 on, in the last 4 of 48 bytes."""
    codes = np.zeros((NUM_COUNTED, 48), np.uint8)
    codes[:, -4:] = np.arange(NUM_COUNTED, dtype=">u4").view(np.uint8).reshape(-1, 4)
    return codes


def check_bytes_are_uniform(words):
    """Pearson's χ² of each byte: 255 degrees of freedom, so a mean of 255 and a standard deviation of √510 ≈ 23."""
    for column in np.ascontiguousarray(words).view(np.uint8).reshape(len(words), -1).T:
        expected = len(words) / 256
        chi_square = np.sum((np.bincount(column, minlength=256) - expected) ** 2) / expected
        assert abs(chi_square - 255) < 5 * math.sqrt(510)  # too even a distribution would not be random either


def test_bytes_of_fingerprints_are_uniformly_distributed():
    check_bytes_are_uniform(np.asarray(prints_of(counting_observations())))


def test_bytes_of_keys_are_uniformly_distributed():
    prints = prints_of(counting_observations())
    check_bytes_are_uniform(np.asarray(keys_of_agents(prints, np.full(len(prints), 2, np.int32))))


def test_bytes_of_one_observations_keys_are_uniformly_distributed_over_agents():
    prints = np.asarray(prints_of(np.zeros((1, 48), np.uint8)))
    check_bytes_are_uniform(np.asarray(keys_of_agents(prints, np.arange(NUM_COUNTED, dtype=np.int32))))


def test_flipping_one_bit_flips_about_half_of_the_fingerprint():
    base = codes_of_random_play("pgm-3ag", 1000)[700]
    bits = np.unpackbits(base)
    flipped = np.packbits(bits[None] ^ np.eye(len(bits), dtype=np.uint8), axis=1)
    before, after = np.asarray(prints_of(base[None])), np.asarray(prints_of(flipped))
    num_changed = np.unpackbits((before ^ after).view(np.uint8), axis=1).sum(axis=1)
    # 64 bits that each change with probability ½: a mean of 32 and a standard deviation of 4
    assert num_changed.mean() == pytest.approx(32, abs=5 * 4 / math.sqrt(len(bits)))
    assert num_changed.min() >= 10
    assert num_changed.max() <= 54
