"""Traffic for compose.yaml: a model goes into production, its inputs drift, and annotators answer what opmon asks.

Everything that is watched is real: the model is registered in the MLflow server, inputs are logged as files, labels go
through opmon's database. Only the drift and the annotators are simulated, as in ``opmon demo``.
"""

from __future__ import annotations

import argparse
import logging
import signal
import tempfile
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from opmon.config import Settings, load
from opmon.demo import digits, stream
from opmon.demo.annotators import Annotators
from opmon.demo.model import NAME, register, serving, train
from opmon.demo.plot import Plan
from opmon.store import queue
from opmon.store.engine import open_store

log = logging.getLogger("traffic")


def put_into_service(settings: Settings, model: bytes) -> str:
    """Register the model with the MLflow server, unless an earlier start did; gives its version."""
    from mlflow import MlflowClient
    from mlflow.exceptions import MlflowException

    uri = settings.mlflow.tracking_uri.get_secret_value()
    client = MlflowClient(uri, uri)
    try:
        return str(client.get_model_version_by_alias(NAME, "champion").version)
    except MlflowException:
        pass
    if client.get_experiment_by_name("digits training") is None:
        client.create_experiment("digits training")  # its files go to the server
    with tempfile.TemporaryDirectory() as folder:
        return register(model, uri, Path(folder), {"seed": 0})


def label(settings: Settings, truth: dict[str, int], seed: int) -> int:
    """Answer all open tasks whose truth is known."""
    store, now = open_store(settings.database.get_secret_value()), datetime.now(UTC)
    rng = np.random.default_rng([seed, int(now.timestamp())])
    with store.write() as connection:
        tasks = [task for task in queue.open_tasks(connection, NAME) if task.input_id in truth]
        return queue.record(connection, Annotators().answer(tasks, truth, now, rng), now).new


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=float, default=30.0, help="seconds between two windows of inputs")
    parser.add_argument("--size", type=int, default=1000, help="inputs of a window")
    parser.add_argument("--windows", type=int, default=0, help="stop after so many [never]")
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    settings, plan = load(None), Plan()
    folder = settings.folder / "production"
    training, pool, _ = digits.load(plan.seed)
    model = train(training, plan.seed)
    version, predict = put_into_service(settings, model), serving(model)
    log.info("version %s of %s is in production", version, NAME)
    truth: dict[str, int] = {}
    number = len(list(folder.glob("window-*.parquet")))
    begun = number
    while not stop.is_set() and (not given.windows or number < begun + given.windows):
        number += 1
        drift = plan.drift_of(number)
        window = stream.window(
            number, pool=pool, size=given.size, drift=drift, predict=predict, model_version=version, seed=plan.seed
        )
        truth |= window.truth
        stream.write(window, folder, datetime.now(UTC) - timedelta(hours=1))
        log.info("window %d: %d inputs, drift %.2f, accuracy %.3f", number, given.size, drift, window.true_accuracy)
        deadline = datetime.now(UTC) + timedelta(seconds=given.every)
        while datetime.now(UTC) < deadline and not stop.wait(2):
            label(settings, truth, plan.seed)


if __name__ == "__main__":
    main()
