"""What choices stand for: bins of a Box, several dimensions, and agents with fewer choices or dimensions."""

import numpy as np
import pytest
from gymnasium import spaces
from pettingzoo import ParallelEnv

from consmarl.environments.actions import TeamActions, discrete, divided, several_discrete
from consmarl.environments.foreign import ForeignWorld
from consmarl.errors import UsageError


def test_bins_are_evenly_spaced_and_include_both_ends():
    own = divided("it", np.array([-1.0, 0.0]), np.array([1.0, 3.0]), (2,), np.float32, 5)
    # by hand: from −1 to 1 in steps of 0.5, and from 0 to 3 in steps of 0.75
    np.testing.assert_array_equal(own.table, [[-1, -0.5, 0, 0.5, 1], [0, 0.75, 1.5, 2.25, 3]])
    np.testing.assert_array_equal(own.action(np.array([0, 4])), np.array([-1, 3], np.float32))
    assert own.action(np.array([1, 1])).dtype == np.float32


@pytest.mark.parametrize("num_bins", [2, 3, 7, 256])
def test_the_outermost_bins_are_exact_and_all_bins_lie_in_the_box(num_bins):
    box = spaces.Box(np.float32(-0.1), np.float32(0.3), (2, 3), np.float32)
    own = divided("it", box.low, box.high, box.shape, box.dtype, num_bins)
    assert own.counts == (num_bins,) * 6
    np.testing.assert_array_equal(own.action(np.zeros(6, int)), box.low)
    np.testing.assert_array_equal(own.action(np.full(6, num_bins - 1)), box.high)
    assert all(box.contains(own.action(np.full(6, choice))) for choice in range(num_bins))


def test_bins_of_an_integer_box_are_integers():
    own = divided("it", 0, 10, (1,), np.int64, 4)
    assert own.values[0].tolist() == [0, 3, 7, 10]


@pytest.mark.parametrize(("low", "high"), [(-np.inf, 1.0), (0.0, np.inf), (-np.inf, np.inf)])
def test_an_unbounded_box_is_refused(low, high):
    with pytest.raises(UsageError, match=r"^it is acted on by a Box without finite ends, .*: wrap it in an .*\.$"):
        divided("it", low, high, (2,), np.float32, 5)


def test_choices_that_a_smaller_dimension_lacks_are_masked():
    team = TeamActions((several_discrete(np.array([3, 2]), np.array([10, 0])), discrete(4, start=7)))
    assert (team.num_branches, team.num_actions) == (2, 4)
    assert team.exists.tolist() == [
        [[True, True, True, False], [True, True, False, False]],
        [[True, True, True, True], [True, False, False, False]],  # one dummy choice in a dimension that it lacks
    ]
    assert team.action(0, np.array([2, 1])).tolist() == [12, 1]
    assert team.action(1, np.array([3, 0])) == 10
    assert not team.own_choices(1)[1].any()


def test_one_dimension_is_a_plain_discrete_action():
    team = TeamActions((divided("it", -2.0, 2.0, (1,), np.float32, 3), discrete(2)))
    assert team.num_branches == 1
    assert team.exists.tolist() == [[True, True, True], [True, True, False]]
    np.testing.assert_array_equal(team.action(0, np.array(2)), [2.0])
    assert team.names == (("-2", "0", "2"),)


class Knobs(ParallelEnv):
    """Two agents with given action spaces; keeps the actions received and checks that they lie in their spaces."""

    metadata = {"name": "knobs"}  # noqa: RUF012
    max_cycles = 3

    def __init__(self, first, second=None, masks=None):
        self.possible_agents, self.agents = ["left", "right"], []
        self.spaces, self.masks = {"left": first, "right": second or first}, masks
        self.received = []

    def observation_space(self, agent):
        del agent
        return spaces.Box(0, 9, (1,), np.float32)

    def action_space(self, agent):
        return self.spaces[agent]

    def _seen(self):
        infos = {agent: {} if self.masks is None else {"action_mask": self.masks[agent]} for agent in self.agents}
        return {agent: np.full(1, self.time, np.float32) for agent in self.agents}, infos

    def reset(self, seed=None, options=None):
        del seed, options
        self.time, self.agents = 0, list(self.possible_agents)
        return self._seen()

    def step(self, actions):
        assert all(self.spaces[agent].contains(each) for agent, each in actions.items()), actions
        self.received.append(actions)
        playing = self.agents
        self.time += 1
        seen, infos = self._seen()
        self.agents = [] if self.time == self.max_cycles else self.agents
        is_late = not self.agents
        gained = {agent: float(np.sum(each)) for agent, each in actions.items()}
        return seen, gained, dict.fromkeys(playing, False), dict.fromkeys(playing, is_late), infos


def test_the_environment_receives_the_actions_that_choices_stand_for():
    env = Knobs(spaces.Box(-1, 1, (2,), np.float32), spaces.MultiDiscrete([2, 3], start=[5, 0]))
    world = ForeignWorld(env)
    world.reset(0)
    world.step(np.array([[0, 4], [1, 2]], np.int32))
    assert env.received[0]["left"].tolist() == [-1.0, 1.0]
    assert env.received[0]["right"].tolist() == [6, 2]
    assert world.allowed[1].tolist() == [[True, True, False, False, False], [True, True, True, False, False]]
    assert world.choice_names == (("-1", "-0.5", "0", "0.5", "1"),) * 2


@pytest.mark.parametrize("as_tuple", [True, False])
def test_masks_of_several_dimensions_are_read_in_gymnasiums_formats(as_tuple):
    left, right = (np.array([1, 0], np.int8), np.array([0, 1, 1], np.int8)), (np.ones(2, np.int8), np.ones(3, np.int8))
    masks = {"left": left, "right": right}
    masks = masks if as_tuple else {agent: np.concatenate(each) for agent, each in masks.items()}
    world = ForeignWorld(Knobs(spaces.MultiDiscrete([2, 3]), masks=masks))
    world.reset(0)
    assert world.allowed[0].tolist() == [[True, False, False], [False, True, True]]
    assert world.allowed[1].tolist() == [[True, True, False], [True, True, True]]


def test_a_mask_of_the_wrong_size_is_refused():
    world = ForeignWorld(Knobs(spaces.MultiDiscrete([2, 3]), masks=dict.fromkeys(("left", "right"), np.ones(4))))
    with pytest.raises(UsageError, match=r"it must be 5 zeros and ones"):
        world.reset(0)


@pytest.mark.parametrize(
    ("space", "bins", "said"),
    [
        (spaces.Discrete(3), 4, "custom has no continuous actions to divide into bins: leave action_bins out."),
        (spaces.Box(0, 1, (2,)), 1, "action_bins must be a whole number of at least 2, not 1."),
        (spaces.Box(-np.inf, 1, (2,)), None, "custom is acted on by a Box without finite ends"),
        (spaces.Discrete(300), None, "custom has 300 actions: at most 256 can be stored."),
        (spaces.MultiBinary(3), None, "only Discrete, MultiDiscrete and Box actions can be learned."),
        (spaces.Box(0, 1, (300,)), None, "custom has actions of 300 dimensions: at most 256 can be learned."),
    ],
)
def test_unsupported_action_spaces_and_bins_are_refused(space, bins, said):
    with pytest.raises(UsageError) as error:
        ForeignWorld(Knobs(space), action_bins=bins)
    assert said in str(error.value)
