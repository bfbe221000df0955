"""Compiled programs stored on disk. Those here are tiny: the tests check whether they are traced again."""

import dataclasses
import itertools
import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from consmarl.environments.registry import world_ids
from consmarl.experiments.configuration.config import TrainConfig
from consmarl.experiments.configuration.methods import METHODS
from consmarl.sharing.options import Preset
from consmarl.training import programs
from consmarl.training.exploration import LinearSchedule
from consmarl.training.programs import Program, Shelf, description, keep_programs

pytestmark = pytest.mark.usefixtures("without_jax_cache")
SCHEDULE = LinearSchedule(1.0, 0.5, 10)


@pytest.fixture
def shelf(tmp_path):
    keep_programs(Shelf(tmp_path, most_bytes=10**6))
    yield tmp_path
    keep_programs(None)


@pytest.fixture
def traced():
    return []


@pytest.fixture
def program(traced):
    """Return a function that creates the program afresh, as another process would."""

    def anew():
        def scaled(schedule, state):  # a new function each time, because JAX remembers traced ones
            traced.append(schedule)
            return {name: value * schedule.start for name, value in state.items()}

        return Program(scaled, num_static=1, donate_argnums=(1,))

    return anew


def state(size=3):
    return {"weights": jnp.arange(size, dtype=jnp.float32)}


def test_a_program_is_traced_once_for_all_processes(shelf, program, traced):
    results = [program()(SCHEDULE, state())["weights"] for _ in range(3)]
    assert len(traced) == 1
    assert len(list(shelf.iterdir())) == 1
    for result in results:
        np.testing.assert_array_equal(result, [0.0, 1.0, 2.0])


def test_a_change_of_part_shape_or_code_gives_another_program(shelf, program, traced, monkeypatch):
    program()(SCHEDULE, state())
    assert program()(dataclasses.replace(SCHEDULE, start=0.5), state())["weights"][2] == 1.0
    program()(SCHEDULE, state(4))
    monkeypatch.setattr(programs, "_code", lambda: "another version")
    program()(SCHEDULE, state())
    monkeypatch.setattr(programs, "_hash", lambda _: "of this very file")
    program()(SCHEDULE, state())
    assert len(traced) == len(list(shelf.iterdir())) == 5


@pytest.mark.usefixtures("shelf")
def test_stored_programs_also_donate_their_arguments(program):
    for _ in range(2):
        given = state()
        program()(SCHEDULE, given)
        assert given["weights"].is_deleted()


@pytest.mark.parametrize("damage", [lambda data: data[:100], lambda data: data[:-1] + b"x", lambda _: b""])
def test_a_damaged_program_is_silently_compiled_again(shelf, program, traced, damage, capfd):
    program()(SCHEDULE, state())
    (path,) = shelf.iterdir()
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    assert program()(SCHEDULE, state())["weights"][2] == 2.0
    assert len(traced) == 2
    program()(SCHEDULE, state())
    assert len(traced) == 2  # the damaged file was replaced
    assert capfd.readouterr() == ("", "")


def test_a_program_that_cannot_be_loaded_is_compiled_again(shelf, program, traced):
    program()(SCHEDULE, state())
    (path,) = shelf.iterdir()
    Shelf(shelf, 10**6).put(path.stem, b"whole, and not a program")
    assert program()(SCHEDULE, state())["weights"][2] == 2.0
    assert len(traced) == 2


def test_an_unwritable_directory_does_no_harm(tmp_path, program):
    keep_programs(Shelf(tmp_path / "file" / "programs", 10**6))
    (tmp_path / "file").touch()
    assert program()(SCHEDULE, state())["weights"][2] == 2.0
    keep_programs(None)


def test_the_most_recently_used_programs_are_kept(tmp_path):
    shelf = Shelf(tmp_path, most_bytes=10**6)
    for number, name in enumerate("abc"):
        shelf.put(name, os.urandom(1000))
        os.utime(tmp_path / f"{name}.program", (number, number))
    assert shelf.get("a") is not None  # which marks it as the most recently used
    dataclasses.replace(shelf, most_bytes=2500).put("d", os.urandom(1000))
    assert sorted(path.stem for path in tmp_path.iterdir()) == ["a", "d"]


def test_a_program_from_jaxs_own_cache_is_not_stored(shelf, program):
    jax.config.update("jax_enable_compilation_cache", True)  # such a program would lack functions that it calls
    assert program()(SCHEDULE, state())["weights"][2] == 2.0
    assert list(shelf.iterdir()) == []


def test_a_program_that_sorts_can_be_stored(shelf):
    def anew():
        def in_order(number, values):
            return jnp.sort(values) + number

        return Program(in_order, num_static=1)

    for _ in range(2):
        np.testing.assert_array_equal(anew()(1, jnp.array([3, 1, 2])), [2, 3, 4])
    assert len(list(shelf.iterdir())) == 1


@pytest.mark.usefixtures("shelf")
def test_a_change_of_shapes_between_calls_is_noticed(program, traced):
    again = program()
    for size in (3, 4, 3, 5):
        np.testing.assert_array_equal(again(SCHEDULE, state(size))["weights"], np.arange(size))
    assert len(traced) == 3


def test_programs_of_third_party_parts_are_compiled_but_not_stored(shelf, traced):
    @dataclasses.dataclass(frozen=True)
    class Theirs:
        start: float = 2.0

    def scaled(part, value):
        traced.append(part)
        return value * part.start

    program = Program(scaled, num_static=1)
    assert float(program(Theirs(), jnp.float32(3))) == 6.0
    assert float(program(Theirs(), jnp.float32(4))) == 8.0
    assert len(traced) == 1
    assert list(shelf.iterdir()) == []


def test_programs_can_be_traced_within_others(shelf, program):
    traced = jax.eval_shape(lambda given: program()(SCHEDULE, given), state())
    assert traced["weights"].shape == (3,)
    assert list(shelf.iterdir()) == []


@pytest.mark.parametrize("env", [*world_ids(), "pettingzoo:mpe2.simple_spread_v3"])
def test_the_programs_of_every_run_can_be_stored(env):
    for method, preset in itertools.product(METHODS, Preset):
        run = TrainConfig(env=env, method=method, preset=preset).trainer()
        for part in (run.actors, run.learning, run.sharing, run.learner, *([run] if env in world_ids() else [])):
            assert description(part)


def test_a_description_contains_everything_a_part_consists_of():
    assert description((1, 1.0, "a", None, np.dtype(np.uint8))) == "builtins.tuple(1, 1.0, 'a', None, dtype |u1)"
    assert description(SCHEDULE) == (
        "consmarl.training.exploration.LinearSchedule(start=1.0, end=0.5, anneal_steps=10, final=None, final_steps=0)"
    )
    with pytest.raises(TypeError):
        description(lambda: None)
