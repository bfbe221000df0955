"""Hostile files: they look like ours, but name programs that do harm."""

import json

import numpy as np
from safetensors.numpy import save_file

from tests.reports.handmade import write_run

MODULE = "hostile_world"  # touches PWNED when it is imported, and again when its function is called
SOURCE = """
from pathlib import Path
Path("PWNED").touch()


def parallel_env(**settings):
    Path("PWNED").touch()
"""
NAMED = {
    "system": ("pettingzoo:os:system", ["command=touch PWNED"]),
    "popen": ("pettingzoo:os:popen", ["cmd=touch PWNED"]),
    "module": (f"pettingzoo:{MODULE}", []),
}


def config(env, settings, **others):
    return {"method": "iql", "env": env, "set": settings, "episodes": 8, **others}


def write_json(path, content):
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def write_policy(path, settings, tensors=None):
    header = {"format": "consmarl-policy-1", "config": json.dumps(settings), "episode": "8"}
    save_file(tensors or {"weights": np.zeros(2, np.float32)}, path, header)
    return path


def write_record(run, settings, number=0, **changes):
    """A record of two steps of two agents in which nobody shares."""
    steps, agents, actions = 2, 2, 3
    arrays = {
        "header": np.array(json.dumps({"format": "consmarl-exchange-2", "kind": "training", "episode": number,
                                       "config": settings})),
        "steps/rewards": np.zeros((steps, agents), np.float32), "steps/epsilon": np.zeros(steps, np.float32),
        "steps/values": np.zeros((steps, agents, actions), np.float32),
        "steps/is_exploring": np.zeros((steps, agents), bool), "steps/own_action": np.zeros((steps, agents), np.uint8),
        "steps/action": np.zeros((steps, agents), np.uint8),
    }  # fmt: skip
    path = run / "exchanges" / f"episode-{number:09d}.npz"
    path.parent.mkdir(exist_ok=True)
    with path.open("wb") as file:
        np.savez(file, **{name: rows for name, rows in (arrays | changes).items() if rows is not None})
    return path


def whole_run(directory, env, settings):
    """A finished run in which every file names the environment."""
    described = config(env, settings, share={}, sharing=None, preset="paper", seed=0)
    write_run(directory, env=env, set=settings, episodes=8, preset="paper", sharing=None)
    write_policy(directory / "policy.safetensors", described)
    write_record(directory, described)
    return directory
