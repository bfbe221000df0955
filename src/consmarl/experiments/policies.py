"""Read and write policies as safetensors files: weights by name, and a description in the header. No pickle is used."""

import enum
import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from consmarl.environments.trust import Trust
from consmarl.errors import UsageError
from consmarl.experiments.configuration.config import TrainConfig
from consmarl.files import CONFIG, POLICY, replacing
from consmarl.json_files import parse_json
from consmarl.plugins import in_use, refuse_missing

FORMAT = "consmarl-policy-1"
_DTYPES = {"float32": "F32"}  # of weights, in safetensors' names


class HeldWeights(enum.Enum):
    """Which weights a policy contains."""

    AVERAGED = "averaged over the last updates"
    NEWEST = "those of the last update"


def held_weights(config: TrainConfig) -> HeldWeights:
    """Return which weights the policy of a run contains."""
    return HeldWeights.AVERAGED if config.resolved().learn.averages_weights else HeldWeights.NEWEST


def export_policy(path: Path, parameters: Any, config: TrainConfig, episode: int) -> Path:
    """Write a policy file with everything that acting requires; return its path."""
    named = {name: np.asarray(leaf) for name, leaf in _named(parameters)}
    header = {
        "format": FORMAT,
        "config": config.resolved().to_json(),  # defaults are resolved, as they may change in later versions
        "episode": str(episode),
        "weights": held_weights(config).value,
    }
    if needed := in_use():
        header["plugins"] = json.dumps(needed)
    with replacing(path) as temporary:
        save_file(named, temporary, header)
    return path


def policy_file(policy: Path) -> Path:
    """Return the path of a policy file, given that path or the directory of a run."""
    policy = Path(policy)
    if not policy.is_dir():
        return policy
    if not (policy / CONFIG).is_file():
        raise UsageError(f"{policy} is not the directory of a run: it has no {CONFIG}.")
    return policy / POLICY


def policy_config(path: Path) -> TrainConfig:
    """Read only the configuration that a policy was learned with; its environment is not trusted."""
    with _opened(path) as file:
        return _config_in(path, file, trust=False)


def load_policy(path: Path, *, trust: Trust = False) -> tuple[Any, TrainConfig]:
    """Return the parameters of a policy and the configuration that it was learned with.

    Third-party environments named in a file are not run unless `trust` allows it, as in `TrainConfig.from_json`.
    """
    with _opened(path) as file:
        config = _config_in(path, file, trust=trust)
        learner = config.trainer().learner
        like = jax.eval_shape(lambda key: learner.parameters(learner.init(key)), jax.random.key(0))
        leaves = [_leaf(path, file, name, shape) for name, shape in _named(like)]
    return jax.tree.unflatten(jax.tree.structure(like), leaves), config


def _opened(path: Path) -> Any:
    """Open a policy file; this reads only the header, which safetensors checks against the file's size."""
    if not path.is_file():
        raise UsageError(f"there is no policy file {path}.")
    try:
        return safe_open(path, framework="numpy")
    except (SafetensorError, OSError) as error:
        raise UsageError(f"{path} is not a safetensors file: {str(error).rstrip('.')}.") from error


def _config_in(path: Path, file: Any, trust: Trust) -> TrainConfig:
    header = file.metadata() or {}
    if header.get("format") != FORMAT or "config" not in header:
        raise UsageError(f"{path} is not a consmarl policy: its header should say {json.dumps(FORMAT)}.")
    try:
        return TrainConfig.from_json(header["config"], trust=trust, file=f"the header of {path}", is_run=True)
    except UsageError:
        refuse_missing(str(path), parse_json(header.get("plugins", "[]"), f"the header of {path}"))
        raise


def _leaf(path: Path, file: Any, name: str, like: jax.ShapeDtypeStruct) -> jax.Array:
    """Read an array after checking that it has the shape and type that the configuration requires."""
    there = file.get_slice(name) if name in file.keys() else None  # noqa: SIM118
    if there is None or tuple(there.get_shape()) != like.shape or there.get_dtype() != _DTYPES[like.dtype.name]:
        raise UsageError(
            f"{path} does not fit its own configuration: {name} should have type {like.dtype} and shape {like.shape}."
        )
    return jnp.asarray(file.get_tensor(name))


def _named(tree: Any) -> list[tuple[str, Any]]:
    return [(jax.tree_util.keystr(path).lstrip("."), leaf) for path, leaf in jax.tree_util.tree_leaves_with_path(tree)]
