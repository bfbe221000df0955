"""Pictures that other packages draw of their own environments, with matplotlib."""

import contextlib
import io
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from consmarl.environments.compiled import as_its_authors_meant

INCHES = 4.8  # length of a side, at matplotlib's 100 dots per inch


def jumanji_pictures(env: Any, states: Sequence[Any]) -> Iterator[NDArray[np.uint8]] | None:
    """Yield pictures of states from Jumanji's viewer; return None if it cannot draw into memory."""
    viewer = getattr(env, "_viewer", None)
    if not hasattr(viewer, "_display_rgb_array"):
        return None
    return _by_viewer(env, viewer, states)


def _by_viewer(env: Any, viewer: Any, states: Sequence[Any]) -> Iterator[NDArray[np.uint8]]:
    plots = _plots()
    # viewers open windows unless constructed for RGB arrays, and each has a different constructor: override its method
    viewer._display, viewer.figure_size = viewer._display_rgb_array, (INCHES, INCHES)
    try:
        for state in states:
            with as_its_authors_meant():
                drawn = np.array(env.render(state))
            yield drawn[..., :3]
    finally:
        plots.close(viewer._name)


def jaxmarl_pictures(env: Any, states: Sequence[Any]) -> Iterator[NDArray[np.uint8]] | None:
    """Yield pictures of MPE or SMAX states from JaxMARL's visualisers; return None for other environments."""
    if hasattr(states[0], "p_pos"):
        return _particles(env, states)
    if hasattr(getattr(states[0], "state", states[0]), "unit_positions"):
        return _units(env, states)
    return None


def _particles(env: Any, states: Sequence[Any]) -> Iterator[NDArray[np.uint8]]:
    plots = _plots()
    # the visualiser prints to stdout
    with as_its_authors_meant(), contextlib.redirect_stdout(io.StringIO()):
        from jaxmarl.environments.mpe.mpe_visualizer import MPEVisualizer

        visualiser = MPEVisualizer(env, list(states))
    try:
        for number in range(len(states)):
            visualiser.update(number)
            yield _pixels(visualiser.fig)
    finally:
        plots.close(visualiser.fig)


def _units(env: Any, states: Sequence[Any]) -> Iterator[NDArray[np.uint8]]:
    figure, axes = _plots().subplots(figsize=(INCHES, INCHES))
    try:
        for number, state in enumerate(states):
            inner = getattr(state, "state", state)  # the state of both sides, if the enemy has its own policy
            everyone = getattr(env, "all_agents", env.agents)
            attacks = {agent: inner.prev_attack_actions[index] for index, agent in enumerate(everyone)}
            with as_its_authors_meant():
                env.init_render(axes, (None, inner, attacks), 0, number)
            yield _pixels(figure)
    finally:
        _plots().close(figure)


def _pixels(figure: Any) -> NDArray[np.uint8]:
    figure.canvas.draw()
    return np.array(figure.canvas.buffer_rgba())[..., :3]


def _plots() -> Any:
    """Return matplotlib.pyplot, with a backend that opens no windows."""
    import matplotlib.pyplot as plots

    plots.switch_backend("Agg")
    return plots
