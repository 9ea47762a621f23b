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
    if file.library == "catboost":
        return from_catboost.from_file(file.path, _is_single(signature))
    return convert_ensemble(_ensemble(file), signature)


def convert_ensemble(ensemble: Ensemble, signature: Signature | None) -> bytes:
    """Trees as ONNX, which take as many numbers as the model was logged with."""
    single = _is_single(signature)
    if signature is not None and signature.columns and len(signature.columns) != ensemble.features:
        raise ModelError(f"it takes {ensemble.features} numbers, and was logged with {len(signature.columns)} columns")
    return graph_of(ensemble, single)


def _is_single(signature: Signature | None) -> bool:
    """Whether all its numbers come in float32; an error where they are no numbers."""
    kinds = [] if signature is None else [kind for _, kind in signature.columns]
    others = sorted(set(kinds) - _NUMBERS)
    if others:
        raise ModelError(f"it takes columns of the type {', '.join(others)}, and only numbers are converted")
    if signature is not None and signature.tensors:
        return all(kind in _SINGLE for _, kind, _ in signature.tensors)
    return bool(kinds) and set(kinds) <= _SINGLE


def _ensemble(file: ModelFile) -> Ensemble:
    if file.library == "xgboost":
        return from_xgboost.from_file(file.path, file.kind)
    return from_lightgbm.from_text(file.path.read_text(encoding="utf-8"))
