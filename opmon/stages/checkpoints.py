"""A tomography under way, kept in a file so that a kill costs no more than the block of inputs at work."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from opmon.robustness.measured import Measured
from opmon.robustness.running import Checkpoint
from opmon.robustness.space import Tests

_ARRAYS = ("right", "seen", "share", "error", "low", "high", "finished")


@dataclass(frozen=True)
class CheckpointFile:
    """A file of one run: ``key`` names what it belongs to, and another run's file is not gone on from."""

    path: Path
    key: str

    def save(self, checkpoint: Checkpoint) -> None:
        """Whole or not at all."""
        arrays: dict[str, Any] = {"key": np.array(self.key)}
        if checkpoint.half_width is not None:
            arrays["half_width"] = np.array(checkpoint.half_width)
        for name, state in (("done", checkpoint.done), ("under_way", checkpoint.under_way)):
            if state is not None:
                arrays |= {f"{name}/{key}": value for key, value in _arrays(state).items()}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        partial = self.path.with_suffix(".partial.npz")
        np.savez(partial, **arrays)
        partial.replace(self.path)

    def load(self) -> Checkpoint | None:
        """What was kept; None where there is none, of another run, or not whole."""
        try:
            with self.path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
                if str(stored["key"]) != self.key:
                    return None
                half = float(stored["half_width"]) if "half_width" in stored.files else None
                return Checkpoint(_measured(stored, "done"), _measured(stored, "under_way"), half)
        except (OSError, KeyError, ValueError, zipfile.BadZipFile):
            return None


def _arrays(state: Measured) -> dict[str, Any]:
    found = {name: getattr(state, name) for name in _ARRAYS}
    found |= {"severities": state.tests.severities, "ranks": state.tests.ranks}
    for name in ("margin", "weights"):
        if getattr(state, name) is not None:
            found[name] = getattr(state, name)
    return found


def _measured(stored: Any, name: str) -> Measured | None:
    if f"{name}/right" not in stored.files:
        return None
    values: dict[str, Any] = {key: stored[f"{name}/{key}"] for key in _ARRAYS}
    values |= {
        key: stored[f"{name}/{key}"] if f"{name}/{key}" in stored.files else None for key in ("margin", "weights")
    }
    return Measured(tests=Tests(stored[f"{name}/severities"], stored[f"{name}/ranks"]), **values)
