"""`consmarl view`: select episodes of runs and write the page that replays them."""

import json
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from consmarl.environments import validation
from consmarl.environments.foreign import is_foreign
from consmarl.environments.trust import Trust
from consmarl.errors import UsageError
from consmarl.experiments import exchanges
from consmarl.experiments.configuration.config import TrainConfig
from consmarl.experiments.directory import read_config
from consmarl.experiments.exchanges import RecordedEpisode
from consmarl.files import EXCHANGES, VIEW
from consmarl.records import typed
from consmarl.reports.runs import read_run
from consmarl.sharing.options import Consult
from consmarl.viewer.page import write_page
from consmarl.viewer.replayed import pictures_of
from consmarl.viewer.staging import played_episodes
from consmarl.viewer.viewed import Viewed

MOST_RUNS = 2
MOST_PLAYED = 1_000  # episodes of a kind; a page with more would not open
TELLING = ("env", "set", "method", "sharing", "preset", "seed")  # settings in which a record must agree with its run


def view(
    runs: Path | str | Sequence[Path | str],
    out: Path | None = None,
    *,
    episodes: Sequence[int] = (),
    staged: int = 0,
    greedy: int = 0,
    seed: int = 0,
    without_sharing: bool = False,
    consult: Consult | str | None = None,
    trust: Trust = False,
    dimension: int = 0,
) -> Path:
    """Write a page that replays episodes of one run, or of two side by side; return its path.

    `episodes` are numbers of recorded episodes, by default all. `staged` is how many more to play from the newest
    checkpoint as in training, `greedy` how many as in an evaluation; the same seed gives all runs in an environment the
    same starts. `without_sharing` shows each staged episode of one run next to a copy in which nobody asks: all random
    numbers are the same, so any difference is due to the advice. `consult` lets agents consult each other in the greedy
    episodes of one run, shown next to the same episodes without consulting. If actions have several dimensions, the
    page shows the choices in one of them, `dimension`. The page is written into the (first) run's directory unless
    `out` names another path. With `trust`, a third-party environment, which is a program, is run to play and draw the
    recorded episodes again, if it can; otherwise its agents are shown in a ring.
    """
    named = [Path(runs)] if isinstance(runs, (str, Path)) else [Path(each) for each in runs]
    if not 1 <= len(named) <= MOST_RUNS:
        raise UsageError(f"name one run to view or two to compare, not {len(named)}.")
    for name, number in (("staged", staged), ("greedy", greedy)):
        validation.whole_number(name, number, least=0, most=MOST_PLAYED)
    validation.whole_number("seed", seed, least=0)
    validation.whole_number("dimension", dimension, least=0)
    for number in episodes:
        validation.whole_number("each episode number", number, least=0)
    out = named[0] / VIEW if out is None else Path(out)
    configs = [read_config(run, trust=trust) for run in named]
    if consult is not None:
        mode = typed("consult", Consult, consult)
        if without_sharing:
            raise UsageError("--consult and --without-sharing compare different things: choose one of them.")
        viewed = _consulting_and_alone(named, configs, episodes, staged, greedy, seed, mode)
    elif without_sharing:
        viewed = _with_and_without(named, configs, episodes, staged, greedy, seed)
    else:
        _check_comparable(named, configs)
        numbers = _recorded_numbers(named, episodes, is_optional=staged + greedy > 0)
        viewed = []
        for path, config in zip(named, configs, strict=True):
            found = [_read(path, number, config) for number in numbers]
            found += played_episodes(path, config, staged=staged, greedy=greedy, seed=seed)
            pictures = pictures_of(config, found) if trust and is_foreign(config.env) else None
            viewed.append(Viewed(read_run(path), config, found, pictures=pictures))
    return write_page([each.in_dimension(dimension) for each in viewed], out)


def _with_and_without(
    runs: Sequence[Path],
    configs: Sequence[TrainConfig],
    episodes: Sequence[int],
    staged: int,
    greedy: int,
    seed: int,
) -> list[Viewed]:
    """Return a run's staged episodes, and their copies in which nobody asks."""
    if len(runs) > 1 or episodes or greedy or not staged:
        raise UsageError(
            "--without-sharing compares staged episodes of one run: name one, and set their number with --staged."
        )
    (path,), (config,) = runs, configs
    if not config.shares_knowledge:
        raise UsageError(f"nobody shares knowledge in {path}, so there is nothing to compare with --without-sharing.")
    run = read_run(path)
    return [
        Viewed(run, config, played_episodes(path, config, staged=staged, seed=seed, is_silent=is_silent), name)
        for is_silent, name in ((False, "with sharing"), (True, "nobody asks"))
    ]


def _consulting_and_alone(
    runs: Sequence[Path],
    configs: Sequence[TrainConfig],
    episodes: Sequence[int],
    staged: int,
    greedy: int,
    seed: int,
    mode: Consult,
) -> list[Viewed]:
    """Return a run's greedy episodes with consulting, and the same ones without."""
    if len(runs) > 1 or episodes or staged or not greedy:
        raise UsageError("--consult compares greedy episodes of one run: name one, and set their number with --greedy.")
    (path,), (config,) = runs, configs
    run = read_run(path)
    consulted, alone = (
        played_episodes(path, config, greedy=greedy, seed=seed, consult=consult) for consult in (mode, None)
    )
    return [
        Viewed(run, config, consulted, "consulting the team", consult=mode),
        Viewed(run, config, alone, "each on its own", is_alone=True),
    ]


def _check_comparable(runs: Sequence[Path], configs: Sequence[TrainConfig]) -> None:
    worlds = [" ".join([config.env, *config.set]) for config in configs]
    if len(set(worlds)) > 1:
        raise UsageError(
            f"runs in different environments cannot be compared: {runs[0]} is in {worlds[0]}, {runs[1]} in {worlds[1]}."
        )


def _recorded_numbers(runs: Sequence[Path], wanted: Sequence[int], *, is_optional: bool) -> list[int]:
    """Return the numbers of the recorded episodes to show: the requested ones, or by default those that all runs have.

    An error is raised if there are none, unless `is_optional`.
    """
    there = [exchanges.recorded_numbers(run) for run in runs]
    for run, numbers in zip(runs, there, strict=True):
        missing = [number for number in wanted if number not in numbers]
        if missing:
            has = f"it has {_listed(numbers)}" if numbers else "it has recorded none"
            raise UsageError(f"{run} has no record of episode {missing[0]}: {has}.")
    if wanted:
        return sorted(set(wanted))
    common = sorted(set.intersection(*map(set, there)))
    if common or is_optional:
        return common
    for run, numbers in zip(runs, there, strict=True):
        if not numbers:
            raise UsageError(
                f"{run} has recorded no episode: train with `--record NUMBER …`, or play some now with `--staged 3`."
            )
    have = " and ".join(f"{run} has {_listed(numbers)}" for run, numbers in zip(runs, there, strict=True))
    raise UsageError(f"no episode is recorded in both runs: {have}. `--staged 3` plays some now.")


def _listed(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:8]))
    return f"{shown} and {len(numbers) - 8} more" if len(numbers) > 8 else shown


def _read(run: Path, number: int, config: TrainConfig) -> RecordedEpisode:
    """Return the record of an episode, after checking that it belongs to this run."""
    path = exchanges.episode_path(run, number)
    recorded = exchanges.read_episode(path)
    if recorded.kind != exchanges.TRAINING:
        raise UsageError(f"{path} is damaged: its header should say that it is a training episode.")
    theirs, ours = recorded.header["config"], json.loads(config.to_json())
    if recorded.episode != number or not _is_of_this_run(theirs, ours):
        raise UsageError(
            f"{path} is a record of another run, episode {recorded.episode} of {_in_short(theirs.get('method'))} in "
            f"{_in_short(theirs.get('env'))} with seed {_in_short(theirs.get('seed'))}: "
            f"{EXCHANGES}/ may contain only episodes of this run."
        )
    return recorded


def _in_short(told: Any) -> str:
    """Return a value from a file as text, shortened to at most 60 characters on one line."""
    return textwrap.shorten(str(told), 60, placeholder=" …")


def _is_of_this_run(theirs: dict[str, Any], ours: dict[str, Any]) -> bool:
    """Return whether a record's configuration agrees with the run's; older records may lack options of sharing."""
    share = theirs.get("share", {})
    is_same = all(theirs.get(name) == ours.get(name) for name in TELLING)
    return is_same and isinstance(share, dict) and all(ours["share"].get(name) == share[name] for name in share)
