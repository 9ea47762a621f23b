"""A tomography under way, kept in a file so that a kill costs no more than the block of inputs at work."""

from __future__ import annotations

import hashlib
import zipfile
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.npyio import NpzFile

from opmon.abc import Perturbation
from opmon.config.robustness import RobustnessSettings
from opmon.robustness.measured import Measured
from opmon.robustness.running import Checkpoint
from opmon.robustness.space import Tests
from opmon.scoring.reference.fitted import model_hash
from opmon.stages.tomography_model import Prepared
from opmon.types import Array

if TYPE_CHECKING:
    from _hashlib import HASH

_TRIED = 8
_ARRAYS = ("right", "seen", "share", "error", "low", "high", "finished")


def content_key(model: Path, ready: Prepared, settings: RobustnessSettings, seed: int) -> str:
    """What a run depends on, as it is and not as it is called: the model, how it is read, the inputs with their labels
    and weights, what is done to them, and the settings. Where anything of it has changed there is nothing to go on
    from: half of the tests would be of another model.
    """
    total, evaluation = hashlib.sha256(), ready.evaluation
    for text in (version("opmon"), model_hash(model), ready.reading, repr(ready.codec), str(seed)):
        total.update(f"{text}\0".encode())
    total.update(settings.model_dump_json(exclude={"every", "queries", "quality", "extractor"}).encode())
    for values in (evaluation.inputs, evaluation.truth, evaluation.weights):
        _add(total, values)
    for number, entry in enumerate(settings.perturbations):
        _add(total, _tried(entry.plugin, ready, settings.space.levels, number))
    return total.hexdigest()


def _tried(perturbation: Perturbation, ready: Prepared, levels: int, number: int) -> Array | None:
    """What a perturbation makes of a few inputs, since its code may be anybody's; None where it fails, as it will
    when it is run."""
    inputs = ready.evaluation.inputs
    try:
        fitted, few = perturbation.fitted(inputs), ready.codec.encode(inputs[:_TRIED].copy())
        return np.asarray(fitted.apply(few, levels, np.random.default_rng(number)))
    except Exception:  # noqa: BLE001 - a perturbation may be anybody's
        return None


def _add(total: HASH, values: Array | None) -> None:
    if values is None:
        total.update(b"none")
        return
    total.update(f"{values.dtype} {values.shape}".encode())
    plain = values.dtype != np.object_
    total.update(np.ascontiguousarray(values).tobytes() if plain else "\0".join(map(str, values.flat)).encode())


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
        except (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile):
            return None


def _arrays(state: Measured) -> dict[str, Any]:
    found = {name: getattr(state, name) for name in _ARRAYS}
    found |= {"severities": state.tests.severities, "ranks": state.tests.ranks}
    for name in ("margin", "weights"):
        if getattr(state, name) is not None:
            found[name] = getattr(state, name)
    return found


def _measured(stored: NpzFile, name: str) -> Measured | None:
    if f"{name}/right" not in stored.files:
        return None
    values: dict[str, Any] = {key: stored[f"{name}/{key}"] for key in _ARRAYS}
    values |= {
        key: stored[f"{name}/{key}"] if f"{name}/{key}" in stored.files else None for key in ("margin", "weights")
    }
    return Measured(tests=Tests(stored[f"{name}/severities"], stored[f"{name}/ranks"]), **values)
