"""A run's configuration: typed, checked, and written to the run's directory as JSON.

Each setting says where its default comes from: [P] the paper's table, [C] the authors' code, [ours]. The preset
`recommended` has others, all of them ours: `presets`. None leaves a setting to preset, method, world and length.
"""

import dataclasses
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import tyro

from consmarl.environments.foreign import is_foreign
from consmarl.environments.trust import Trust, confirmed
from consmarl.errors import UsageError
from consmarl.experiments.building import AnyTrainer as AnyTrainer
from consmarl.experiments.building import build_trainer
from consmarl.experiments.checks import check_numbers, check_periods, check_world
from consmarl.experiments.defaults import check_names, departing, resolved, with_preset
from consmarl.experiments.explorations import ExplorationKind
from consmarl.experiments.learn_options import LearnOptions
from consmarl.experiments.method_checks import check_method
from consmarl.experiments.methods import METHODS, Method, MethodEntry
from consmarl.experiments.naming import run_name
from consmarl.experiments.older_runs import from_settings
from consmarl.experiments.presets import settings_of
from consmarl.experiments.reading import changed, flat_settings, plain
from consmarl.experiments.sharing_options import ShareOptions, SharingKind
from consmarl.json_files import parse_json_object, read_json_object
from consmarl.learners.networks import Weights
from consmarl.learners.optimiser import OptimiserKind
from consmarl.learners.rewards import RewardOf
from consmarl.records import settle
from consmarl.sharing.interface import Sharing
from consmarl.sharing.options import Preset
from consmarl.training.exploration import LinearSchedule

USUAL_ENVS = 4  # episodes side by side


@dataclass(frozen=True)
class TrainConfig:
    """Everything that decides what a run does."""

    method: Method = Method.IQL
    """How to learn and share; `consmarl list` says what each does. adhoc-td and cons learn as iql does."""
    env: str = "pgm-3ag"
    """World to learn in; `consmarl list` shows them. Others' are pettingzoo:MODULE and lbforaging:ID."""
    set: tuple[str, ...] = ()
    """Parameters of the world, such as num_agents=4 grid=9,9."""
    episodes: int = 40_000
    """Episodes to play [C: 50,000 to 100,000 by world]."""
    seed: int = 0
    """Same seed, same bits."""
    preset: Preset = Preset.RECOMMENDED
    """Settings that belong together: what the paper says, what the authors' code does, or what learns best here [ours:
    recommended]. Other options win over it."""
    sharing: SharingKind | None = None
    """How to share knowledge; it goes with every method but ga-comm [ours: as the method's name says]."""
    share: ShareOptions = field(default_factory=ShareOptions)
    """Single options of sharing."""
    learn: LearnOptions = field(default_factory=LearnOptions)
    """Single options of methods."""
    exploration: ExplorationKind | None = None
    """How to try what does not look best [P: epsilon-greedy, and policy for ga-comm]."""
    epsilon_start: float | None = None
    """Probability of exploring at first [P: 1; C: 0.5 for ga-comm]."""
    epsilon_end: float | None = None
    """Probability of exploring after `epsilon_anneal_steps` [P: 0.05; C: 0.02 for ga-comm]."""
    epsilon_anneal_steps: int | None = None
    """Environment steps from the one to the other [P: 50,000; C: those of 750 episodes for ga-comm]."""
    epsilon_final: float | None = None
    """Probability of exploring at the end of the run [P: as epsilon_end]."""
    weights: Weights | None = None
    """Networks of the agents' own or a shared one [C: shared in Find the Treasure, separate elsewhere; ours: shared for
    vdn and qmix]."""
    reward_of: RewardOf | None = None
    """Whose reward an agent learns from [C: the team's in Find the Treasure, its own elsewhere; methods that learn a
    value of the team have no choice]."""
    hidden_size: int | None = None
    """Width of the networks [P: 64]."""
    optimiser: OptimiserKind | None = None
    """What makes steps of gradients [P: rmsprop]."""
    learning_rate: float | None = None
    """Of the optimiser [P: 5e-4; C: 1e-4 for ga-comm]."""
    learning_rate_end: float | None = None
    """Share of the learning rate that is left at the end of the run; it falls in equal parts [P: 1, it does not]."""
    discount: float | None = None
    """Gamma [P: 0.99]."""
    target_every_updates: int | None = None
    """Updates between copies to the target network [P: 200]."""
    batch_episodes: int | None = None
    """Episodes in an update [P: 32]."""
    replay_episodes: int | None = None
    """Episodes that replay holds [P: 10,000]."""
    warmup_steps: int | None = None
    """Environment steps stored before learning begins [C: 5,000]."""
    mirror_episodes: bool | None = None
    """Whether to learn from mirrored and rotated episodes too [P: no]."""
    coverage_bonus: float | None = None
    """Extra reward for each cell first seen in an episode; not in reported returns [P: 0]."""
    coverage_after: float | None = None
    """Share of the run after which that bonus counts [ours: 0]."""
    bootstrap_time_limit: bool | None = None
    """Whether value follows an episode that only ran out of time [P: no]."""
    num_envs: int | None = None
    """Episodes played side by side, followed by as many updates; 1 is the paper's order of events [ours: 4, fewer where
    `episodes` does not divide by it, and 1 where the world steps in Python or the method has no replay]."""
    report_every: int | None = None
    """Episodes between rows of metrics; the other periods are multiples of it [ours: a 200th of the run, 200 at
    most]."""
    evaluate_every: int | None = None
    """Episodes between evaluations [C: 100; P: 10,000; ours: a 40th of the run]."""
    evaluation_episodes: int = 100
    """Greedy episodes in an evaluation [P, C: 10]."""
    final_episodes: int = 400
    """Greedy episodes in the evaluation after training [P: 400, for its figure of boxes and items]."""
    checkpoint_every: int | None = None
    """Episodes between checkpoints [ours: an eighth of the run]."""
    keep_checkpoints: int = 2
    """How many checkpoints to keep [ours]."""
    tensorboard: bool = True
    """Whether to write TensorBoard events beside the rows [ours]."""
    record: tuple[int, ...] = ()
    """Numbers of episodes, counted from 0, whose exchanges are written to the run's directory [ours]."""
    teachers: str = ""
    """Run or policy file of experienced agents. They hold all seats but those of `newcomers`: they act and teach, and
    neither explore nor learn [ours: nobody's]."""
    newcomers: tuple[int, ...] = ()
    """Agents who learn among `teachers`, or whose seats others take at `join` [ours: agent 0]."""
    join: int = 0
    """Episodes after which newcomers take their seats, and begin from nothing among agents who go on learning [ours: 0,
    nobody joins]."""
    devices: int = 1
    """Devices that share the agents of this run [ours]."""
    by_default: Annotated[tuple[str, ...], tyro.conf.Fixed, tyro.conf.Suppress] = field(default=(), compare=False)
    """Settings that nobody set and whose defaults are filled in; `resolved` keeps it."""

    def __post_init__(self) -> None:
        """Bring what was given into its types, and check what can be checked without building anything."""
        settle(self)
        check_names(self)
        check_numbers(self)
        check_method(self)
        check_world(self)
        check_periods(self)

    @property
    def entry(self) -> MethodEntry:
        """What the method's name stands for."""
        return METHODS[self.method]

    @property
    def sharing_kind(self) -> SharingKind:
        """How knowledge is shared: `sharing`, or what the method brings."""
        return self.sharing or self.entry.sharing

    def experts(self, num_agents: int) -> tuple[int, ...]:
        """Return which agents of a team of so many are experienced from the start."""
        if not self.teachers:
            return ()
        return tuple(agent for agent in range(num_agents) if agent not in self.those_new)

    @property
    def those_new(self) -> tuple[int, ...]:
        """The agents who are new, from the start or later; none where all begin together."""
        return (self.newcomers or (0,)) if self.teachers or self.join else ()

    @property
    def by_preset(self) -> dict[str, Any]:
        """What the preset sets for this method in this world, whether or not the user has set it, too."""
        return settings_of(self.preset, self.method, self.sharing_kind, self.env)

    @property
    def exploration_kind(self) -> ExplorationKind:
        """How agents explore: `exploration`, or what preset and method bring."""
        own = ExplorationKind.EPSILON_GREEDY if self.entry.is_value_based else ExplorationKind.POLICY
        return self.exploration or self.by_preset.get("exploration", own)

    def epsilon(self, episode_limit: int) -> LinearSchedule:
        """Return how much is explored when, in a world with so many steps an episode."""
        there = with_preset(self)
        own = {"start": there.epsilon_start, "end": there.epsilon_end, "anneal_steps": there.epsilon_anneal_steps}
        given: dict[str, Any] = {name: value for name, value in own.items() if value is not None}
        schedule = dataclasses.replace(self.entry.epsilon(episode_limit), **given)
        if there.epsilon_final in (None, schedule.end):
            return schedule
        return dataclasses.replace(schedule, final=there.epsilon_final, final_steps=self.episodes * episode_limit)

    @property
    def sharing_start(self) -> int | None:
        """After which episode sharing begins: `share.start_episode`, or its default; None where nobody shares."""
        if self.teachers and self.share.start_episode is None and self.sharing_kind is not SharingKind.NONE:
            return 0  # experienced teachers have something to say from the start
        usual = self.by_preset.get("share.start_episode")
        return self.share.start(self.sharing_kind, self.preset, self.episodes, usual)

    @property
    def mechanism(self) -> Sharing:
        """How knowledge is shared, with all its options."""
        share = dataclasses.replace(with_preset(self).share, start_episode=self.sharing_start)
        return share.mechanism(self.sharing_kind, self.preset)

    @property
    def name(self) -> str:
        """A name for the run that tells it from others."""
        return run_name(self)

    @property
    def round_episodes(self) -> int:
        """How many episodes a round plays: `num_envs`, or its default."""
        if self.num_envs is not None:
            return self.num_envs
        if is_foreign(self.env) or self.entry.learner.is_on_policy:
            return 1
        return math.gcd(self.episodes, self.by_preset.get("num_envs", USUAL_ENVS))

    @property
    def chunk_episodes(self) -> int:
        """How many episodes lie between rows: `report_every`, or what divides the run best."""
        if self.report_every is not None:
            return self.report_every
        wished = min(200, max(20, self.episodes // 200))
        rounds = self.episodes // self.round_episodes
        most = min(wished // self.round_episodes, rounds)
        return next((each for each in range(most, 0, -1) if rounds % each == 0), 1) * self.round_episodes

    @property
    def evaluation_period(self) -> int:
        """How many episodes lie between evaluations."""
        return self.evaluate_every or _share_of(self.episodes, 40, self.chunk_episodes)

    @property
    def checkpoint_period(self) -> int:
        """How many episodes lie between checkpoints."""
        return self.checkpoint_every or _share_of(self.episodes, 8, self.chunk_episodes)

    def resolved(self, world: Any = None) -> "TrainConfig":
        """Return it with a value for every setting that its method has; those that were open are in `by_default`.

        Somebody else's world is not built for it: what depends on one stays open until the `world` is given.
        """
        return resolved(self, world)

    def trainer(self) -> AnyTrainer:
        """Build the run's parts."""
        return build_trainer(self)

    def to_json(self) -> str:
        """Write it down."""
        return json.dumps(plain(self), indent=2)

    @classmethod
    def from_json(
        cls, text: str | bytes, *, trust: Trust = False, file: str = "the configuration", is_run: bool = False
    ) -> "TrainConfig":
        """Read what `to_json` wrote, or what somebody wrote by hand; `file` is what to call it in sentences.

        Others' environments (`pettingzoo:MODULE`, `lbforaging:ID`) are programs, and what a text names is not run until
        a user says so: `trainer` refuses it unless `trust` is True or that very id. What a run has written (`is_run`)
        means what it did then, even if an older version wrote it.
        """
        config = from_settings(cls(), flat_settings(parse_json_object(text, file)), is_run=is_run)
        return dataclasses.replace(config, env=confirmed(config.env, trust, file))

    @classmethod
    def from_file(cls, path: Path, *, trust: Trust = False, is_run: bool = False) -> "TrainConfig":
        """Read a configuration's file, such as a run's config.json; `trust` and `is_run` as in `from_json`."""
        if not path.is_file():
            raise UsageError(f"there is no configuration {path}.")
        settings = read_json_object(path)
        try:
            config = from_settings(cls(), flat_settings(settings), is_run=is_run)
        except UsageError as error:
            raise UsageError(f"{path} cannot be used: {error}") from error
        return dataclasses.replace(config, env=confirmed(config.env, trust, str(path)))

    def trusted(self) -> "TrainConfig":
        """Return a copy whose environment may be run, even if a file named it: the user has said so."""
        return dataclasses.replace(self, env=str(self.env))

    def with_options(self, options: Mapping[str, Any]) -> "TrainConfig":
        """Return a copy with other settings, by name: `episodes`, `share.temperature`; enums by their values.

        Defaults that were filled in stay, unless they hang on what is changed: another method has others.
        """
        return changed(self.departing(options), options)

    def departing(self, names: Iterable[str]) -> "TrainConfig":
        """Return it ready to be changed in these settings: filled-in defaults that hang on them are open again."""
        return departing(self, names)


def _share_of(episodes: int, parts: int, chunk: int) -> int:
    """Return about a part of a run, in whole chunks."""
    return max(round(episodes / parts / chunk), 1) * chunk
