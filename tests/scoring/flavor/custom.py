"""A model as a team writes one. The process that runs it imports this file, and nothing of the tests."""

from __future__ import annotations

import os
import time
from typing import Any

import mlflow
import numpy as np
import pandas as pd

RAISES, DIES, EATS, HANGS = 1000.0, 2000.0, 3000.0, 4000.0
FAILS, PRINTS, FORKS, TABLE, SCORES, SEVERAL, FEWER, SHARES, NAMED, MISNAMED = range(1, 11)


class Custom(mlflow.pyfunc.PythonModel):
    """What a team wrote, with everything that it may do wrong: ``d`` of the first row says what it does."""

    def predict(self, context: Any, model_input: pd.DataFrame, params: Any = None) -> Any:  # type: ignore[override]
        first, does = model_input["a"].to_numpy(), int(model_input["d"].iloc[0])
        p = 1 / (1 + np.exp(-np.clip(first, -9, 9)))
        if (first == RAISES).any():
            raise ValueError("a is too large\nsecond line")
        if (first == DIES).any():
            os._exit(3)
        if (first == EATS).any():
            np.ones(1 << 33)
        if (first == HANGS).any():
            time.sleep(600)
        if does == FAILS:
            raise RuntimeError("no weights")
        if does == PRINTS:
            print("x" * 100_000)
            os.write(1, b"y" * 100_000)
        if does == FORKS and os.fork() == 0:
            time.sleep(600)
        if does == TABLE:
            return pd.DataFrame({"no": 1 - p, "yes": p, "prediction": np.where(p > 0.8, "yes", "no")})
        if does in (NAMED, MISNAMED):
            names = ["proba_no", "proba_yes"] if does == NAMED else ["risk", "chance"]
            return pd.DataFrame({"prediction": np.where(p > 0.5, "yes", "no"), names[0]: 1 - p, names[1]: p})
        if does == SCORES:
            return np.column_stack([1 - p, p])
        if does == SHARES:
            return np.where(np.abs(first) > 9, first > 0, p)
        if does == SEVERAL:
            return pd.DataFrame({name: first.astype(int) for name in "xyz"})
        return np.where(first > 0, "yes", "no")[does == FEWER :]
