"""Other packages' own pictures of their environments, which they draw with matplotlib."""

import contextlib
import io
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from consmarl.environments.compiled import as_its_authors_meant

INCHES = 4.8  # a side, at matplotlib's 100 points an inch


def jumanji_pictures(env: Any, states: Sequence[Any]) -> Iterator[NDArray[np.uint8]] | None:
    """Draw states by Jumanji's viewer; None where an environment has none that draws into memory."""
    viewer = getattr(env, "_viewer", None)
    if not hasattr(viewer, "_display_rgb_array"):
        return None
    return _by_viewer(env, viewer, states)


def _by_viewer(env: Any, viewer: Any, states: Sequence[Any]) -> Iterator[NDArray[np.uint8]]:
    plots = _plots()
    # viewers show windows unless they were made for the other mode, and each kind is made in another way
    viewer._display, viewer.figure_size = viewer._display_rgb_array, (INCHES, INCHES)
    try:
        for state in states:
            with as_its_authors_meant():
                drawn = np.array(env.render(state))
            yield drawn[..., :3]
    finally:
        plots.close(viewer._name)


def jaxmarl_pictures(env: Any, states: Sequence[Any]) -> Iterator[NDArray[np.uint8]] | None:
    """Draw states of MPE and of SMAX by JaxMARL's visualisers; None for the rest."""
    if hasattr(states[0], "p_pos"):
        return _particles(env, states)
    if hasattr(getattr(states[0], "state", states[0]), "unit_positions"):
        return _units(env, states)
    return None


def _particles(env: Any, states: Sequence[Any]) -> Iterator[NDArray[np.uint8]]:
    plots = _plots()
    # it prints what it finds out
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
            inner = getattr(state, "state", state)  # that of both sides, where the enemy plays by itself
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
    """Return matplotlib's plots, without windows."""
    import matplotlib.pyplot as plots

    plots.switch_backend("Agg")
    return plots
