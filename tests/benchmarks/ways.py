"""What the ways of scoring without ONNX cost: a model's own flavor beside its predict, and a million logged answers.

    python tests/benchmarks/ways.py [--rows 200000]

The overhead of ``flavor`` is its time for whole batches over that of the model's own ``predict_proba`` on the same rows
in this process, with one thread each (bar: 1.3, for a forest and for boosted trees). ``logged`` is a whole round of a
million rows in a process of its own, from files to its tasks: its seconds and how much memory the process held at most
(bars: 5 s, 600 MB), beside what the process held before it.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

FLAVOR, SECONDS, MEGABYTES = 1.3, 5.0, 600
ROUND = 1_000_000
FEATURES = [f"f{k}" for k in range(10)]


def models() -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

    yield "RandomForest, 100 trees", RandomForestClassifier(100, random_state=0)
    yield "HistGradientBoosting, 100", HistGradientBoostingClassifier(max_iter=100, random_state=0)


def overhead(rows: int) -> list[tuple[str, float]]:
    import mlflow
    from mlflow.models import infer_signature

    from opmon.registry.originals import runnable
    from opmon.scoring.flavor.process import Worker
    from opmon.scoring.flavor.scorer import FlavorScorer
    from opmon.types import Batch

    rng, found = np.random.default_rng(0), []
    frame = pd.DataFrame(rng.normal(size=(rows, 10)), columns=FEATURES)
    truth = np.where(frame["f0"] + frame["f1"] * frame["f2"] + rng.logistic(size=rows) > 0, "default", "paid")
    table = pa.Table.from_pandas(frame, preserve_index=False)
    batches, first = [], 0
    for part in table.to_batches(max_chunksize=65_536):
        batches.append(Batch(0, first, part))
        first += part.num_rows
    for name, model in models():
        model.fit(frame[:5000], truth[:5000])
        with tempfile.TemporaryDirectory() as folder:
            mlflow.sklearn.save_model(model, f"{folder}/m", signature=infer_signature(frame[:5]),
                                      serialization_format="cloudpickle", pip_requirements=[])  # fmt: skip
            told = runnable(Path(folder) / "m")
            scorer = FlavorScorer(Worker(sys.executable, told.script, told.model))
            next(iter(scorer.score(batches[:1])))  # loaded
            ratios = []
            for _ in range(3):  # side by side: the machine is not always as busy
                start = time.perf_counter()
                for _ in scorer.score(batches):
                    pass
                middle = time.perf_counter()
                model.predict_proba(frame)
                ratios.append((middle - start) / (time.perf_counter() - middle))
            scorer.close()
        found.append((name, min(ratios)))
        print(f"flavor, {name}: {found[-1][1]:.2f} times the model's own predict of {rows:,} rows (bar {FLAVOR})")
    return found


def write_log(folder: Path) -> None:
    rng = np.random.default_rng(0)
    (folder / "log").mkdir()
    for part in range(4):
        size = ROUND // 4
        share = rng.beta(2, 1, size)
        said = np.where(share > 0.5, "default", "paid")
        at = np.datetime64("2026-03-01", "us") + (part * size + np.arange(size)) * np.timedelta64(50, "ms")
        ids = np.char.add(f"p{part}-", np.arange(size).astype(str))
        pq.write_table(
            pa.table({"id": ids, "at": at, "said": said, "score": share}), folder / "log" / f"part-{part}.parquet"
        )


def logged_round() -> tuple[float, float, float]:
    with tempfile.TemporaryDirectory() as folder:
        write_log(Path(folder))
        done = subprocess.run(
            [sys.executable, __file__, "--inside", folder], check=True, capture_output=True, text=True
        )
        told = json.loads(done.stdout.splitlines()[-1])
    print(f"logged: a round of {ROUND:,} rows in {told['seconds']:.1f} s (bar {SECONDS}), at most "
          f"{told['peak']:.0f} MB (bar {MEGABYTES}; {told['before']:.0f} MB of it before the round)")  # fmt: skip
    for name, seconds in told["stages"].items():
        print(f"    {name}: {seconds:.2f} s")
    return told["seconds"], told["peak"], told["before"]


def inside(folder: Path) -> None:
    """One round of what was logged, in this process."""
    import mlflow

    from opmon.config import Settings
    from opmon.monitor import Monitor
    from opmon.stages import score

    uri = f"sqlite:///{folder / 'mlflow.db'}"
    mlflow.set_tracking_uri(uri)
    experiment = mlflow.create_experiment("training", (folder / "artifacts").as_uri())

    class Nothing(mlflow.pyfunc.PythonModel):
        def predict(self, context: Any, model_input: Any) -> Any:
            return ["paid"] * len(model_input)

    with mlflow.start_run(experiment_id=experiment):
        mlflow.pyfunc.log_model(python_model=Nothing(), name="model", registered_model_name="m", pip_requirements=[])
    given = {
        "model": "models:/m/1", "scoring": {"by": "logged"}, "classes": ["paid", "default"],
        "source": {"path": str(folder / "log")}, "drift": {"enabled": False},
        "columns": {"id": "id", "timestamp": "at", "prediction": "said", "scores": "score"},
        "round": {"min_inputs": ROUND},
    }  # fmt: skip
    settings = Settings.from_mapping(
        {"mlflow": {"tracking_uri": uri}, "database": f"sqlite:///{folder / 'opmon.db'}", "monitors": {"m": given}},
        folder,
    )
    monitor = Monitor.from_settings(settings, "m")
    stages: dict[str, float] = {}
    work = score._scored

    def timed(*arguments: Any) -> Any:
        start = time.perf_counter()
        try:
            return work(*arguments)
        finally:
            stages["of it read and scored"] = time.perf_counter() - start

    score._scored = timed  # type: ignore[assignment]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    start = time.perf_counter()
    problems = monitor.advance().problems
    seconds = time.perf_counter() - start
    assert not problems, problems
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "peak": peak, "before": before, "stages": stages}))


def main() -> int:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    logging.disable(logging.WARNING)
    if given.inside is not None:
        inside(given.inside)
        return 0
    seconds, peak, _ = logged_round()
    ratios = overhead(given.rows)
    return int(seconds > SECONDS or peak > MEGABYTES or any(ratio > FLAVOR for _, ratio in ratios))


if __name__ == "__main__":
    sys.exit(main())
