"""The table of counts against a dict: no key is missed, stored twice or confused with another."""

import collections
import functools
import itertools

import hypothesis
import jax
import numpy as np
import pytest
from hypothesis import strategies as st

from consmarl.sharing.counters import BUCKET, MAX_LOAD, count, empty_table, grown, has_room_for, lookup

pytestmark = pytest.mark.usefixtures("optimised")

counting = jax.jit(count)
looking_up = jax.jit(lookup)

SMALLEST = 2 * BUCKET  # places: two buckets


@jax.jit
def count_batches(table, keys, amounts):
    """Count keys [batch, key, 2], batch by batch."""
    return jax.lax.scan(lambda table, batch: count(table, *batch), table, (keys, amounts))


def keys_of(*pairs):
    return np.array(pairs, np.uint32).reshape(-1, 2)


def counted(table, keys, amounts=None):
    """Count keys [key, 2], by default once each: (table, totals)."""
    amounts = np.ones(len(keys), np.int32) if amounts is None else np.array(amounts, np.int32)
    table, totals = counting(table, *padded(keys, amounts))
    return table, totals[: len(keys)].tolist()


def looked_up(table, keys):
    return looking_up(table, *padded(keys))[: len(keys)].tolist()


def padded(*rows):
    """Pad with zeros to one of a few lengths, so that little is compiled; amounts of 0 are not counted."""
    length = next(length for length in (24, 64, 512) if length >= len(rows[0]))
    return [np.pad(row, [(0, length - len(row))] + [(0, 0)] * (row.ndim - 1)) for row in rows]


def contents(table):
    """The contents of the table as a dict, read place by place."""
    flat = zip(
        np.asarray(table.keys).reshape(-1, 2).tolist(), np.asarray(table.counts).reshape(-1).tolist(), strict=True
    )
    filled = [(tuple(key), number) for key, number in flat if key != [0, 0]]
    assert len(dict(filled)) == len(filled)  # no key has two places
    return dict(filled)


def random_keys(seed, number):
    keys = np.random.default_rng(seed).integers(1, 2**32, (number, 2), np.uint32)
    assert len(np.unique(keys, axis=0)) == number
    return keys


def same_bucket(number, bucket=0, num_buckets=2):
    """Different keys that all try the same bucket first, and continue with different strides."""
    return keys_of(*((bucket + num_buckets * (1 + i), 1 + 7 * i) for i in range(number)))


def filled_table(num_places=SMALLEST):
    """A full table, and its keys, each counted once."""
    keys = random_keys(3, num_places)
    table, _ = counted(empty_table(num_places), keys)
    assert table.num_filled == num_places
    return table, keys


# --- millions of visits ---

BATCH, NUM_BATCHES, NUM_KEYS = 4096, 512, 200_000


def test_two_million_visits_are_counted_like_a_dict():
    random = np.random.default_rng(7)
    keys = random_keys(8, NUM_KEYS + 50_000)
    never_met = keys[NUM_KEYS:]
    # skewed: a few keys occur thousands of times, often several times in a batch, and many once or never
    numbers = (NUM_KEYS * random.random((NUM_BATCHES, BATCH)) ** 6).astype(np.int64)
    expected = collections.Counter(numbers.reshape(-1).tolist())
    assert max(expected.values()) > 10_000
    assert sum(times == 1 for times in expected.values()) > 10_000

    # 262,144 places for some 190,000 keys: many buckets are full, so keys overflow into others
    table = empty_table(1 << 18)
    assert MAX_LOAD < len(expected) / table.num_places < 1
    table, totals = count_batches(table, keys[numbers], np.ones((NUM_BATCHES, BATCH), np.int32))

    assert table.num_filled == len(expected)
    assert table.num_lost == 0
    assert table.counts.sum() == NUM_BATCHES * BATCH
    times_met = np.array([expected[number] for number in range(NUM_KEYS)])
    assert np.array_equal(looking_up(table, keys[:NUM_KEYS]), times_met)
    assert not looking_up(table, never_met).any()
    # totals are those after the whole batch, so for the last batch they are the final counts
    assert np.array_equal(totals[-1], times_met[numbers[-1]])


# --- collisions ---


@pytest.mark.parametrize("num_keys", [BUCKET, BUCKET + 1, SMALLEST])
def test_keys_of_one_full_bucket_overflow_into_others(num_keys):
    keys = same_bucket(num_keys)
    for table in (
        counted(empty_table(SMALLEST), keys)[0],  # all at once
        functools.reduce(lambda table, key: counted(table, key[None])[0], keys, empty_table(SMALLEST)),  # one by one
    ):
        assert contents(table) == {tuple(key): 1 for key in keys.tolist()}
        assert table.num_filled == num_keys
        assert table.num_lost == 0
        assert looked_up(table, keys) == [1] * num_keys


def test_keys_that_overflowed_are_found_again_and_not_stored_twice():
    keys = same_bucket(3 * BUCKET, num_buckets=8)
    table = empty_table(64)
    for amount in (1, 2, 3):
        table, totals = counted(table, keys, [amount] * len(keys))
        assert totals == [amount * (amount + 1) // 2] * len(keys)
    assert table.num_filled == len(keys)
    assert contents(table) == {tuple(key): 6 for key in keys.tolist()}


def test_absent_keys_of_a_full_bucket_are_not_found():
    keys = same_bucket(BUCKET + 4)
    table, _ = counted(empty_table(SMALLEST), keys[:-3])
    assert looked_up(table, keys[-3:]) == [0, 0, 0]


def test_equal_keys_of_a_batch_share_a_place():
    keys = keys_of((2, 1), (4, 1), (2, 1), (2, 1), (4, 1), (3, 1))
    table, totals = counted(empty_table(SMALLEST), keys, [1, 10, 2, 3, 20, 100])
    assert contents(table) == {(2, 1): 6, (4, 1): 30, (3, 1): 100}
    assert totals == [6, 30, 6, 6, 30, 100]  # after the whole batch, not after each key
    assert table.num_filled == 3


def test_only_one_key_gets_the_last_place_of_a_bucket_and_the_others_overflow():
    first, rivals = np.split(same_bucket(BUCKET + 4), [BUCKET - 1])
    table, _ = counted(empty_table(SMALLEST), first)
    batch = np.repeat(rivals, 2, axis=0)  # every rival occurs twice
    table, totals = counted(table, batch)
    assert totals == [2] * len(batch)
    assert contents(table) == {tuple(key): 1 for key in first.tolist()} | {tuple(key): 2 for key in rivals.tolist()}
    in_first_bucket = np.asarray(table.keys[0]).tolist()
    assert sum(rival in in_first_bucket for rival in rivals.tolist()) == 1


def test_keys_that_share_a_lane_but_no_bucket_all_get_a_place():
    # with two keys, 8 lanes decide which key is first at a bucket, so this table's 16 buckets share lanes in pairs
    keys = keys_of((8, 1), (16, 1))
    table, totals = counting(empty_table(16 * BUCKET), keys, np.ones(2, np.int32))
    assert totals.tolist() == [1, 1]
    assert table.num_filled == 2


@pytest.mark.parametrize("vary", ["first word", "second word"])
def test_keys_that_differ_in_only_one_word_are_different(vary):
    numbers = [1, 2, 3, 2**16, 2**31, 2**31 + 1, 2**32 - 1]
    keys = keys_of(*((number, 5) if vary == "first word" else (5, number) for number in numbers))
    amounts = np.arange(1, len(keys) + 1)
    table, totals = counted(empty_table(SMALLEST), keys, amounts)
    assert totals == amounts.tolist()
    assert looked_up(table, keys) == amounts.tolist()
    assert looked_up(table, keys[:, ::-1]) == [0] * len(keys)  # swapped words are another key


@pytest.mark.parametrize("key", [(0, 1), (1, 0), (0, 2**32 - 1), (2**32 - 1, 0)])
def test_a_key_with_a_zero_word_is_not_mistaken_for_a_free_place(key):
    table = empty_table(SMALLEST)
    for times in (1, 2):
        table, totals = counted(table, keys_of(key))
        assert totals == [times]
        assert table.num_filled == 1
    neighbour = (key[0] ^ 2, 7)  # belongs in the same bucket
    table, _ = counted(table, keys_of(neighbour))
    assert contents(table) == {key: 2, neighbour: 1}


def test_keys_with_the_same_search_path_can_fill_the_whole_table():
    # all start in bucket 0 with a stride of 1, so they queue at every bucket: the longest possible search
    num_buckets = 64
    keys = keys_of(*((num_buckets * (1 + i), 1) for i in range(num_buckets * BUCKET)))
    table, totals = counted(empty_table(len(keys)), keys)
    assert table.num_filled == table.num_places == len(keys)
    assert table.num_lost == 0
    assert totals == [1] * len(keys)


# --- amounts ---


def test_amounts_of_zero_insert_nothing():
    keys = random_keys(1, 6)
    table, _ = counted(empty_table(SMALLEST), keys, [0, 1, 0, 5, 0, 0])
    assert contents(table) == {tuple(keys[1].tolist()): 1, tuple(keys[3].tolist()): 5}
    assert table.num_filled == 2
    assert table.num_lost == 0


def test_amounts_of_zero_are_not_looked_up():
    keys = random_keys(1, 3)
    table, _ = counted(empty_table(SMALLEST), keys, [7, 8, 0])
    following, totals = counted(table, keys, [0, 1, 0])
    assert totals == [0, 9, 0]
    assert contents(following) == {tuple(keys[0].tolist()): 7, tuple(keys[1].tolist()): 9}


def test_counts_have_the_same_axes_as_keys():
    keys = random_keys(2, 6).reshape(2, 3, 2)
    amounts = np.arange(1, 7, dtype=np.int32).reshape(2, 3)
    table, totals = counting(empty_table(SMALLEST), keys, amounts)
    assert totals.tolist() == amounts.tolist()
    assert looking_up(table, keys[:, ::-1]).tolist() == amounts[:, ::-1].tolist()


def test_an_empty_table_has_no_counts():
    assert looked_up(empty_table(SMALLEST), random_keys(1, 5)) == [0] * 5


# --- capacity ---


@pytest.mark.parametrize("num_places", [1, 8, 16, 17, 64, 65, 1000])
def test_a_table_has_at_least_the_requested_places(num_places):
    table = empty_table(num_places)
    assert table.num_places >= max(num_places, SMALLEST)
    assert table.num_places < max(2 * num_places, SMALLEST + 1)  # the next power of two at most


def test_a_table_has_room_up_to_its_maximum_load():
    table, _ = counted(empty_table(64), random_keys(4, 20))
    assert has_room_for(table, 18)  # 20 + 18 = 38 of 64 · 0.6 = 38.4
    assert not has_room_for(table, 19)


@pytest.mark.parametrize(("num_new", "num_places"), [(18, 64), (19, 256), (133, 256), (134, 1024)])
def test_growing_makes_the_requested_room_in_factors_of_four(num_new, num_places):
    table, _ = counted(empty_table(64), random_keys(4, 20))
    larger = grown(table, num_new)
    assert larger.num_places == num_places  # 20 + 133 = 153 of 256 · 0.6 = 153.6
    assert has_room_for(larger, num_new)


@pytest.mark.parametrize("num_keys", [0, 1, 40, 64])
def test_growing_keeps_every_count(num_keys):
    keys = random_keys(5, 64)
    amounts = np.arange(1, 65) * (np.arange(64) < num_keys)
    table, _ = counted(empty_table(64), keys, amounts)
    larger = grown(table, 80)
    assert contents(larger) == contents(table)
    assert larger.num_filled == table.num_filled == num_keys
    assert larger.num_lost == 0
    assert looked_up(larger, keys) == amounts.tolist()
    # and counting continues
    following, totals = counted(larger, keys)
    assert totals == (amounts + 1).tolist()
    assert following.num_filled == len(keys)


def test_growing_keeps_the_counts_of_a_full_bucket():
    keys = same_bucket(SMALLEST)
    table, _ = counted(empty_table(SMALLEST), keys, np.arange(1, SMALLEST + 1))
    larger = grown(table, 100)
    assert contents(larger) == contents(table)
    assert looked_up(larger, keys) == list(range(1, SMALLEST + 1))


def test_growing_keeps_the_number_of_lost_visits():
    table, _ = filled_table()
    table, _ = counted(table, random_keys(11, 3), [1, 2, 3])
    assert grown(table, 100).num_lost == 6


# --- a full table ---


def test_a_full_table_counts_lost_visits_and_still_counts_known_keys():
    table, keys = filled_table()
    strangers = random_keys(11, 3)
    batch = np.concatenate([strangers, keys[:5], strangers[:1]])
    table, totals = counted(table, batch, [1, 2, 3, 10, 20, 30, 40, 50, 100])
    assert table.num_lost == 1 + 2 + 3 + 100
    assert totals == [0, 0, 0, 11, 21, 31, 41, 51, 0]
    assert table.num_filled == table.num_places
    assert contents(table) == {
        tuple(key): 1 + added
        for key, added in itertools.zip_longest(keys.tolist(), [10, 20, 30, 40, 50], fillvalue=0)
    }  # fmt: skip
    assert looked_up(table, strangers) == [0, 0, 0]


@pytest.mark.parametrize("make_keys", [functools.partial(random_keys, 12), same_bucket])
def test_only_the_keys_that_do_not_fit_are_lost(make_keys):
    keys = make_keys(SMALLEST + 4)
    table, totals = counted(empty_table(SMALLEST), keys)
    assert table.num_filled == SMALLEST
    assert table.num_lost == 4
    assert sorted(totals) == [0] * 4 + [1] * SMALLEST
    assert looked_up(table, keys) == totals


# --- random visits to a tiny table ---

TINY_BATCH = 6
# 16 keys for 16 places: the first word selects one of two buckets, the second the stride between them
tiny_keys = st.tuples(st.sampled_from([0, 1, 2, 5]), st.sampled_from([1, 2, 3, 2**32 - 1]))
visits = st.tuples(tiny_keys, st.integers(0, 3))


@hypothesis.settings(max_examples=150)
@hypothesis.given(st.lists(st.lists(visits, min_size=TINY_BATCH, max_size=TINY_BATCH), min_size=1, max_size=8))
def test_random_visits_are_counted_like_a_dict(batches):
    table, expected = empty_table(SMALLEST), collections.Counter()
    for batch in batches:
        for key, amount in batch:
            if amount:
                expected[key] += amount
        keys, amounts = keys_of(*(key for key, _ in batch)), [amount for _, amount in batch]
        table, totals = counted(table, keys, amounts)
        # totals for amounts of 0 have their own test
        assert [(total, key) for total, (key, amount) in zip(totals, batch, strict=True) if amount] == [
            (expected[key], key) for key, amount in batch if amount
        ]
        assert looked_up(table, keys) == [expected[key] for key, _ in batch]
        assert table.num_filled == len(expected)
    assert contents(table) == {key: number for key, number in expected.items() if number}
    assert table.num_lost == 0
