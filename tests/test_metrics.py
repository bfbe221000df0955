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
def test_every_environment_declares_exactly_its_counters(name):
    world = WORLDS[name]
    counted = jax.eval_shape(lambda: world.counters(world.reset(jax.random.key(0))))
    assert {each.name for each in world.metrics} == {*counted.per_agent, *counted.team}
    assert all(each.family == TRAINING for each in world.metrics)


def test_maxima_follow_from_the_environments_parameters():
    most = {each.name: each.most for each in make("ft-multi", num_yellow=2).metrics}
    assert (most["yellow_opened"], most["red_opened"], most["green_opened"], most["opened"]) == (2, 6, 6, 14)
    assert (most["coins_taken"], most["treasures_taken"], most["items_taken"]) == (2, 2, 4)
    assert {each.name: each.most for each in make("pgm-3ag").metrics} == {"gold_mined": 3, "stones_taken": 3 * 2 * 8}


def test_undeclared_counters_get_titles_from_their_names():
    class Undeclared(FindTreasure):
        metrics = Environment.metrics

    undeclared = Undeclared().metrics
    assert {each.name for each in undeclared} == {each.name for each in FindTreasure().metrics}
    assert {each.name: each.title for each in undeclared}["yellow_opened"] == "Yellow opened"


@pytest.mark.parametrize("method", METHODS)
def test_every_method_declares_all_metrics_of_its_updates_and_its_sharing(method):
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


def test_undeclared_metrics_get_a_title_and_a_family_from_their_name():
    assert (SCHEMA["fish_caught"].title, SCHEMA["fish_caught"].family) == ("Fish caught", TRAINING)
    assert SCHEMA["new_loss"].family == LEARNING
    assert Schema()["loss"].family == LEARNING


def test_evaluation_metrics_have_the_same_title_as_in_training():
    assert SCHEMA["evaluation_cod_caught"] == Metric("evaluation_cod_caught", "Cod", EVALUATION, part_of="caught")


def test_metrics_are_ordered_by_family_then_declaration_then_name():
    names = ["zeal", "asked", "ardour", "loss", "caught", "return", "evaluation_zeal", "evaluation_return"]
    ordered = ["evaluation_return", "evaluation_zeal", "return", "caught", "ardour", "zeal", "loss", "asked"]
    assert [each.name for each in SCHEMA.in_order(names)] == ordered


def test_unknown_families_come_last():
    schema = Schema((Metric("mood", family="Feelings"), *SCHEMA.metrics))
    assert [each.name for each in schema.in_order(["mood", "asked", "return"])] == ["return", "asked", "mood"]


def test_totals_are_left_out_if_their_parts_are_present():
    for prefix in ("", "evaluation_"):
        total, part = f"{prefix}caught", f"{prefix}cod_caught"
        assert [each.name for each in SCHEMA.in_order([total, part])] == [part]
        assert [each.name for each in SCHEMA.in_order([total])] == [total]
    assert len(SCHEMA.in_order(["evaluation_caught", "cod_caught"])) == 2


def test_counters_exclude_returns_bookkeeping_and_sharing():
    result = ["return", "return_error", "episode", "env_steps", "seconds", "episodes_evaluated", "asked", "fish_loss",
              "cod_caught", "caught"]  # fmt: skip
    assert {each.name for each in SCHEMA.counters(result)} == {"cod_caught", "fish_loss"}


def test_metrics_of_an_unknown_family_are_counters():
    schema = Schema((*SCHEMA.metrics, Metric("weather", family="Sea")))
    assert [each.name for each in schema.counters(["return", "weather", "caught"])] == ["caught", "weather"]


def test_the_first_declaration_wins_when_schemas_are_joined():
    other = Schema((Metric("cod_caught", "Haddock"), Metric("sole_caught")))
    both = joined([SCHEMA, other, SCHEMA])
    assert both["cod_caught"].title == "Cod"
    assert both.metrics[-1].name == "sole_caught"


def test_declarations_survive_a_round_trip_through_json_and_omit_defaults():
    schema = Schema((Metric("gold", "Gold mined", unit="gold", more_is_better=True, most=3), *SCHEMA.metrics))
    written = json.loads(json.dumps(to_json(schema)))
    assert written[0] == {"name": "gold", "title": "Gold mined", "unit": "gold", "more_is_better": True, "most": 3.0}
    assert from_json(written) == schema


def test_unknown_fields_of_later_versions_are_ignored():
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
def test_invalid_declarations_are_refused_in_one_sentence(wrong, said):
    with pytest.raises(UsageError) as error:
        from_json([wrong])
    assert said in str(error.value)
    assert str(error.value).endswith(".")


@pytest.mark.parametrize("name", ["return", "seconds", "evaluation_gold"])
def test_reserved_metric_names_are_refused(name):
    with pytest.raises(UsageError, match=f"'{name}' for something else"):
        declared_once((RETURN, Metric(name)))
