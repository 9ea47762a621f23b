"""A registered model of three columns with class names, and a log with gaps in 7.5 % of its rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pyarrow as pa
import pyarrow.parquet as pq
from skl2onnx import to_onnx
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

NAMES = ["age", "income", "amount"]


def tabular(workbench: Any, gaps: bool) -> tuple[Any, list[str], pa.Table]:
    """The fitted original, which answers inputs with gaps or does not; its columns; and the log."""
    values = np.random.default_rng(0).normal(size=(400, 3)).astype(np.float32)
    words = np.where(values.sum(axis=1) > 0, "default", "paid")
    for column in range(3):
        values[column:200:40, column] = np.nan
    fitted = make_pipeline(*([SimpleImputer(strategy="median")] if gaps else []), LogisticRegression())
    fitted.fit(values[:200] if gaps else values[200:], words[:200] if gaps else words[200:])
    graph = to_onnx(fitted, values[:1], options={"zipmap": False}, target_opset=17)
    workbench.register(onnx.load_from_string(graph.SerializeToString()), f"loans-{gaps}", NAMES)
    log = pa.table({name: pa.array(values[:200, i], from_pandas=True) for i, name in enumerate(NAMES)})
    log = log.append_column("input_id", pa.array([f"r{k}" for k in range(200)]))
    pq.write_table(log, workbench.folder / "production" / "log.parquet")
    return fitted, NAMES, log
