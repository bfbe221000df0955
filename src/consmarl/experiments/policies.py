"""Policies as safetensors files: weights by name, and what they belong to in the header. Nothing is ever unpickled."""

import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from consmarl.errors import UsageError
from consmarl.experiments.config import TrainConfig
from consmarl.files import CONFIG, POLICY, replacing

FORMAT = "consmarl-policy-1"


def export_policy(path: Path, parameters: Any, config: TrainConfig, episode: int) -> Path:
    """Write what acting needs."""
    named = {name: np.asarray(leaf) for name, leaf in _named(parameters)}
    header = {"format": FORMAT, "config": config.to_json(), "episode": str(episode)}
    with replacing(path) as temporary:
        save_file(named, temporary, header)
    return path


def policy_file(policy: Path) -> Path:
    """Return the file of a policy that is named by itself or by its run."""
    policy = Path(policy)
    if not policy.is_dir():
        return policy
    if not (policy / CONFIG).is_file():
        raise UsageError(f"{policy} is not the directory of a run: it has no {CONFIG}.")
    return policy / POLICY


def load_policy(path: Path) -> tuple[Any, TrainConfig]:
    """Read a policy and the configuration that it was learned under."""
    if not path.is_file():
        raise UsageError(f"there is no policy file {path}.")
    try:
        with safe_open(path, framework="numpy") as file:
            header = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise UsageError(f"{path} is not a safetensors file: {error}.") from error
    if header.get("format") != FORMAT:
        raise UsageError(f"{path} holds no consmarl policy: its header should say {json.dumps(FORMAT)}.")
    config = TrainConfig.from_json(header["config"])
    learner = config.trainer().learner
    like = jax.eval_shape(lambda key: learner.parameters(learner.init(key)), jax.random.key(0))
    leaves = []
    for name, shape in _named(like):
        if name not in tensors or tensors[name].shape != shape.shape:
            raise UsageError(f"{path} does not fit its own configuration: {name} should have the shape {shape.shape}.")
        leaves.append(jnp.asarray(tensors[name]))
    return jax.tree.unflatten(jax.tree.structure(like), leaves), config


def _named(tree: Any) -> list[tuple[str, Any]]:
    return [(jax.tree_util.keystr(path).lstrip("."), leaf) for path, leaf in jax.tree_util.tree_leaves_with_path(tree)]
