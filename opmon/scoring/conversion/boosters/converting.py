"""The file of a boosted model as ONNX, whichever library wrote it."""

from __future__ import annotations

from opmon.abc import ModelFile
from opmon.errors import ModelError
from opmon.scoring.conversion.boosters import from_catboost, from_lightgbm, from_xgboost
from opmon.scoring.conversion.boosters.ensemble import Ensemble
from opmon.scoring.conversion.boosters.writing import graph_of
from opmon.types import Signature

_NUMBERS = frozenset({"double", "float", "long", "integer", "boolean"})
_SINGLE = frozenset({"float", "float32", "float16"})


def convert_file(file: ModelFile, signature: Signature | None) -> bytes:
    """The model as ONNX: it takes all its numbers as one matrix."""
    kinds = [] if signature is None else [kind for _, kind in signature.columns]
    others = sorted(set(kinds) - _NUMBERS)
    if others:
        raise ModelError(f"it takes columns of the type {', '.join(others)}, and only numbers are converted")
    single = bool(kinds) and set(kinds) <= _SINGLE
    if signature is not None and signature.tensors:
        single = all(kind in _SINGLE for _, kind, _ in signature.tensors)
    if file.library == "catboost":
        return from_catboost.from_file(file.path, single)
    ensemble = _ensemble(file)
    if kinds and len(kinds) != ensemble.features:
        raise ModelError(f"it takes {ensemble.features} numbers, and was logged with {len(kinds)} columns")
    return graph_of(ensemble, single)


def _ensemble(file: ModelFile) -> Ensemble:
    if file.library == "xgboost":
        return from_xgboost.from_file(file.path, file.kind)
    return from_lightgbm.from_text(file.path.read_text(encoding="utf-8"))
