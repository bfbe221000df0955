"""The settings of a run: names, types and descriptions, and values derived from them without building anything.

Each description names the source of the default: [P] the paper's table, [C] the authors' code, [ours]. The preset
`recommended` has different defaults, all ours: see `presets`. For a setting that is None, the preset, method,
environment and length of the run decide.
"""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Self

import tyro

from consmarl.environments.foreign import is_foreign
from consmarl.experiments.configuration.as_json import changed, every_setting
from consmarl.experiments.configuration.explorations import EXPLORATIONS, ExploreOptions
from consmarl.experiments.configuration.methods import METHODS, LearnOptions, MethodEntry
from consmarl.experiments.configuration.pairs import pairs_of, spelled_alike
from consmarl.experiments.configuration.presets import settings_of
from consmarl.experiments.configuration.sharings import NOBODY, SHARINGS, ShareOptions
from consmarl.learners.optimiser import OptimiserKind
from consmarl.learners.rewards import RewardOf
from consmarl.learners.team_networks import Weights
from consmarl.records import OneOf, settle
from consmarl.sharing.interface import Sharing
from consmarl.sharing.options import Preset
from consmarl.training.exploration import LinearSchedule

USUAL_ENVS = 4  # episodes side by side
# Preset settings meant for long runs; `round_episodes` and `sharing_start` adapt them to the run's length.
FITTED = frozenset({"num_envs", "share.start_episode"})


@dataclass(frozen=True)
class Settings:
    """All settings of a run; `config.TrainConfig` checks that they are consistent."""

    method: Annotated[str, OneOf(METHODS)] = "iql"
    """How to learn and share; `consmarl list` describes each. adhoc-td and cons learn like iql."""
    env: str = "pgm-3ag"
    """Environment to learn in; `consmarl list` shows ours. Those of other packages are jaxmarl:NAME, jumanji:NAME,
    pettingzoo:MODULE and lbforaging:ID."""
    set: tuple[str, ...] = ()
    """Parameters of the environment, such as num_agents=4 grid=9,9."""
    episodes: int = 40_000
    """Episodes to play [C: 50,000 to 100,000, depending on the environment]."""
    seed: int = 0
    """Random seed; the same seed gives bit-identical results."""
    preset: Preset = Preset.RECOMMENDED
    """Settings that belong together: those of the paper, of the authors' code, or those that learn best here [ours:
    recommended]. Other options override them."""
    sharing: Annotated[str | None, OneOf(SHARINGS)] = None
    """How to share knowledge, with any method but ga-comm [ours: the mechanism of the method]."""
    share: ShareOptions = field(default_factory=ShareOptions)
    """Individual options of sharing."""
    learn: LearnOptions = field(default_factory=LearnOptions)
    """Individual options of methods."""
    exploration: Annotated[str | None, OneOf(EXPLORATIONS)] = None
    """How to explore [P: epsilon-greedy, and policy for ga-comm]."""
    explore: ExploreOptions = field(default_factory=ExploreOptions)
    """Individual options of explorations."""
    epsilon_start: float | None = None
    """Initial probability of exploring [P: 1; C: 0.5 for ga-comm]."""
    epsilon_end: float | None = None
    """Probability of exploring after `epsilon_anneal_steps` [P: 0.05; C: 0.02 for ga-comm]."""
    epsilon_anneal_steps: int | None = None
    """Environment steps to go from epsilon_start to epsilon_end [P: 50,000; C: those of 750 episodes for ga-comm]."""
    epsilon_final: float | None = None
    """Probability of exploring at the end of the run [P: epsilon_end]."""
    weights: Weights | None = None
    """Whether agents have separate networks or share one [C: shared in Find the Treasure, separate elsewhere; ours:
    shared for vdn and qmix]."""
    reward_of: RewardOf | None = None
    """Whose reward an agent learns from [C: the team's in Find the Treasure, its own elsewhere; fixed for methods that
    learn a team value]."""
    hidden_size: int | None = None
    """Width of the networks [P: 64]."""
    optimiser: OptimiserKind | None = None
    """Optimiser of the networks [P: rmsprop]."""
    learning_rate: float | None = None
    """Learning rate of the optimiser [P: 5e-4; C: 1e-4 for ga-comm]."""
    learning_rate_end: float | None = None
    """Fraction of the learning rate left at the end of the run; it decreases linearly [P: 1, constant]."""
    discount: float | None = None
    """Discount factor gamma [P: 0.99]."""
    target_every_updates: int | None = None
    """Updates between copies to the target network [P: 200]."""
    batch_episodes: int | None = None
    """Episodes per update [P: 32]."""
    updates_per_episode: int | None = None
    """Updates after each episode; with more, agents learn more from it, at a proportional cost [P: 1]."""
    replay_episodes: int | None = None
    """Capacity of the replay buffer in episodes [P: 10,000]."""
    warmup_steps: int | None = None
    """Environment steps stored before learning starts [C: 5,000]."""
    mirror_episodes: bool | None = None
    """Whether to also learn from mirrored and rotated episodes [P: no]."""
    coverage_bonus: float | None = None
    """Extra reward for each cell first seen in an episode; excluded from reported returns [P: 0]."""
    coverage_after: float | None = None
    """Fraction of the run after which that bonus applies [ours: 0]."""
    bootstrap_time_limit: bool | None = None
    """Whether to bootstrap when an episode only ran out of time [P: no]."""
    num_envs: int | None = None
    """Episodes played side by side, followed by their updates; 1 is the paper's order of events. If there are
    several, environments that step in Python use one process per core [ours: 4, fewer if `episodes` is not divisible by
    it, and 1 if the environment steps in Python or the method has no replay]."""
    report_every: int | None = None
    """Episodes between rows of metrics; the other periods are multiples of it [ours: a 200th of the run, at most
    200]."""
    evaluate_every: int | None = None
    """Episodes between evaluations [C: 100; P: 10,000; ours: a 40th of the run]."""
    evaluation_episodes: int = 100
    """Greedy episodes per evaluation [P, C: 10]."""
    final_episodes: int = 400
    """Greedy episodes in the evaluation after training [P: 400, for its figure of boxes and items]."""
    checkpoint_every: int | None = None
    """Episodes between checkpoints [ours: an eighth of the run]."""
    keep_checkpoints: int = 2
    """Number of checkpoints to keep [ours]."""
    tensorboard: bool = True
    """Whether to write TensorBoard events as well [ours]."""
    record: tuple[int, ...] = ()
    """Numbers of episodes, counted from 0, whose exchanges are recorded in the run's directory [ours]."""
    teachers: str = ""
    """Run or policy file of experienced agents, who take all seats except those of `newcomers`: they act and teach, but
    neither explore nor learn [ours: none]."""
    beside: bool = False
    """Whether `teachers` stand beside the team instead: they hold no seat and only answer, and all agents learn [ours:
    no]."""
    newcomers: tuple[int, ...] = ()
    """Agents that learn among `teachers`, or whose seats are taken over at `join` [ours: agent 0]."""
    join: int = 0
    """Episodes after which newcomers take their seats and start from scratch among agents that keep learning [ours: 0,
    nobody joins]."""
    devices: int = 1
    """Devices that the run's agents are distributed over [ours]."""
    by_default: Annotated[tuple[str, ...], tyro.conf.Fixed, tyro.conf.Suppress] = field(default=(), compare=False)
    """Settings that the user did not set and whose defaults `resolved` has filled in."""

    def __post_init__(self) -> None:
        """Convert values to their types; `set` may also be a dict."""
        if isinstance(self.set, Mapping):
            object.__setattr__(self, "set", spelled_alike(pairs_of(self.set)))
        settle(self)

    @property
    def entry(self) -> MethodEntry:
        """The registered method."""
        return METHODS[self.method]

    @property
    def sharing_kind(self) -> str:
        """The name of the sharing mechanism: `sharing`, or the method's own."""
        return self.sharing or self.entry.sharing

    @property
    def shares_knowledge(self) -> bool:
        """Whether agents share knowledge."""
        return self.sharing_kind != NOBODY

    def has_setting(self, name: str) -> bool:
        """Return whether a setting applies to this method with its sharing and exploration."""
        return self.entry.has_setting(name, self.sharing_kind, self.exploration_kind)

    def experts(self, num_agents: int) -> tuple[int, ...]:
        """Return the agents of a team of this size that are experienced from the start."""
        if not self.teachers or self.beside:
            return ()
        return tuple(agent for agent in range(num_agents) if agent not in self.those_new)

    @property
    def those_new(self) -> tuple[int, ...]:
        """The newcomers, who join at the start or at `join`; empty if all agents start together."""
        has_newcomers = self.join or (self.teachers and not self.beside)
        return (self.newcomers or (0,)) if has_newcomers else ()

    @property
    def by_preset(self) -> dict[str, Any]:
        """The preset's settings for this method in this environment, including any that the user has overridden."""
        return settings_of(self.preset, self.method, self.sharing_kind, self.env, is_taught=bool(self.teachers))

    @property
    def exploration_kind(self) -> str:
        """The name of the exploration: `exploration`, or the default of preset or method."""
        own = "epsilon-greedy" if self.entry.is_value_based else "policy"
        return self.exploration or str(self.by_preset.get("exploration", own))

    def with_preset(self) -> Self:
        """Return a copy with the preset's values for settings that are None, except those that depend on the length."""
        there = every_setting(self)
        found = {name: value for name, value in self.by_preset.items() if there[name] is None and name not in FITTED}
        return changed(self, found) if found else self

    def epsilon(self, episode_limit: int) -> LinearSchedule:
        """Return the exploration schedule for an environment with at most this many steps per episode."""
        there = self.with_preset()
        own = {"start": there.epsilon_start, "end": there.epsilon_end, "anneal_steps": there.epsilon_anneal_steps}
        given: dict[str, Any] = {name: value for name, value in own.items() if value is not None}
        schedule = dataclasses.replace(self.entry.epsilon(episode_limit), **given)
        if there.epsilon_final in (None, schedule.end):
            return schedule
        return dataclasses.replace(schedule, final=there.epsilon_final, final_steps=self.episodes * episode_limit)

    @property
    def sharing_start(self) -> int | None:
        """The episode after which sharing starts: `share.start_episode` or its default; None if nobody shares."""
        if self.teachers and self.share.start_episode is None and self.has_setting("share.start_episode"):
            return 0  # experienced teachers can advise from the start
        usual = self.by_preset.get("share.start_episode")
        return self.share.start(self.sharing_kind, self.preset, self.episodes, usual)

    @property
    def mechanism(self) -> Sharing:
        """The sharing mechanism, built with all its options."""
        share = self.with_preset().share.changed({"start_episode": self.sharing_start})
        return share.mechanism(self.sharing_kind, self.preset)

    @property
    def round_episodes(self) -> int:
        """Number of episodes per round: `num_envs` or its default."""
        if self.num_envs is not None:
            return self.num_envs
        if is_foreign(self.env) or self.entry.learner.is_on_policy:
            return 1
        return math.gcd(self.episodes, self.by_preset.get("num_envs", USUAL_ENVS))

    @property
    def chunk_episodes(self) -> int:
        """Number of episodes between rows: `report_every`, or a divisor of the run's length."""
        if self.report_every is not None:
            return self.report_every
        wished = min(200, max(20, self.episodes // 200))
        rounds = self.episodes // self.round_episodes
        most = min(wished // self.round_episodes, rounds)
        return next((each for each in range(most, 0, -1) if rounds % each == 0), 1) * self.round_episodes

    @property
    def evaluation_period(self) -> int:
        """Number of episodes between evaluations."""
        return self.evaluate_every or _share_of(self.episodes, 40, self.chunk_episodes)

    @property
    def checkpoint_period(self) -> int:
        """Number of episodes between checkpoints."""
        return self.checkpoint_every or _share_of(self.episodes, 8, self.chunk_episodes)


def _share_of(episodes: int, parts: int, chunk: int) -> int:
    """Return about 1/`parts` of a run, in whole chunks."""
    return max(round(episodes / parts / chunk), 1) * chunk
