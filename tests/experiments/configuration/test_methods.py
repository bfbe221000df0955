"""Methods by name: what they consist of, which settings go together, and which are refused."""

import jax
import numpy as np
import pytest

from consmarl.environments.registry import make
from consmarl.errors import UsageError
from consmarl.experiments.configuration.config import TrainConfig
from consmarl.experiments.configuration.methods import METHODS
from consmarl.experiments.sweeps.plan import variants_of
from consmarl.learners.interface import Scores
from consmarl.learners.rewards import RewardOf
from consmarl.learners.team_networks import Weights
from consmarl.reports.runs import METHOD_NAMES, Run

VALUE_BASED = [method for method, entry in METHODS.items() if entry.is_value_based]


def learner_of(method, env="pgm-3ag", **settings):
    return TrainConfig(method=method, env=env, preset="paper", **settings).trainer().learner


def test_every_method_has_an_entry_and_a_name_in_reports():
    assert set(METHOD_NAMES) == set(METHODS)


def test_networks_and_rewards_depend_on_environment_and_method():
    assert learner_of("iql").weights is Weights.SEPARATE
    assert learner_of("iql", "ft").weights is Weights.SHARED
    assert learner_of("seql", "ft").weights is Weights.SEPARATE
    assert learner_of("qmix").weights is Weights.SHARED
    assert learner_of("vdn", weights=Weights.SEPARATE).weights is Weights.SEPARATE
    assert learner_of("i2q").reward_of is RewardOf.INDIVIDUAL
    assert learner_of("i2q", "ft").reward_of is RewardOf.TEAM


def test_common_settings_and_single_options_reach_the_learner():
    config = TrainConfig(method="i2q", learning_rate=0.01, discount=0.9).with_options({"learn.expectile": 0.7})
    learner = config.trainer().learner
    assert (learner.optimiser.learning_rate, learner.discount, learner.expectile) == (0.01, 0.9, 0.7)
    assert TrainConfig.from_json(config.to_json()) == config


def test_ga_comm_draws_from_its_policy_one_episode_at_a_time():
    trainer = TrainConfig(method="ga-comm", env="ft", preset="paper").trainer()
    assert trainer.learner.scores is Scores.LOGITS
    assert trainer.num_envs == 1
    assert trainer.learner.optimiser.learning_rate == 1e-4
    np.testing.assert_allclose([trainer.epsilon(0), trainer.epsilon(750 * 50), trainer.epsilon(10**6)],
                               [0.5, 0.02, 0.02], atol=1e-6)  # fmt: skip
    # it falls by 0.00064 per episode of 50 steps
    assert float(trainer.epsilon(0) - trainer.epsilon(50)) == pytest.approx(0.00064, rel=1e-3)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (dict(method="ga-comm", sharing="cons"), "use sharing with iql, adhoc-td, cons, i2q"),
        (dict(method="ga-comm", exploration="epsilon-greedy"), "samples from the policy"),
        (dict(method="iql", exploration="policy"), "has values and no policy"),
        (dict(method="i2q", weights=Weights.SHARED), "i2q has no choice of weights"),
        (dict(method="qmix", reward_of=RewardOf.INDIVIDUAL), "qmix has no choice of reward_of"),
    ],
)
def test_incompatible_settings_are_refused(settings, sentence):
    with pytest.raises(UsageError, match=sentence):
        TrainConfig(**settings)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"method": "iql", "learn.expectile": 0.7}, "learn.expectile is an option of i2q, not of iql"),
        ({"method": "i2q", "learn.expectile": 1.7}, "learn.expectile"),
        ({"method": "maven", "learn.num_strategies": 0}, "learn.num_strategies"),
        ({"method": "seql", "learn.others_weight": -1.0}, "learn.others_weight must be at least 0"),
        ({"method": "ga-comm", "learn.critic_learning_rate": 0.0}, "learn.critic_learning_rate must be above 0"),
        ({"method": "qmix", "learn.mixer": 3}, "there is no setting 'learn.mixer'"),
    ],
)
def test_invalid_options_of_methods_are_refused(options, sentence):
    with pytest.raises(UsageError, match=sentence):
        TrainConfig().with_options(options)


@pytest.mark.parametrize(("method", "sentence"), [("seql", "weights separate"), ("maven", "one network for all")])
def test_networks_that_a_method_cannot_have_are_refused(method, sentence):
    wrong = Weights.SHARED if method == "seql" else Weights.SEPARATE
    with pytest.raises(UsageError, match=sentence):
        learner_of(method, weights=wrong)


@pytest.mark.parametrize("sharing", ["cons", "adhoc-td"])
@pytest.mark.parametrize("method", VALUE_BASED)
def test_sharing_works_with_every_value_based_method(method, sharing):
    config = TrainConfig(method=method, sharing=sharing, env="ft", episodes=8)
    trainer = config.trainer()

    def round_of(key):
        del key
        return trainer._round(False, trainer.init(0))[1]

    # tracing shows without compiling that the parts fit together
    report = jax.eval_shape(round_of, jax.random.key(0))
    assert report.sharing["requests"].shape == (make("ft").num_agents, trainer.num_envs)


def test_a_runs_name_includes_sharing_added_to_its_method():
    shared = TrainConfig(method="vdn", preset="paper", sharing="cons")
    assert shared.name == "pgm-3ag-vdn-sharing-cons-paper-epsilon-greedy-0"
    assert TrainConfig(method="vdn", preset="paper").name == "pgm-3ag-vdn-paper-epsilon-greedy-0"
    assert TrainConfig(method="cons", sharing="cons").name == TrainConfig(method="cons").name


@pytest.mark.parametrize(
    ("config", "name"),
    [
        ({"method": "vdn"}, "VDN"),
        ({"method": "vdn", "sharing": "cons"}, "VDN + CONS"),
        ({"method": "cons", "sharing": "cons"}, "CONS"),
        ({"method": "cons", "sharing": "none"}, "CONS without sharing"),
    ],
)
def test_reports_name_a_method_with_the_sharing_added_to_it(config, name, tmp_path):
    assert Run(tmp_path, config, {}, [], None, None).method == name


def test_options_of_a_sweep_reach_only_methods_that_have_them():
    seql, qmix, iql = variants_of(("seql", "qmix", "iql"), {}, {"learn.others_weight": 0.5, "learn.mixer_size": 16})
    assert seql.options == {"method": "seql", "learn.others_weight": 0.5}
    assert qmix.options == {"method": "qmix", "learn.mixer_size": 16}
    assert iql.options == {"method": "iql"}
    greedy, policy = variants_of(("vdn", "ga-comm"), {}, {"exploration": "epsilon-greedy", "weights": "separate"})
    assert greedy.options == {"method": "vdn", "exploration": "epsilon-greedy", "weights": "separate"}
    assert policy.options == {"method": "ga-comm"}
    with_sharing = variants_of(("vdn",), {}, {"sharing": "cons", "share.temperature": 0.3})
    assert with_sharing[0].options["share.temperature"] == 0.3
    with pytest.raises(UsageError, match=r"none of the methods iql has an option learn\.expectile"):
        variants_of(("iql",), {}, {"learn.expectile": 0.6})
