"""A scikit-learn model as it was logged. Loading one runs code that is in the model: only when the user says so."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import yaml

from opmon.abc import Runnable
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


def runnable(folder: Path) -> Runnable:
    """How the model in a folder that MLflow wrote is run in a process of its own."""
    requirements, environment = folder / "requirements.txt", folder / "python_env.yaml"
    python: Any = None
    if environment.is_file():
        told = yaml.safe_load(environment.read_text(encoding="utf-8"))
        python = told.get("python") if isinstance(told, dict) else None
    return Runnable(
        Path(__file__).with_name("_worker.py"),
        folder,
        requirements if requirements.is_file() else None,
        python if isinstance(python, str) else None,
    )
