"""A scikit-learn model as it was logged. Loading one runs code that is in the model: only when the user says so."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from opmon.errors import ModelError
from opmon.registry.translation import first_line


def load_original(folder: Path) -> Any:
    """The model in a folder that MLflow wrote."""
    import mlflow.sklearn

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return mlflow.sklearn.load_model(str(folder))
    except Exception as exc:  # unpickling runs the model's own code, which may fail in any way
        raise ModelError(
            f"the scikit-learn model cannot be loaded: {type(exc).__name__}: {first_line(exc)[:200]}. Install the "
            f"versions in its requirements.txt, or register an ONNX flavour of it."
        ) from exc
