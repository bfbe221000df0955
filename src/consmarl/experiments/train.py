"""One run: a directory with its configuration, metrics, checkpoints and policy."""

import dataclasses
import functools
import json
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
from rich.console import Console

from consmarl.errors import UsageError
from consmarl.experiments import exchanges
from consmarl.experiments.config import AnyTrainer, TrainConfig
from consmarl.experiments.files import replacing
from consmarl.experiments.metrics import MetricsFile, counter_means, row_of
from consmarl.experiments.policies import export_policy
from consmarl.experiments.progress import RunProgress
from consmarl.learners.devices import use_devices
from consmarl.training import checkpoints
from consmarl.training.parts import TrainState

CONFIG, METRICS, CHECKPOINTS, POLICY = "config.json", "metrics.jsonl", "checkpoints", "policy.safetensors"


def train(config: TrainConfig, out: Path) -> Path:
    """Train from the beginning in a new directory; return the directory."""
    out = Path(out)
    if (out / CONFIG).exists():
        raise UsageError(f"{out} holds a run already: go on with `consmarl resume {out}`, or name another directory.")
    use_devices(config.devices)
    trainer = config.trainer()
    with replacing(out / CONFIG) as temporary:
        temporary.write_text(config.to_json() + "\n", encoding="utf-8")
    _run(config, trainer, out, trainer.init(config.seed), episode=0)
    return out


def resume(out: Path) -> Path:
    """Go on with a run from its newest whole checkpoint; bit for bit as if it had not been interrupted."""
    out = Path(out)
    config = _config_of(out)
    use_devices(config.devices)
    trainer = config.trainer()
    if checkpoints.numbers(out / CHECKPOINTS):
        restored = checkpoints.restore(out / CHECKPOINTS, functools.partial(trainer.init, config.seed))
        for sentence in restored.damaged:
            Console(stderr=True).print(sentence, markup=False)
        state, episode = restored.state, restored.number
    else:
        state, episode = trainer.init(config.seed), 0
    MetricsFile(out / METRICS).keep_until(episode)
    _run(config, trainer, out, state, episode)
    return out


def _config_of(out: Path) -> TrainConfig:
    if not (out / CONFIG).is_file():
        raise UsageError(f"{out} is not the directory of a run: it has no {CONFIG}.")
    return TrainConfig.from_json((out / CONFIG).read_text(encoding="utf-8"))


def _run(config: TrainConfig, trainer: AnyTrainer, out: Path, state: TrainState, episode: int) -> None:
    metrics = MetricsFile(out / METRICS)
    if episode == 0:
        metrics.append({"episode": 0} | evaluated(config, trainer, state, 0))
    with RunProgress(f"{config.env} seed {config.seed}", config.episodes, episode) as progress:
        while episode < config.episodes:
            started = time.monotonic()
            chosen = [number for number in config.record if episode <= number < episode + config.report_every]
            num_rounds = config.report_every // trainer.num_envs
            state, report = trainer.run(state, num_rounds, is_recording=bool(chosen))
            for number in chosen:
                _write_exchange(config, trainer, out, report.records, number, episode)
            episode += config.report_every
            row = {"episode": episode, "env_steps": int(state.num_env_steps)} | row_of(report)
            if episode % config.evaluate_every == 0 or episode == config.episodes:
                row |= evaluated(config, trainer, state, episode)
            metrics.append(row | {"seconds": round(time.monotonic() - started, 3)})
            progress.advance(episode, row)
            if episode % config.checkpoint_every == 0 or episode == config.episodes:
                facts = trainer.sharing.facts(state.sharing)
                checkpoints.save(out / CHECKPOINTS, episode, state, facts, keep=config.keep_checkpoints)
    export_policy(out / POLICY, trainer.learner.parameters(state.learner), config, episode)


def _write_exchange(config: TrainConfig, trainer: AnyTrainer, out: Path, records: Any, number: int, first: int) -> None:
    header = {"episode": number, "config": json.loads(config.to_json())}
    recorded = exchanges.recorded_episode(records, number - first, trainer.num_envs, header)
    exchanges.write_episode(exchanges.episode_path(out, number), recorded)


def evaluated(config: TrainConfig, trainer: AnyTrainer, state: TrainState, episode: int) -> dict[str, Any]:
    """Evaluate greedily, with keys of its own that training never sees."""
    key = jax.random.fold_in(jax.random.key(config.seed + 2**31), episode)
    parameters = trainer.learner.parameters(state.learner)
    summary = evaluation_summary(trainer, parameters, key, config.evaluation_episodes)
    return {f"evaluation_{name}": value for name, value in summary.items()}


def evaluation_summary(trainer: AnyTrainer, parameters: Any, key: jax.Array, num_episodes: int) -> dict[str, float]:
    """Play greedily and sum up: mean team return, its standard error, and the counters."""
    episodes = trainer.evaluate(parameters, key, num_episodes)
    returns = np.asarray(episodes.batch.rewards.sum(axis=(0, 2)), np.float64)
    counters = jax.device_get(episodes.counters)
    error = returns.std() / np.sqrt(num_episodes)
    return {
        "return": round(float(returns.mean()), 6),
        "return_error": round(float(error), 6),
        **counter_means(counters, num_leading_axes=1),
    }


def export(out: Path, path: Path) -> Path:
    """Write the policy of a run's newest whole checkpoint, finished or not."""
    config = _config_of(out)
    trainer = dataclasses.replace(config, devices=1).trainer()  # reading takes one, however many it was made with
    restored = checkpoints.restore(out / CHECKPOINTS, functools.partial(trainer.init, config.seed))
    return export_policy(path, trainer.learner.parameters(restored.state.learner), config, restored.number)
