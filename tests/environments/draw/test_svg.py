"""Scenes as SVG elements: well-formed, in the right place, and the same shapes as in rendered frames."""

import xml.etree.ElementTree as ElementTree

import hypothesis
import jax
import numpy as np
import pytest
from hypothesis import strategies as st
from tests.worlds import all_worlds

import consmarl
from consmarl.environments.draw.canvas import INK, Box, Canvas
from consmarl.environments.draw.frame import painter_of
from consmarl.environments.draw.scene import CELL, ICON, draw_scene, gauge_heads, legend
from consmarl.environments.draw.svg import Shapes, hexadecimal, short

WORLDS = all_worlds()
STEPS = 6
measures = st.floats(-1000, 1000)
colours = st.tuples(*[st.integers(0, 255)] * 3) | st.tuples(*[st.integers(0, 255)] * 4)


def parsed(*elements):
    """Parse elements inside an <svg>, as in a page."""
    return list(ElementTree.fromstring(f"<svg>{''.join(elements)}</svg>"))


def only(shapes):
    (element,) = shapes.elements
    (read,) = parsed(element)
    return read


def number(element, name):
    return float(element.get(name))


def extent(element):
    """Return left, top, right and bottom of an element; for text, only its position."""
    if element.tag == "rect":
        left, top = number(element, "x"), number(element, "y")
        return left, top, left + number(element, "width"), top + number(element, "height")
    if element.tag == "ellipse":
        (x, y), (across, down) = ((number(element, a), number(element, b)) for a, b in (("cx", "cy"), ("rx", "ry")))
        return x - across, y - down, x + across, y + down
    if element.tag == "polygon":
        corners = np.array([corner.split(",") for corner in element.get("points").split()], float)
        return *corners.min(axis=0), *corners.max(axis=0)
    if element.tag == "line":
        xs, ys = ([number(element, f"{axis}{end}") for end in (1, 2)] for axis in "xy")
        return min(xs), min(ys), max(xs), max(ys)
    assert element.tag == "text"
    return (number(element, "x"), number(element, "y")) * 2


def assert_within(elements, width, height, margin):
    for element in elements:
        left, top, right, bottom = extent(element)
        assert -margin <= left <= right <= width + margin
        assert -margin <= top <= bottom <= height + margin


@pytest.fixture(scope="module", params=WORLDS)
def played(request):
    """An environment and some of its states as NumPy arrays: the first one, and those after random actions."""
    world = WORLDS[request.param]
    step = jax.jit(world.step)
    states = [jax.jit(world.reset)(jax.random.key(3))]
    random = np.random.default_rng(0)
    for key in jax.random.split(jax.random.key(4), STEPS):
        actions = random.integers(0, world.num_actions, world.num_agents).astype(np.int32)
        states.append(step(key, states[-1], actions)[0])
    return world, [jax.device_get(state) for state in states]


def test_every_registered_environment_is_drawn():
    assert set(consmarl.world_ids()) <= set(WORLDS)


def test_scenes_consist_of_elements_within_the_board(played):
    world, states = played
    rows, columns = world.grid
    for state in states:
        scene = draw_scene(world, state)
        assert len(scene.below) > 0
        for element in (*scene.below, *scene.above):
            (read,) = parsed(element)
            assert_within([read], columns * CELL, rows * CELL, margin=1)
        assert len(scene.gauges) == world.num_agents
        assert {len(of_agent) for of_agent in scene.gauges} == {len(gauge_heads(world))}
        assert all(0 <= gauge.share <= 1 for of_agent in scene.gauges for gauge in of_agent)
        assert all(isinstance(line, str) and line for line in scene.lines)


def test_agents_are_drawn_in_their_cells_at_distinct_positions(played):
    world, states = played
    for state in states:
        agents = draw_scene(world, state).agents
        assert agents.shape == (world.num_agents, 3)
        assert agents.dtype == np.float32
        for (left, top, side), (row, column) in zip(agents.tolist(), state.agents.tolist(), strict=True):
            assert 0 < side <= CELL
            # on a landmark they extend a little over the edge of the cell
            assert column * CELL - 2 <= left <= left + side <= (column + 1) * CELL + 2
            assert row * CELL - 2 <= top <= top + side <= (row + 1) * CELL + 2
        assert len(np.unique(agents[:, :2], axis=0)) == world.num_agents


class Notes(Canvas):
    """Records the shapes that painters draw, as (kind, extent, attributes, words)."""

    def __init__(self):
        self.asked = []

    def rectangle(self, box, fill=None, outline=None, line=1, radius=0):
        self.asked.append(("rect", box, painted(fill, outline, line) | {"rx": radius or None}, None))

    def disc(self, box, fill=None, outline=None, line=1):
        self.asked.append(("ellipse", box, painted(fill, outline, line), None))

    def polygon(self, corners, fill, outline=None):
        ends = (*np.min(corners, axis=0), *np.max(corners, axis=0))
        self.asked.append(("polygon", ends, painted(fill, outline, 1), None))

    def line(self, start, end, colour, width=1):
        ends = (*np.minimum(start, end), *np.maximum(start, end))
        self.asked.append(("line", ends, painted(None, colour, width), None))

    def text(self, place, words, size, colour=INK, anchor="lm"):
        looks = {"font-size": size, "text-anchor": {"l": "start", "m": "middle", "r": "end"}[anchor[0]]}
        self.asked.append(("text", (*place, *place), painted(colour, None, 1) | looks, words))


def painted(fill, outline, line):
    return {
        "fill": "none" if fill is None else hexadecimal(fill),
        "stroke": None if outline is None else hexadecimal(outline),
        "stroke-width": None if outline is None else line,
    }


def assert_as_asked(elements, asked):
    assert len(elements) == len(asked)
    for element, (kind, ends, attributes, words) in zip(elements, asked, strict=True):
        assert element.tag == kind
        np.testing.assert_allclose(extent(element), ends, rtol=0, atol=0.02)  # measures have two decimals
        for name, value in attributes.items():
            is_measure = isinstance(value, (int, float))
            assert (number(element, name) if is_measure else element.get(name)) == (
                pytest.approx(value, abs=0.01) if is_measure else value
            )
        assert element.text == words


def test_elements_match_what_the_painters_draw(played):
    world, states = played
    painter, scene = painter_of(world), draw_scene(world, states[-1])

    def cell_box(row, column):
        return Box(column * CELL, row * CELL, (column + 1) * CELL, (row + 1) * CELL)

    for elements, paint in ((scene.below, painter.paint_board), (scene.above, painter.paint_above_agents)):
        notes = Notes()
        paint(notes, world, states[-1], cell_box)
        assert_as_asked(parsed(*elements), notes.asked)


def test_icons_match_what_the_painters_draw_and_fit_their_squares(played):
    world, _ = played
    painter = painter_of(world)
    signs = [*(sign for sign, _ in legend(world)), *gauge_heads(world)]
    icons = [*(icon for icon, _ in painter.legend(world)), *painter.gauge_heads(world)]
    for sign, icon in zip(signs, icons, strict=True):
        notes = Notes()
        icon(notes, Box(0, 0, ICON, ICON))
        assert notes.asked
        assert_as_asked(parsed(sign), notes.asked)
        assert_within(parsed(sign), ICON, ICON, margin=1)
    assert [words for _, words in legend(world)] == [words for _, words in painter.legend(world)]
    assert all(words for _, words in legend(world))


def test_scenes_reflect_changes_of_the_state():
    world = consmarl.make("pgm-3ag")
    layout = {"agents": [[0, 0], [4, 4], [4, 4]], "golds": [[4, 4]], "stones": [[2, 2], [6, 6]]}
    state = jax.device_get(world.begin(world.layout_from(layout)))
    scene = draw_scene(world, state)
    alone, *pair = scene.agents.tolist()
    assert alone == pytest.approx([0.14 * CELL, 0.14 * CELL, 0.72 * CELL])
    assert all(4 * CELL - 2 <= left < 5 * CELL and side < CELL / 2 + 1 for left, _, side in pair)
    one_has_gold = draw_scene(world, state._replace(gold_mined=np.array([[False], [True], [False]])))
    assert [of_agent[0].is_complete for of_agent in one_has_gold.gauges] == [False, True, False]
    assert one_has_gold.lines[0] == "gold 1 of 3"
    emptied = draw_scene(world, state._replace(gold_mined=np.ones((3, 1), bool)))
    assert len(emptied.below) < len(scene.below)
    assert [of_agent[0].is_complete for of_agent in emptied.gauges] == [True] * 3
    assert emptied.lines[0] == "gold 3 of 3"


def test_beams_are_drawn_above_the_agents():
    world = consmarl.make("cleanup")
    state = jax.device_get(world.reset(jax.random.key(0)))
    before = draw_scene(world, state)
    beams = np.zeros_like(state.beams)
    beams[5, 5] = True
    after = draw_scene(world, state._replace(beams=beams))
    assert after.below == before.below
    (beam,) = parsed(*after.above)
    left, top, right, bottom = extent(beam)
    assert 5 * CELL <= left < right <= 6 * CELL
    assert (top, bottom) == (5 * CELL, 6 * CELL)
    assert beam.get("fill") == "#00becd6e"  # translucent: (0, 190, 205, 110)


@hypothesis.given(measures, measures, st.floats(0.1, 100), st.floats(0.1, 100), colours, colours)
def test_rectangles_and_discs_keep_their_place_and_colours(left, top, width, height, fill, outline):
    box = Box(left, top, left + width, top + height)
    for draw in (Shapes.rectangle, Shapes.disc):
        shapes = Shapes()
        draw(shapes, box, fill, outline, line=1.5)
        element = only(shapes)
        np.testing.assert_allclose(extent(element), box, rtol=0, atol=0.02)
        assert (element.get("fill"), element.get("stroke")) == (hexadecimal(fill), hexadecimal(outline))
        assert element.get("stroke-width") == "1.5"


def test_shapes_without_colours_have_no_fill_and_no_stroke():
    box = Box(1, 2, 5, 4)
    for draw, tag in ((Shapes.rectangle, "rect"), (Shapes.disc, "ellipse")):
        shapes = Shapes()
        draw(shapes, box)
        element = only(shapes)
        assert element.tag == tag
        assert element.get("fill") == "none"
        assert element.get("stroke") is None
        assert element.get("rx") == (None if tag == "rect" else "2")  # corners are rounded only on request


def test_rectangles_can_have_rounded_corners():
    shapes = Shapes()
    shapes.rectangle(Box(0, 0, 10, 10), (1, 2, 3), radius=2.5)
    assert only(shapes).get("rx") == "2.5"


def test_polygons_and_lines_go_through_their_points():
    shapes = Shapes()
    shapes.polygon([(0, 0), (10.126, 0), (5, -7.5)], (255, 0, 16), (0, 0, 0))
    shapes.line((1, 2), (3, 4.25), (9, 9, 9, 128), width=2)
    polygon, line = parsed(*shapes.elements)
    assert polygon.get("points") == "0,0 10.13,0 5,-7.5"
    assert (polygon.get("fill"), polygon.get("stroke")) == ("#ff0010", "#000000")
    assert [line.get(name) for name in ("x1", "y1", "x2", "y2")] == ["1", "2", "3", "4.25"]
    assert (line.get("fill"), line.get("stroke"), line.get("stroke-width")) == ("none", "#09090980", "2")


@hypothesis.given(st.text(st.characters(exclude_categories=["Cc", "Cs"], exclude_characters="\ufffe\uffff")))
def test_any_text_survives_escaping(words):
    shapes = Shapes()
    shapes.text((1, 2), words, 12, (10, 20, 30), "mm")
    element = only(shapes)
    assert (element.text or "") == words
    assert len(element) == 0


@pytest.mark.parametrize(("anchor", "where"), [("lm", "start"), ("mm", "middle"), ("rm", "end")])
def test_text_has_the_given_position_size_and_anchor(anchor, where):
    shapes = Shapes()
    shapes.text((1.5, 2), "a <b> & \"c\" 'd'", 12.25, (10, 20, 30, 40), anchor)
    element = only(shapes)
    assert element.text == "a <b> & \"c\" 'd'"
    assert (number(element, "x"), number(element, "y"), number(element, "font-size")) == (1.5, 2, 12.25)
    assert (element.get("text-anchor"), element.get("dominant-baseline")) == (where, "central")
    assert element.get("fill") == "#0a141e28"


def test_gauges_are_filled_to_their_share():
    for share, widths in ((0.0, [50]), (0.5, [50, 25]), (1.0, [50, 50]), (0.001, [50, 4])):  # never invisible
        shapes = Shapes()
        shapes.gauge(Box(0, 0, 50, 6), share, (1, 2, 3))
        assert [number(element, "width") for element in parsed(*shapes.elements)] == widths


def test_shapes_are_kept_in_the_order_in_which_they_were_drawn():
    shapes = Shapes()
    box = Box(0, 0, 4, 4)
    shapes.disc(box, (1, 1, 1))
    shapes.rectangle(box, (1, 1, 1))
    shapes.text((0, 0), "x", 3)
    assert [element.tag for element in parsed(*shapes.elements)] == ["ellipse", "rect", "text"]


@hypothesis.given(measures)
def test_measures_are_rounded_to_at_most_two_decimals(measure):
    text = short(measure)
    assert float(text) == pytest.approx(measure, abs=0.0051)
    assert len(text.partition(".")[2]) <= 2
    assert not text.endswith(".")
    assert "e" not in text
