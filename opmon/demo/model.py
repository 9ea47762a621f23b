"""The demo's model: a small network of scikit-learn, as ONNX, with its versions in MLflow's registry."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from opmon.demo.digits import AUGMENTATION, SIDE, WIDER, Digits, Handling, Pictures, handled
from opmon.demo.stream import Predict
from opmon.scoring.conversion.converting import convert
from opmon.scoring.session import open_session
from opmon.types import Signature

if TYPE_CHECKING:
    from mlflow import MlflowClient

NAME = "digits"
ALIAS = "champion"
COPIES, COPIES_OF_PRODUCTION = 6, 10
"""Each training picture is seen so often, differently shifted and noised."""


def train(digits: Digits, seed: int, more: Digits | None = None) -> bytes:
    """A classifier fitted to ``digits`` and, where given, to ``more`` labelled ones, as an ONNX file."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier
    from threadpoolctl import threadpool_limits

    rng = np.random.default_rng([seed, 2])
    varied = _varied(digits, AUGMENTATION, COPIES, rng)
    if more is not None:
        varied = varied.joined(_varied(more, WIDER, COPIES_OF_PRODUCTION, rng))
    classifier = MLPClassifier(
        (128,), alpha=0.01, batch_size=64, learning_rate_init=0.003, max_iter=25, random_state=seed
    )
    with warnings.catch_warnings(), threadpool_limits(1):  # matrices this small are slower on many threads
        warnings.simplefilter("ignore", ConvergenceWarning)  # 25 epochs are what the demo has time for
        classifier.fit(varied.rows, varied.truth)
    return convert(classifier, Signature(tensors=(("X", "float32", (-1, SIDE * SIDE)),)))


def _varied(digits: Digits, handling: Handling, copies: int, rng: np.random.Generator) -> Digits:
    pictures = [handled(digits.pictures, handling, rng) for _ in range(copies)]
    return Digits(np.concatenate(pictures), np.tile(digits.truth, copies))


def serving(model: bytes) -> Predict:
    """The model as production serves it."""
    session = open_session(model, "cpu", threads=1)
    name = session.inputs[0].name

    def predict(rows: Pictures) -> NDArray[np.int64]:
        return np.asarray(session.run(["label"], {name: rows})[0])

    return predict


def register(model: bytes, tracking_uri: str, artifacts: Path, parameters: Mapping[str, object]) -> str:
    """Log the model in MLflow, make it the next version and move the alias to it; gives the version."""
    import mlflow
    import mlflow.onnx
    import onnx
    from mlflow.models import ModelSignature
    from mlflow.types import Schema, TensorSpec

    client = mlflow.MlflowClient(tracking_uri, tracking_uri)
    with _pointed_at(tracking_uri):
        with mlflow.start_run(experiment_id=experiment(client, "digits training", artifacts)):
            mlflow.log_params(dict(parameters))
            logged = mlflow.onnx.log_model(
                onnx.load_from_string(model),
                name="model",
                signature=ModelSignature(Schema([TensorSpec(np.dtype(np.float32), (-1, SIDE * SIDE), "X")])),
                pip_requirements=["numpy", "onnx", "onnxruntime"],  # by itself MLflow names two builds of onnxruntime
            )
        if not client.search_registered_models(f"name='{NAME}'"):
            client.create_registered_model(NAME)
        made = client.create_model_version(NAME, logged.model_uri, logged.run_id, model_id=logged.model_id)
        client.set_registered_model_alias(NAME, ALIAS, made.version)
    return str(made.version)


def experiment(client: MlflowClient, name: str, artifacts: Path) -> str:
    """The experiment's id; made, where there is none, with its files below ``artifacts``.

    Without a place of its own an experiment in a SQLite file keeps its files below whatever folder is the current one.
    """
    found = client.get_experiment_by_name(name)
    if found is not None:
        return str(found.experiment_id)
    return str(client.create_experiment(name, (artifacts / name.replace("/", "-").replace(" ", "-")).as_uri()))


@contextmanager
def _pointed_at(tracking_uri: str) -> Iterator[None]:
    """MLflow's functions that log a model know one address for the whole process: it is put back afterwards."""
    import mlflow

    variables = ("MLFLOW_TRACKING_URI", "MLFLOW_REGISTRY_URI")
    before = {name: os.environ.get(name) for name in variables}
    tracking, registry = mlflow.get_tracking_uri(), mlflow.get_registry_uri()
    mlflow.set_tracking_uri(tracking_uri)
    mlflow.set_registry_uri(tracking_uri)
    try:
        yield
    finally:
        mlflow.set_tracking_uri(tracking)
        # one that only followed the tracking address must follow it again, and not be pinned to where it points now
        mlflow.set_registry_uri("" if registry == tracking else registry)
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
