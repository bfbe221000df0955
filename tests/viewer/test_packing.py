"""Arrays packed for a page are unpacked bit for bit."""

import base64
import gzip

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as some

from consmarl.viewer.packing import ALIGNMENT, KINDS, packed, unpacked

# draw bit patterns instead of numbers: Hypothesis's own NaNs all have one payload
BITS = {"float32": "u4", "float64": "u8", "bool": "u1"}
facts = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@st.composite
def arrays(draw, name):
    """Any array of a kind, with 0 to 3 axes, some of length 0."""
    shape = draw(some.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
    elements = st.integers(0, 1) if name == "bool" else None
    return draw(some.arrays(BITS.get(name, name), shape, elements=elements)).view(name)


def assert_same_bits(out, array):
    assert out.shape == array.shape
    assert out.dtype == (np.uint8 if array.dtype == bool else array.dtype)
    assert (
        out.astype(array.dtype.newbyteorder("="), copy=False).tobytes()
        == array.astype(array.dtype.newbyteorder("=")).tobytes()
    )


@pytest.mark.parametrize("name", KINDS)
@hypothesis.given(data=st.data())
def test_arrays_are_unpacked_bit_for_bit(name, data):
    array = data.draw(arrays(name))
    told, out = unpacked(packed({}, {"array": array}))
    assert told == {}
    assert list(out) == ["array"]
    assert_same_bits(out["array"], array)


@hypothesis.given(st.dictionaries(st.text(max_size=6), st.sampled_from(list(KINDS)).flatmap(arrays), max_size=6))
def test_several_arrays_are_unpacked_separately(many):
    _, out = unpacked(packed({}, many))
    assert list(out) == list(many)
    for name, array in many.items():
        assert_same_bits(out[name], array)


@hypothesis.settings(max_examples=40)
@hypothesis.given(st.dictionaries(st.text(max_size=6), facts, max_size=4), st.sampled_from(list(KINDS)).flatmap(arrays))
def test_facts_survive_and_the_same_input_gives_the_same_text(told, array):
    text = packed(told, {"array": array})
    assert unpacked(text)[0] == told
    assert packed(told, {"array": array.copy()}) == text


def test_unusual_text_and_floats_survive_packing():
    told = {"é": "ß – 語 😀 </script>", "nested": {"list": [1, [2.5, None], {"deep": True}]}}
    payloads = np.array([0x7FC00001, 0x7F800001, 0xFFC12345, 0x80000000, 0x00000001], np.uint32)  # NaNs, −0, smallest
    out_told, out = unpacked(packed(told, {"odd": payloads.view(np.float32), "−": np.float64(-0.0)[None]}))
    assert out_told == told
    assert out["odd"].view(np.uint32).tolist() == payloads.tolist()
    assert np.signbit(out["−"]).tolist() == [True]


def test_memory_layout_and_byte_order_do_not_matter():
    array = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    ways = {
        "turned": array.T,
        "every other": array[:, ::2],
        "backwards": array[::-1],
        "big end first": array.astype(">i4"),
    }
    _, out = unpacked(packed({}, ways))
    for name, way in ways.items():
        np.testing.assert_array_equal(out[name], way)
    assert (
        packed({}, {"x": array})
        == packed({}, {"x": array.astype(">i4")})
        == packed({}, {"x": np.asfortranarray(array)})
    )


def test_arrays_are_aligned_for_javascripts_typed_arrays():
    # JavaScript's typed arrays take only offsets that are multiples of a number's size
    sizes = {"a": np.zeros(3, np.uint8), "b": np.zeros(5, np.float64), "c": np.zeros(1, np.uint16), "d": np.zeros(2)}
    text = packed({"of": "odd length"}, sizes)
    assert text.isascii()
    whole = gzip.decompress(base64.b64decode(text, validate=True))
    length_of_header = int.from_bytes(whole[:4], "little")
    assert (8 + length_of_header) % ALIGNMENT == 0
    assert len(whole) == 8 + length_of_header + 8 + 40 + 8 + 16


def test_the_text_contains_no_timestamp():
    packed_at = base64.b64decode(packed({}, {}))[4:8]  # where gzip writes the time
    assert packed_at == bytes(4)


def test_facts_that_are_not_json_are_refused():
    with pytest.raises(ValueError, match="JSON"):
        packed({"x": float("nan")}, {})
