"""A model as it was logged: its file where that is data, else loaded, which runs code that is in it."""

from __future__ import annotations

import importlib
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from opmon.abc import ModelFile, Network, Runnable
from opmon.errors import ModelError
from opmon.registry.translation import first_line
from opmon.types import Document

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

FILES = {"xgboost": "model_class", "lightgbm": "model_class", "catboost": "model_type"}
"""Flavors whose file is data, and where they tell the class of the model."""
NETWORK = "pytorch"
"""The flavor whose models are exported by their own library, in a process of its own."""
_BOOSTER = "lightgbm.basic.Booster"
"""The one kind of LightGBM's that is no pickle."""


def original_flavor(flavors: Document) -> str | None:
    """The flavor that an ONNX file can be made of."""
    return next((name for name in ("sklearn", *FILES, NETWORK) if name in flavors), None)


def runs_code(flavors: Document) -> bool:
    """Whether loading the original runs code that is in it."""
    name = original_flavor(flavors)
    if name == "lightgbm":
        return bool(flavors[name].get("model_class", _BOOSTER) != _BOOSTER)
    return name in ("sklearn", NETWORK)


def network(folder: Path) -> Network:
    """How the PyTorch model in a folder that MLflow wrote is exported and asked."""
    return Network(Path(__file__).with_name("_network.py"), folder)


def model_file(folder: Path, flavors: Document) -> ModelFile:
    """The file of a model that is data, in a folder that MLflow wrote."""
    library = original_flavor(flavors) or ""
    told = flavors[library]
    path = Path(str(told.get("data", "")))
    if path.is_absolute() or ".." in path.parts or not (folder / path).is_file():
        raise ModelError(f"MLmodel names {str(path)!r} as the file of the model, and it is not there; log it again")
    return ModelFile(library, str(told.get(FILES[library]) or _BOOSTER), folder / path)


def load_original(folder: Path, flavor: str) -> BaseEstimator:
    """The model in a folder that MLflow wrote, unpickled."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module(f"mlflow.{flavor}").load_model(str(folder))
    except Exception as exc:  # unpickling runs the model's own code, which may fail in any way
        raise ModelError(
            f"the {flavor} model cannot be loaded: {type(exc).__name__}: {first_line(exc)[:200]}. Install the "
            f"versions in its requirements.txt, or register an ONNX flavour of it."
        ) from exc


def runnable(folder: Path) -> Runnable:
    """How the model in a folder that MLflow wrote is run in a process of its own."""
    requirements, environment = folder / "requirements.txt", folder / "python_env.yaml"
    python: object = None
    if environment.is_file():
        told = yaml.safe_load(environment.read_text(encoding="utf-8"))
        python = told.get("python") if isinstance(told, dict) else None
    return Runnable(
        Path(__file__).with_name("_worker.py"),
        folder,
        requirements if requirements.is_file() else None,
        python if isinstance(python, str) else None,
    )
