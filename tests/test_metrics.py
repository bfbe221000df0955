import json

import jax
import pytest

from consmarl.environments.interface import Environment
from consmarl.environments.registry import make
from consmarl.environments.treasure import FindTreasure
from consmarl.errors import UsageError
from consmarl.experiments.configuration.config import TrainConfig
from consmarl.experiments.configuration.methods import METHODS
from consmarl.experiments.metrics import WORKINGS
from consmarl.metrics import (
    EVALUATION,
    LEARNING,
    LOSS,
    RETURN,
    SHARING,
    TRAINING,
    Metric,
    Schema,
    declared_once,
    from_json,
    joined,
    to_json,
)
from tests.worlds import all_worlds

WORLDS = all_worlds()
TOTAL, PART = Metric("caught"), Metric("cod_caught", "Cod", part_of="caught")
SCHEMA = Schema((RETURN, TOTAL, PART, LOSS, Metric("asked", family=SHARING)))


@pytest.mark.parametrize("name", WORLDS)
def test_every_world_declares_each_of_its_counters_and_nothing_else(name):
    world = WORLDS[name]
    counted = jax.eval_shape(lambda: world.counters(world.reset(jax.random.key(0))))
    assert {each.name for each in world.metrics} == {*counted.per_agent, *counted.team}
    assert all(each.family == TRAINING for each in world.metrics)


def test_the_most_there_is_follows_from_the_worlds_parameters():
    most = {each.name: each.most for each in make("ft-multi", num_yellow=2).metrics}
    assert (most["yellow_opened"], most["red_opened"], most["green_opened"], most["opened"]) == (2, 6, 6, 14)
    assert (most["coins_taken"], most["treasures_taken"], most["items_taken"]) == (2, 2, 4)
    assert {each.name: each.most for each in make("pgm-3ag").metrics} == {"gold_mined": 3, "stones_taken": 3 * 2 * 8}


def test_a_world_that_declares_nothing_has_its_counters_by_their_names():
    class Undeclared(FindTreasure):
        metrics = Environment.metrics

    undeclared = Undeclared().metrics
    assert {each.name for each in undeclared} == {each.name for each in FindTreasure().metrics}
    assert {each.name: each.title for each in undeclared}["yellow_opened"] == "Yellow opened"


@pytest.mark.parametrize("method", METHODS)
def test_every_method_declares_each_number_of_its_updates_and_of_its_sharing(method):
    trainer = TrainConfig(
        preset="paper", method=method, env="ft", set=("episode_limit=4",), hidden_size=4, batch_episodes=1,
        replay_episodes=2, warmup_steps=0, num_envs=1,
    ).trainer()  # fmt: skip
    state = jax.eval_shape(lambda: trainer.init(0))
    _, report = jax.eval_shape(lambda each: trainer._round(False, each), state)
    declared = {each.name: each for each in trainer.metrics.metrics}
    assert {name: declared[name].family for name in report.learning} == dict.fromkeys(report.learning, LEARNING)
    shared = set(report.sharing) - set(WORKINGS)
    assert {name: declared[name].family for name in shared} == dict.fromkeys(shared, SHARING)


def test_a_name_that_nobody_declared_gets_a_title_and_a_family_from_its_name():
    assert (SCHEMA["fish_caught"].title, SCHEMA["fish_caught"].family) == ("Fish caught", TRAINING)
    assert SCHEMA["new_loss"].family == LEARNING
    assert Schema()["loss"].family == LEARNING


def test_what_is_evaluated_has_the_title_that_it_has_in_training():
    assert SCHEMA["evaluation_cod_caught"] == Metric("evaluation_cod_caught", "Cod", EVALUATION, part_of="caught")


def test_metrics_come_by_family_then_as_declared_then_by_name():
    names = ["zeal", "asked", "ardour", "loss", "caught", "return", "evaluation_zeal", "evaluation_return"]
    ordered = ["evaluation_return", "evaluation_zeal", "return", "caught", "ardour", "zeal", "loss", "asked"]
    assert [each.name for each in SCHEMA.in_order(names)] == ordered


def test_a_family_that_is_not_ours_comes_last():
    schema = Schema((Metric("mood", family="Feelings"), *SCHEMA.metrics))
    assert [each.name for each in schema.in_order(["mood", "asked", "return"])] == ["return", "asked", "mood"]


def test_totals_are_left_out_where_their_parts_are_there():
    for prefix in ("", "evaluation_"):
        total, part = f"{prefix}caught", f"{prefix}cod_caught"
        assert [each.name for each in SCHEMA.in_order([total, part])] == [part]
        assert [each.name for each in SCHEMA.in_order([total])] == [total]
    assert len(SCHEMA.in_order(["evaluation_caught", "cod_caught"])) == 2


def test_counters_are_all_that_a_result_has_beside_returns_and_sharing():
    result = ["return", "return_error", "episode", "env_steps", "seconds", "episodes_evaluated", "asked", "fish_loss",
              "cod_caught", "caught"]  # fmt: skip
    assert {each.name for each in SCHEMA.counters(result)} == {"cod_caught", "fish_loss"}


def test_a_counter_of_a_family_of_its_own_is_a_counter():
    schema = Schema((*SCHEMA.metrics, Metric("weather", family="Sea")))
    assert [each.name for each in schema.counters(["return", "weather", "caught"])] == ["caught", "weather"]


def test_of_two_runs_metrics_the_first_declaration_counts():
    other = Schema((Metric("cod_caught", "Haddock"), Metric("sole_caught")))
    both = joined([SCHEMA, other, SCHEMA])
    assert both["cod_caught"].title == "Cod"
    assert both.metrics[-1].name == "sole_caught"


def test_declarations_survive_being_written_and_leave_out_what_goes_without_saying():
    schema = Schema((Metric("gold", "Gold mined", unit="gold", more_is_better=True, most=3), *SCHEMA.metrics))
    written = json.loads(json.dumps(to_json(schema)))
    assert written[0] == {"name": "gold", "title": "Gold mined", "unit": "gold", "more_is_better": True, "most": 3.0}
    assert from_json(written) == schema


def test_what_later_versions_say_of_a_metric_is_passed_over():
    assert from_json([{"name": "gold", "colour": "yellow"}]).metrics == (Metric("gold"),)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"title": "Gold"}, "must have a name"),
        ({"name": 3}, "name must be a string, not 3"),
        ({"name": "gold", "more_is_better": "yes"}, "more_is_better must be true or false"),
        ({"name": "gold", "most": 0}, "most must be above 0 and finite for gold"),
        ({"name": "gold", "part_of": "gold"}, "gold cannot be part of itself"),
    ],
)
def test_a_declaration_that_makes_no_sense_is_refused_in_a_sentence(wrong, said):
    with pytest.raises(UsageError) as error:
        from_json([wrong])
    assert said in str(error.value)
    assert str(error.value).endswith(".")


@pytest.mark.parametrize("name", ["return", "seconds", "evaluation_gold"])
def test_a_name_that_rows_use_for_something_else_is_refused(name):
    with pytest.raises(UsageError, match=f"'{name}' for something else"):
        declared_once((RETURN, Metric(name)))
