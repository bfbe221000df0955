"""Train, resume and export a run. Its directory is described in `files` and `directory`."""

import functools
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
from rich.console import Console

from consmarl.environments.foreign import confirmation
from consmarl.environments.trust import Trust
from consmarl.errors import UsageError
from consmarl.experiments import exchanges
from consmarl.experiments.configuration.config import AnyTrainer, TrainConfig
from consmarl.experiments.configuration.method_checks import (
    why_nobody_knows_more,
    why_nobody_learns,
    why_nobody_shares,
)
from consmarl.experiments.directory import begin_session, held, read_config, write_json
from consmarl.experiments.evaluation import evaluation_summary
from consmarl.experiments.interrupts import InterruptedRun, heeding_interrupts
from consmarl.experiments.learned import newest_policy
from consmarl.experiments.memory import check_memory, check_memory_to_resume
from consmarl.experiments.metrics import MetricsFile, row_of
from consmarl.experiments.policies import export_policy
from consmarl.experiments.progress import RunProgress
from consmarl.experiments.rows import RowWriter
from consmarl.experiments.teachers import check_seats, seated, teachers_weights
from consmarl.files import CHECKPOINTS, CONFIG, FAILURE, METRICS, POLICY, RESULT, replacing
from consmarl.learners.devices import use_devices
from consmarl.records import typed
from consmarl.training import checkpoints
from consmarl.training.parts import TrainState


def train(config: TrainConfig | Mapping[str, Any], out: Path | None = None, *, label: str | None = None) -> Path:
    """Train a new run from the beginning and return its directory.

    `config` may be a dict of settings. `out` defaults to runs/ plus the configuration's name; `label` is the run's name
    in reports.
    """
    if out is not None and not str(out):
        raise UsageError("out must name a directory, not ''.")
    wanted = TrainConfig().with_options(config) if isinstance(config, Mapping) else typed("config", TrainConfig, config)
    out = Path("runs") / wanted.name if out is None else Path(out)
    use_devices(wanted.devices)
    trainer = wanted.trainer()  # may raise an error, so nothing is written before
    config, schema = wanted.resolved(trainer.world), trainer.metrics
    check_memory(config, trainer)
    check_seats(config, trainer)
    teachers = teachers_weights(config, trainer)
    with held(out, "a run"):
        if (out / CONFIG).exists():
            raise UsageError(
                f"{out} already contains a run: continue it with `consmarl resume {out}{confirmation(config.env)}`, "
                "or start another with --out DIRECTORY."
            )
        with replacing(out / CONFIG) as temporary:
            temporary.write_text(config.to_json() + "\n", encoding="utf-8")
        begin_session(out, 0, label, schema)
        warnings = (
            why_nobody_learns(config, trainer.world.episode_limit),
            why_nobody_shares(config),
            why_nobody_knows_more(config),
        )
        for sentence in warnings:
            if sentence is not None:
                Console(stderr=True).print(sentence, markup=False, soft_wrap=True)
        _Session(config, trainer, out).finish(seated(trainer, trainer.init(config.seed), teachers), episode=0)
    return out


def resume(out: Path, *, trust: Trust = False) -> Path:
    """Continue a run from its newest valid checkpoint; the results are bit-identical to an uninterrupted run.

    A third-party environment is a program and is run only if `trust` is True or the id that the run names.
    """
    out = Path(out)
    config = read_config(out, trust=trust)
    use_devices(config.devices)
    trainer = config.trainer()
    check_memory_to_resume(trainer, out)
    with held(out, "this run"):
        state, episode = _newest_state(config, trainer, out)
        (out / FAILURE).unlink(missing_ok=True)
        if warning := begin_session(out, episode, schema=trainer.metrics):
            Console(stderr=True).print(warning, markup=False)
        # a run that starts over also repeats the evaluation before its first episode
        if damage := MetricsFile(out / METRICS).keep_until(episode if episode else -1):
            Console(stderr=True).print(damage, markup=False)
        _Session(config, trainer, out).finish(state, episode)
    return out


def _newest_state(config: TrainConfig, trainer: AnyTrainer, out: Path) -> tuple[TrainState, int]:
    """Return the state to continue from and its episode; print a sentence for each damaged checkpoint."""
    if not checkpoints.numbers(out / CHECKPOINTS):
        return seated(trainer, trainer.init(config.seed), teachers_weights(config, trainer)), 0
    restored = checkpoints.restore(out / CHECKPOINTS, functools.partial(trainer.init, config.seed))
    for sentence in restored.damaged:
        Console(stderr=True).print(sentence, markup=False)
    return restored.state, restored.number


@dataclass(frozen=True)
class _Session:
    """A run in progress, which trains until its end or until it is asked to stop."""

    config: TrainConfig
    trainer: AnyTrainer
    out: Path

    def finish(self, state: TrainState, episode: int) -> None:
        """Train to the end, then write the policy and the result, which marks the run as finished."""
        config, out = self.config, self.out
        progress = RunProgress(f"{config.env} {config.method} seed {config.seed}", config.episodes, episode)
        with heeding_interrupts() as stop, RowWriter(config, out, episode, self.trainer.metrics) as rows, progress:
            if episode == 0 and not stop.is_made:
                rows.append({"episode": 0} | evaluated(config, self.trainer, state, 0))
            is_stopping = stop.is_made
            while episode < config.episodes and not is_stopping:
                state, row = self._chunk(state, episode)
                episode = row["episode"]
                rows.append(row)
                progress.advance(episode, row)
                is_stopping = stop.is_made  # checked once per chunk, so that a stopped run has been saved
                if is_stopping or episode % config.checkpoint_period == 0 or episode == config.episodes:
                    rows.flush()
                    self._save(state, episode)
            if episode < config.episodes:
                raise InterruptedRun(
                    f"stopped and saved after {episode} episodes: continue with `consmarl resume "
                    f"{out}{confirmation(config.env)}`."
                )
            self._conclude(state)

    def _chunk(self, state: TrainState, episode: int) -> tuple[TrainState, dict[str, Any]]:
        """Play and learn until the next row is due; return the new state and the row."""
        config, started = self.config, time.monotonic()
        last = episode + config.chunk_episodes
        chosen = [number for number in config.record if episode <= number < last]
        num_rounds = config.chunk_episodes // self.trainer.num_envs
        state, report = self.trainer.run(state, num_rounds, is_recording=bool(chosen))
        for number in chosen:
            self._write_exchange(report.records, number, first=episode)
        row = {"episode": last, "env_steps": int(state.num_env_steps)} | row_of(report)
        if last % config.evaluation_period == 0 or last == config.episodes:
            row |= evaluated(config, self.trainer, state, last)
        return state, row | {"seconds": round(time.monotonic() - started, 3)}

    def _write_exchange(self, records: Any, number: int, *, first: int) -> None:
        header = {"kind": exchanges.TRAINING, "episode": number, "config": json.loads(self.config.to_json())}
        header |= exchanges.names_of(self.trainer.world)
        recorded = exchanges.recorded_episode(records, number - first, self.trainer.num_envs, header)
        exchanges.write_episode(exchanges.episode_path(self.out, number), recorded)

    def _save(self, state: TrainState, episode: int) -> None:
        facts = self.trainer.sharing.facts(state.sharing)
        checkpoints.save(self.out / CHECKPOINTS, episode, state, facts, keep=self.config.keep_checkpoints)

    def _conclude(self, state: TrainState) -> None:
        config, out = self.config, self.out
        parameters = self.trainer.learner.evaluated_parameters(state.learner)
        export_policy(out / POLICY, parameters, config, config.episodes)
        key = evaluation_key(config, config.episodes + 1)
        summary = evaluation_summary(self.trainer, parameters, key, config.final_episodes)
        seconds = sum(row.get("seconds", 0.0) for row in MetricsFile(out / METRICS).rows())
        facts = {"episode": config.episodes, "env_steps": int(state.num_env_steps), "seconds": round(seconds, 3)}
        write_json(out / RESULT, facts | {"episodes_evaluated": config.final_episodes} | summary)


def evaluation_key(config: TrainConfig, number: int) -> jax.Array:
    """Return the random key of an evaluation, which training never uses."""
    return jax.random.fold_in(jax.random.key(config.seed + 2**31), number)


def evaluated(config: TrainConfig, trainer: AnyTrainer, state: TrainState, episode: int) -> dict[str, Any]:
    """Evaluate greedily after an episode; return the means under their names in rows."""
    parameters = trainer.learner.evaluated_parameters(state.learner)
    summary = evaluation_summary(trainer, parameters, evaluation_key(config, episode), config.evaluation_episodes)
    return {f"evaluation_{name}": value for name, value in summary.items()}


def export(out: Path, path: Path, *, trust: Trust = False) -> Path:
    """Write the policy of a run's newest valid checkpoint to `path`; the run need not be finished.

    `trust` is as in `resume`.
    """
    saved = newest_policy(out, trust=trust)
    return export_policy(path, saved.parameters, saved.config, saved.episode)
