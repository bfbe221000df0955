"""The ring buffer of episodes against a plain deque."""

from collections import deque

import hypothesis
import jax
import numpy as np
from hypothesis import strategies as st

from consmarl.learners.interface import EpisodeBatch
from consmarl.training.replay import Replay

REPLAY = Replay(num_agents=2, episode_limit=3, observation_size=4, code_dtype=np.dtype(np.uint8), capacity=6)


def episodes(first, count):
    """Distinguishable episodes: all numbers in episode k are k."""
    numbers = np.arange(first, first + count, dtype=np.int32)
    return EpisodeBatch(
        codes=np.broadcast_to(numbers[None, :, None, None], (2, count, 4, 4)).astype(np.uint8),
        actions=np.broadcast_to(numbers[None, :, None], (2, count, 3)).astype(np.uint8),
        rewards=np.broadcast_to(numbers[None, :, None], (2, count, 3)).astype(np.float32),
        num_steps=numbers,
        terminated=numbers % 2 == 0,
        epsilon=np.broadcast_to(numbers[:, None], (count, 3)).astype(np.float32),
    )


@hypothesis.settings(max_examples=20)
@hypothesis.given(st.integers(1, 12), st.sampled_from([1, 2, 3, 6]))
def test_the_ring_holds_the_newest_episodes(num_adds, per_add):
    add = jax.jit(REPLAY.add)
    state, expected = REPLAY.init(), deque(maxlen=REPLAY.capacity)
    for number in range(num_adds):
        state = add(state, episodes(1 + number * per_add, per_add))
        expected.extend(range(1 + number * per_add, 1 + (number + 1) * per_add))
    num_stored = int(REPLAY.num_stored(state))
    assert num_stored == len(expected)
    state = jax.device_get(state)
    assert sorted(state.episodes.num_steps[:num_stored].tolist()) == sorted(expected)
    for slot in range(num_stored):
        number = int(state.episodes.num_steps[slot])
        assert (state.episodes.codes[:, slot] == number).all()
        assert (state.episodes.rewards[:, slot] == number).all()


def test_samples_are_uniform_with_replacement_over_stored_episodes():
    state = REPLAY.add(REPLAY.init(), episodes(1, 3))
    batch = REPLAY.sample(state, jax.random.key(0), 3000, REPLAY.num_stored(state))
    counts = np.bincount(np.asarray(batch.num_steps), minlength=4)
    assert counts[0] == 0
    np.testing.assert_allclose(counts[1:], 1000, atol=120)
    np.testing.assert_array_equal(batch.codes[0, :, 0, 0], batch.num_steps)
    np.testing.assert_array_equal(batch.terminated, batch.num_steps % 2 == 0)
