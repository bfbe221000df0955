"""A run's configuration: typed, checked, and written to the run's directory as JSON.

Each setting says where its default comes from: [P] the paper's table, [C] the authors' code, [ours].
"""

import dataclasses
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import tyro

from consmarl.environments import validation
from consmarl.environments.foreign import is_foreign
from consmarl.environments.trust import Trust, confirmed
from consmarl.errors import UsageError
from consmarl.experiments.building import AnyTrainer as AnyTrainer
from consmarl.experiments.building import build_trainer
from consmarl.experiments.defaults import check_names, departing, resolved
from consmarl.experiments.explorations import ExplorationKind
from consmarl.experiments.learn_options import LearnOptions
from consmarl.experiments.limits import num_evaluated
from consmarl.experiments.method_checks import check_method
from consmarl.experiments.methods import METHODS, Method, MethodEntry
from consmarl.experiments.naming import run_name
from consmarl.experiments.reading import changed, flat_settings, plain
from consmarl.experiments.sharing_options import ShareOptions, SharingKind
from consmarl.json_files import parse_json_object, read_json_object
from consmarl.learners.networks import Weights
from consmarl.learners.optimiser import OptimiserKind
from consmarl.learners.rewards import RewardOf
from consmarl.records import settle
from consmarl.sharing.options import Preset
from consmarl.training.exploration import LinearSchedule


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
    preset: Preset = Preset.PAPER
    """How to read what the paper leaves open: as the paper does, as the authors' code does, or as did best here."""
    sharing: SharingKind | None = None
    """How to share knowledge; it goes with every method but ga-comm [ours: as the method's name says]."""
    share: ShareOptions = field(default_factory=ShareOptions)
    """Single options of sharing."""
    learn: LearnOptions = field(default_factory=LearnOptions)
    """Single options of methods."""
    exploration: ExplorationKind | None = None
    """How to try what does not look best [P: epsilon-greedy, and policy for ga-comm; ours: epsilon-z-greedy in the
    preset recommended]."""
    epsilon_start: float | None = None
    """Probability of exploring at first [P: 1; C: 0.5 for ga-comm]."""
    epsilon_end: float | None = None
    """Probability of exploring in the end [P: 0.05; C: 0.02 for ga-comm]."""
    epsilon_anneal_steps: int | None = None
    """Environment steps from the one to the other [P: 50,000; C: those of 750 episodes for ga-comm]."""
    weights: Weights | None = None
    """Networks of the agents' own or a shared one [C: shared in Find the Treasure, separate elsewhere; ours: shared for
    vdn and qmix]."""
    reward_of: RewardOf | None = None
    """Whose reward an agent learns from [C: the team's in Find the Treasure, its own elsewhere; methods that learn a
    value of the team have no choice]."""
    hidden_size: int = 64
    """Width of the networks [P]."""
    optimiser: OptimiserKind = OptimiserKind.RMSPROP
    """What makes steps of gradients [P: rmsprop]."""
    learning_rate: float | None = None
    """Of the optimiser [P: 5e-4; C: 1e-4 for ga-comm]."""
    learning_rate_end: float = 1.0
    """Share of the learning rate that is left at the end of the run; it falls in equal parts [P: 1, it does not]."""
    discount: float = 0.99
    """Gamma [P]."""
    target_every_updates: int = 200
    """Updates between copies to the target network [P]."""
    batch_episodes: int = 32
    """Episodes in an update [P]."""
    replay_episodes: int = 10_000
    """Episodes that replay holds [P]."""
    warmup_steps: int = 5_000
    """Environment steps stored before learning begins [C]."""
    bootstrap_time_limit: bool = False
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
    devices: int = 1
    """Devices that share the agents of this run [ours]."""
    by_default: Annotated[tuple[str, ...], tyro.conf.Fixed, tyro.conf.Suppress] = field(default=(), compare=False)
    """Settings that nobody set and whose defaults are filled in; `resolved` keeps it."""

    def __post_init__(self) -> None:
        """Bring what was given into its types, and check what can be checked without building anything."""
        settle(self)
        check_names(self)
        for name, least in _WHOLE_NUMBERS.items():
            validation.whole_number(name, getattr(self, name), least=least)
        for name in ("num_envs", "report_every", "evaluate_every", "checkpoint_every", "epsilon_anneal_steps"):
            if getattr(self, name) is not None:
                validation.whole_number(name, getattr(self, name), least=1)
        for name in ("evaluation_episodes", "final_episodes"):
            num_evaluated(name, getattr(self, name))
        for name in ("epsilon_start", "epsilon_end"):
            if getattr(self, name) is not None:
                validation.probability(name, getattr(self, name))
        for name in ("discount", "learning_rate_end"):
            validation.fraction(name, getattr(self, name))
        if self.learning_rate is not None and validation.finite_number("learning_rate", self.learning_rate) <= 0:
            raise UsageError(f"learning_rate must be above 0, not {self.learning_rate}.")
        check_method(self)
        for number in self.record:
            if validation.whole_number("each number of record", number, least=0) >= self.episodes:
                raise UsageError(f"episode {number} cannot be recorded: the run ends before it, with {self.episodes}.")
        if is_foreign(self.env) and self.num_envs not in (None, 1):
            raise UsageError(f"{self.env} steps in Python, one episode at a time: num_envs is 1, not {self.num_envs}.")
        if is_foreign(self.env) and self.devices > 1:
            raise UsageError(f"{self.env} steps in Python, on one device: devices is 1, not {self.devices}.")
        self._check_periods()

    def _check_periods(self) -> None:
        """Chunks are of one length, so that they are compiled once: everything happens between two of them."""
        if self.episodes % self.round_episodes:
            raise UsageError(
                f"episodes must be a multiple of num_envs ({self.round_episodes}), not {self.episodes}: "
                f"{_next_multiple(self.episodes, self.round_episodes)} is the next."
            )
        if self.chunk_episodes % self.round_episodes:
            raise UsageError(
                f"report_every must be a multiple of num_envs ({self.round_episodes}), not {self.report_every}."
            )
        for name in ("episodes", "evaluate_every", "checkpoint_every"):
            period = getattr(self, name)
            if period is not None and period % self.chunk_episodes:
                raise UsageError(
                    f"{name} must be a multiple of report_every ({self.chunk_episodes}), not {period}: "
                    f"{_next_multiple(period, self.chunk_episodes)} is the next."
                )

    @property
    def entry(self) -> MethodEntry:
        """What the method's name stands for."""
        return METHODS[self.method]

    @property
    def sharing_kind(self) -> SharingKind:
        """How knowledge is shared: `sharing`, or what the method brings."""
        return self.sharing or self.entry.sharing

    @property
    def exploration_kind(self) -> ExplorationKind:
        """How agents explore: `exploration`, or what method and preset bring."""
        if self.exploration is not None:
            return self.exploration
        if not self.entry.is_value_based:
            return ExplorationKind.POLICY
        recommended = self.preset is Preset.RECOMMENDED
        return ExplorationKind.EPSILON_Z_GREEDY if recommended else ExplorationKind.EPSILON_GREEDY

    def epsilon(self, episode_limit: int) -> LinearSchedule:
        """Return how much is explored when, in a world with so many steps an episode."""
        own = {"start": self.epsilon_start, "end": self.epsilon_end, "anneal_steps": self.epsilon_anneal_steps}
        given: dict[str, Any] = {name: value for name, value in own.items() if value is not None}
        return dataclasses.replace(self.entry.epsilon(episode_limit), **given)

    @property
    def sharing_start(self) -> int | None:
        """After which episode sharing begins: `share.start_episode`, or its default; None where nobody shares."""
        return self.share.start(self.sharing_kind, self.preset, self.episodes)

    @property
    def name(self) -> str:
        """A name for the run that tells it from others."""
        return run_name(self)

    @property
    def round_episodes(self) -> int:
        """How many episodes a round plays: `num_envs`, or its default."""
        if self.num_envs is not None:
            return self.num_envs
        return 1 if is_foreign(self.env) or self.entry.learner.is_on_policy else math.gcd(self.episodes, 4)

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
    def from_json(cls, text: str | bytes, *, trust: Trust = False, file: str = "the configuration") -> "TrainConfig":
        """Read what `to_json` wrote, or what somebody wrote by hand; `file` is what to call it in sentences.

        Others' environments (`pettingzoo:MODULE`, `lbforaging:ID`) are programs, and what a text names is not run until
        a user says so: `trainer` refuses it unless `trust` is True or that very id.
        """
        config = cls().with_options(flat_settings(parse_json_object(text, file)))
        return dataclasses.replace(config, env=confirmed(config.env, trust, file))

    @classmethod
    def from_file(cls, path: Path, *, trust: Trust = False) -> "TrainConfig":
        """Read a configuration's file, such as a run's config.json; `trust` as in `from_json`."""
        if not path.is_file():
            raise UsageError(f"there is no configuration {path}.")
        settings = read_json_object(path)
        try:
            config = cls().with_options(flat_settings(settings))
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


_WHOLE_NUMBERS = {
    "episodes": 1, "seed": 0, "hidden_size": 1, "target_every_updates": 1,
    "batch_episodes": 1, "replay_episodes": 1, "warmup_steps": 0,
    "keep_checkpoints": 1, "devices": 1,
}  # fmt: skip


def _next_multiple(number: int, of: int) -> int:
    return -(-number // of) * of


def _share_of(episodes: int, parts: int, chunk: int) -> int:
    """Return about a part of a run, in whole chunks."""
    return max(round(episodes / parts / chunk), 1) * chunk
