"""The reference fitted on a model's training data: activation traces, their distances, the spread of the variables."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opmon.errors import InputError, ModelError
from opmon.scoring.graph.file import read_model
from opmon.types import Array, Json, Problem

FORMAT = 1
_ARRAYS = ("traces", "predicted", "distances")


@dataclass(frozen=True, eq=False)
class Reference:
    """The reference of one model and one layer.

    ``traces`` holds one activation trace per kept training input, ``predicted`` its predicted class (zeros for
    regression), ``distances`` how far it is from the nearest trace predicted as another class (``dist_b`` of SADL).
    """

    model_hash: str
    layer: str | None
    problem: Problem
    columns: int
    """The number of classes that the model tells apart; 0 for regression."""
    traces: NDArray[np.float32]
    predicted: NDArray[np.int64]
    distances: NDArray[np.float64]
    limits: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """The least and the greatest value of each variable on the training data, each input left out of its own value."""
    seen: int = 0
    """The number of training inputs that were read; ``traces`` may hold fewer."""
    accuracy: float | None = None
    """On the training inputs with a label; for regression 1 − mean squared error."""
    labelled: int = 0
    weights: Mapping[str, Mapping[str, Array]] = field(default_factory=dict)
    """Weights of fitted autoencoders: by name of the variable, then of the array."""

    crowds: Mapping[int, int] = field(default_factory=dict)
    """By class, how many of its distinct traces float32 cannot tell apart; computed again where it is missing."""

    def __post_init__(self) -> None:
        count = len(self.traces)
        if self.traces.ndim != 2 or len(self.predicted) != count or len(self.distances) != count:
            raise InputError(
                f"a reference has one row of activations, one class and one distance for each trace; got "
                f"{self.traces.shape}, {self.predicted.shape} and {self.distances.shape}"
            )

    @property
    def classes(self) -> tuple[int, ...]:
        """The predicted classes that have at least one trace."""
        return tuple(np.unique(self.predicted).tolist())

    def of_class(self, number: int) -> NDArray[np.int64]:
        """The numbers of the traces that were predicted as the class."""
        return np.flatnonzero(self.predicted == number)

    def require_model(self, path: Path) -> None:
        """Raise an error where the reference belongs to another model than the one in ``path``."""
        own_hash = model_hash(path)
        if own_hash != self.model_hash:
            raise ModelError(
                f"the reference was fitted on another model (hash {self.model_hash[:12]}, not {own_hash[:12]}): fit "
                f"one for this model with opmon reference"
            )

    def describe(self) -> dict[str, Json]:
        """The facts of the reference that are shown and kept with it."""
        return {
            "model_hash": self.model_hash,
            "layer": self.layer,
            "problem": self.problem,
            "classes": self.columns,
            "neurons": int(self.traces.shape[1]),
            "traces": len(self.traces),
            "seen": self.seen,
            "accuracy": self.accuracy,
            "labelled": self.labelled,
            "limits": {name: list(pair) for name, pair in self.limits.items()},
            "learned": sorted(self.weights),
        }

    def save(self, path: Path) -> None:
        """Write it to one file, whole or not at all."""
        meta = {**self.describe(), "format": FORMAT, "crowds": list(self.crowds.items())}
        arrays: dict[str, Any] = {name: getattr(self, name) for name in _ARRAYS}
        arrays |= {
            f"weights/{name}/{key}": array for name, weights in self.weights.items() for key, array in weights.items()
        }
        arrays["meta"] = np.frombuffer(json.dumps(meta).encode(), dtype=np.uint8)
        written = io.BytesIO()
        np.savez(written, **arrays)
        partial = path.with_name(f".{path.name}.part")
        partial.write_bytes(written.getbuffer())
        partial.replace(path)

    @classmethod
    def load(cls, path: Path) -> Reference:
        try:
            with np.load(path, allow_pickle=False) as file:
                meta = json.loads(file["meta"].tobytes())
                arrays = {name: file[name] for name in file.files if name != "meta"}
            if meta["format"] != FORMAT:
                raise ModelError(f"{path} has the format {meta['format']}, and this opmon reads {FORMAT}; fit it again")
            weights: dict[str, dict[str, Array]] = {}
            for name in [name for name in arrays if name.startswith("weights/")]:
                _, variable, key = name.split("/", 2)
                weights.setdefault(variable, {})[key] = arrays.pop(name)
            return cls(
                meta["model_hash"],
                meta["layer"],
                meta["problem"],
                meta["classes"],
                **arrays,
                limits={name: (float(low), float(high)) for name, (low, high) in meta["limits"].items()},
                seen=meta["seen"],
                accuracy=meta["accuracy"],
                labelled=meta["labelled"],
                weights=weights,
                crowds={int(number): int(most) for number, most in meta.get("crowds", ())},
            )
        except FileNotFoundError as exc:
            raise ModelError(f"there is no reference {path}; opmon reference fits one") from exc
        except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as exc:
            raise ModelError(
                f"{path} is not a reference that opmon wrote: {exc}; fit it again: opmon reference"
            ) from exc


def required(reference: Reference | None) -> Reference:
    """The reference, or an error where there is none."""
    if reference is None:
        raise ModelError("this variable needs a reference, fitted on training data: opmon reference makes one")
    return reference


def model_hash(path: Path) -> str:
    """The SHA-256 of what an ONNX file computes: its nodes and its weights, wherever they are kept.

    MLflow writes a model again when it is logged, weights into another file: the hash stays.
    """
    from onnx import numpy_helper

    model, total = read_model(path), hashlib.sha256()
    for node in model.graph.node:
        node.doc_string = ""
        total.update(node.SerializeToString(deterministic=True))
    for tensor in sorted(model.graph.initializer, key=lambda item: str(item.name)):
        values = numpy_helper.to_array(tensor, base_dir=str(path.parent))
        total.update(f"{tensor.name} {values.dtype} {values.shape}".encode())
        total.update(values.tobytes())
    return total.hexdigest()
