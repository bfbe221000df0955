"""The rows of a run for TensorBoard: every number a curve over episodes."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tensorboardX import SummaryWriter

from consmarl.files import explained

_SHARING = {"requests", "answers", "advised", "advised_share", "budget_used", "num_observations", "table_fill"}
_LEARNING = {"loss", "td_error", "gradient_norm", "q_value", "epsilon"}


class EventsFile:
    """The events of one run, written beside its rows; what an older session wrote after `episode` counts no more."""

    def __init__(self, directory: Path, episode: int) -> None:
        """Begin a file, or go on in another one."""
        with explained(directory):
            self._writer = SummaryWriter(str(directory), purge_step=episode + 1 if episode else None)

    def append(self, row: Mapping[str, Any]) -> None:
        """Add a row's numbers; lists become one curve an agent."""
        for name, value in row.items():
            values = (
                {f"/agent_{index}": each for index, each in enumerate(value)}
                if isinstance(value, list)
                else {"": value}
            )
            for suffix, each in values.items():
                self._writer.add_scalar(_tag(name) + suffix, each, row["episode"])

    def flush(self) -> None:
        """See that all is on disk: what a checkpoint follows must not be lost."""
        self._writer.flush()

    def close(self) -> None:
        """End the file."""
        self._writer.close()


def _tag(name: str) -> str:
    """Sort curves into groups as people look for them."""
    if name.startswith("evaluation_"):
        return f"evaluation/{name.removeprefix('evaluation_')}"
    if name in _SHARING or name.endswith("_left"):
        return f"sharing/{name}"
    return f"learning/{name}" if name in _LEARNING else f"training/{name}"
