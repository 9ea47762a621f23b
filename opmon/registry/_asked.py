"""A model that MLflow loaded, and how it is asked: in the forms that its flavor takes, and from those that it gives.

It is loaded by its path into the process that runs somebody's model (``_worker.py``), where opmon need not be
installed: it stands alone, and needs mlflow, numpy, pandas and pyarrow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from mlflow.types import Schema

NATIVE = ("sklearn", "xgboost", "lightgbm", "catboost")
"""Flavors whose models may give probabilities that pyfunc does not."""

GREATEST = frozenset(
    {"LogisticRegression", "RandomForestClassifier", "ExtraTreesClassifier", "DecisionTreeClassifier", "GaussianNB"}
    | {"HistGradientBoostingClassifier", "GradientBoostingClassifier", "MLPClassifier", "MultinomialNB", "BernoulliNB"}
    | {"XGBClassifier", "XGBRFClassifier", "LGBMClassifier", "CatBoostClassifier"}
)


class Model:
    """A loaded model, and how it is asked."""

    def __init__(self, folder: str) -> None:
        import mlflow.pyfunc
        import yaml

        told = yaml.safe_load((Path(folder) / "MLmodel").read_text(encoding="utf-8"))
        flavors = told.get("flavors") or {}
        self.signature = _signature(told)
        self.flavor = next((name for name in NATIVE if name in flavors), "pyfunc")
        native: Any = None if self.flavor == "pyfunc" else _native(self.flavor, folder)
        classes: Any = getattr(native, "classes_", None)
        self.classes = list(map(plain, classes)) if _is_a_row(classes) else None
        self.native: Any = native if self.classes is not None and hasattr(native, "predict_proba") else None
        self.each: Any = getattr(native, "predict_proba", None)
        self.categories = _knows_categories(native)
        self.number: Any = None
        if self.native is None:  # MLflow holds words against the signature, which has no categories
            self.number = native.predict if self.categories else mlflow.pyfunc.load_model(folder).predict

    def answer(self, rows: pa.RecordBatch, wanted: dict[str, Any]) -> dict[str, Any]:
        """``labels`` and ``scores`` of a table of inputs, where the model gives them."""
        given = self._given(rows)
        if wanted.get("several") and self.each is not None:
            return {"scores": _of_each(self.each(given))}
        if self.native is None:
            return _told(self.number(given))
        if not wanted.get("scores", True):
            return {"labels": _flat(self.native.predict(given))}
        import numpy as np

        scores = np.asarray(self.native.predict_proba(given))
        if _answers_the_greatest(self.native):
            return {"scores": scores, "codes": scores.argmax(axis=1), "of": self.classes}
        return {"scores": scores, "labels": _flat(self.native.predict(given))}

    def _given(self, rows: pa.RecordBatch) -> Any:
        """The inputs as the model takes them: a matrix where it was logged with one, else a table."""
        tensors = getattr(self.signature, "is_tensor_spec", lambda: False)()
        names = None if self.signature is None or tensors else self.signature.input_names()
        if tensors:
            return _tensors(self.signature, rows)
        if rows.num_columns == 1 and "list" in str(rows.column(0).type):
            return _matrix(rows.column(0), len(rows))
        frame = rows.to_pandas()
        if names and all(name in frame.columns for name in names):
            frame = frame[list(names)]
        if self.categories:
            words = [name for name, kind in frame.dtypes.items() if kind.kind not in "biufM"]
            frame[words] = frame[words].astype("category")
        if self.native is None:
            return _typed(frame, self.signature)
        if frame.shape[1] == 1 and _takes_text(self.native):
            return frame.iloc[:, 0]
        known = getattr(self.native, "feature_names_in_", None)
        if known is None and self.flavor == "sklearn" and all(kind.kind in "biuf" for kind in frame.dtypes):
            return frame.to_numpy()
        return frame


def _is_a_row(classes: Any) -> bool:
    """Whether they name the classes of one label: a regressor of CatBoost has an empty list of them, a model of several
    labels a list of lists."""
    if classes is None or getattr(classes, "ndim", 1) != 1 or not len(classes):
        return False
    return getattr(classes[0], "ndim", 0) == 0


def _of_each(scores: Any) -> Any:
    """One score for each class, where several may hold: a model of several outputs gives a table for each of them."""
    import numpy as np

    if isinstance(scores, list):
        return np.column_stack([np.asarray(table)[:, -1] for table in scores])
    return np.asarray(scores)


def _signature(told: dict[str, Any]) -> Schema | None:
    from mlflow.models import ModelSignature

    found = told.get("signature")
    return ModelSignature.from_dict(found).inputs if found else None


def _native(flavor: str, folder: str) -> Any:
    import importlib

    return importlib.import_module(f"mlflow.{flavor}").load_model(folder)


def _knows_categories(model: Any) -> bool:
    """Whether its text columns are to come as pandas' categories, whose names it knows from its training."""
    lightgbm = getattr(getattr(model, "booster_", model), "pandas_categorical", None)
    booster = getattr(model, "get_booster", lambda: model)()
    return bool(lightgbm) or (hasattr(booster, "get_categories") and "c" in (booster.feature_types or ()))


def _answers_the_greatest(model: Any) -> bool:
    """Whether its label is known to be the class of the greatest probability, so that it need not be asked twice.

    Of others votes, margins or thresholds may decide.
    """
    steps = getattr(model, "steps", None)
    last = steps[-1][1] if steps else model
    return type(last).__module__.split(".")[0] in NATIVE and type(last).__name__ in GREATEST


def _takes_text(model: Any) -> bool:
    steps = getattr(model, "steps", None)
    first = steps[0][1] if steps else model
    return type(first).__name__ in ("CountVectorizer", "TfidfVectorizer", "HashingVectorizer")


def _typed(frame: Any, schema: Schema | None) -> Any:
    """Columns in the types of the signature, which MLflow does not change by itself where digits may be lost.

    Whole numbers and yes or no only where they stay the same: MLflow refuses others, and so the model is not asked
    about values that nobody logged.
    """
    if schema is None:
        return frame
    kinds = {"long": "int64", "integer": "int32", "double": "float64", "float": "float32", "boolean": "bool"}
    for column in schema:
        name = getattr(column, "name", None)
        if name not in frame.columns:
            continue
        kind = kinds.get(getattr(column.type, "name", ""))
        if kind is not None and frame[name].dtype != kind and frame[name].notna().all():
            frame[name] = _in_type(frame[name], kind)
    return frame


def _in_type(values: Any, kind: str) -> Any:
    """A column without holes in another type; as it is where that would change it."""
    import numpy as np
    import pandas as pd

    if kind.startswith("float"):
        return values.astype(kind)
    numbers = pd.to_numeric(values, errors="coerce") if values.dtype == object else values
    if numbers.dtype.kind not in "biuf" or not np.isfinite(numbers).all():
        return values
    with np.errstate(invalid="ignore"):
        changed = numbers.astype(kind)
    return changed if (changed == numbers).all() else values


def _matrix(column: pa.Array, count: int) -> Any:
    """One row for each input of a column of lists, which must be of one length."""
    while "list" in str(column.type):
        column = column.flatten()
    return column.to_numpy(zero_copy_only=False).reshape(count, -1)


def _tensors(schema: Schema, rows: pa.RecordBatch) -> Any:
    """The arrays that the signature names, each in its shape and type."""
    import numpy as np

    specs, found = list(schema), {}
    for spec in specs:
        told = None
        if len(specs) == 1 and rows.num_columns > 1:
            values = np.column_stack([rows.column(each).to_numpy(zero_copy_only=False) for each in rows.schema.names])
        else:
            name = spec.name if spec.name in rows.schema.names else rows.schema.names[0]
            values = _matrix(rows.column(name), len(rows))
            told = (rows.schema.field(name).metadata or {}).get(b"shape")
        shape = [len(rows), *spec.shape[1:]] if len(spec.shape) > 1 else [len(rows)]
        shape = shape if told is None else [len(rows), *map(int, filter(None, told.decode().split(",")))]
        found[spec.name] = np.ascontiguousarray(values.reshape(shape).astype(spec.type, copy=False))
    return next(iter(found.values())) if len(specs) == 1 else found


def _told(answer: Any) -> dict[str, Any]:
    """The labels, numbers or rows of scores in pyfunc's answer."""
    import numpy as np
    import pandas as pd

    if isinstance(answer, dict):
        answer = pd.DataFrame({key: list(np.asarray(value)) for key, value in answer.items()})
    if isinstance(answer, pd.DataFrame):
        return _of_table(answer)
    values = np.asarray(answer)
    if values.ndim > 1 and values.shape[1] == 1:
        values = values.reshape(len(values))
    if values.ndim <= 1:
        return {"labels": values.reshape(-1)}
    return {"scores": values.reshape(len(values), -1)}


def _of_table(answer: pd.DataFrame) -> dict[str, Any]:
    import numpy as np

    if answer.shape[1] == 1:
        only = answer.iloc[:, 0]
        if len(only) and isinstance(only.iloc[0], list | tuple | np.ndarray):
            return {"scores": np.array(only.tolist(), dtype=np.float64)}
        return {"labels": only.to_numpy()}
    numbers = [name for name in answer.columns if answer[name].dtype.kind == "f"]
    others = [name for name in answer.columns if name not in numbers]
    found: dict[str, Any] = {}
    if len(numbers) > 1:
        found["scores"] = answer[numbers].to_numpy()
        found["classes"] = [plain(name) for name in numbers]
    named = [name for name in others if str(name).lower() in ("label", "prediction", "predictions", "class")]
    if len(others) == 1 or named:
        found["labels"] = answer[(named or others)[0]].to_numpy()
        if "classes" in found:
            found["classes"] = _as_answered(found["classes"], found["labels"])
        if found.get("scores") is None and len(numbers) == 1 and len(answer.columns) == 2:
            found["confidence"] = answer[numbers[0]].to_numpy(dtype=np.float64)
    if not found:
        raise ValueError(f"its answer has the columns {list(answer.columns)}: give one, or one for each class")
    return found


def _as_answered(names: list[Any], labels: Any) -> list[Any]:
    """The classes in the words of the answers where columns of scores have more in their names: ``proba_good`` and
    ``proba_bad`` are ``good`` and ``bad``."""
    import pandas as pd

    said = {_spelt(label) for label in labels[pd.notna(labels)].tolist()}
    if said.isdisjoint(map(_spelt, names)):
        for ends in _without_common(list(map(str, names))):
            if not said.isdisjoint(ends):
                return ends
    return names


def _without_common(names: list[str]) -> Iterator[list[str]]:
    """The names without some of the words that all of them begin or end with."""
    parts = [re.split(r"([_.\-\s]+)", name) for name in names]
    shortest = min(map(len, parts))
    before = next((k for k in range(shortest) if len({words[k] for words in parts}) > 1), shortest)
    after = next((k for k in range(shortest) if len({words[-1 - k] for words in parts}) > 1), shortest)
    for start in range(0, before + 1, 2):
        for end in range(0, after + 1, 2):
            ends = ["".join(words[start : len(words) - end]) for words in parts]
            if all(ends) and len(set(ends)) == len(ends):
                yield ends


def _spelt(value: Any) -> str:
    """A class as text: 1.0 is 1, and True is true."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _flat(values: Any) -> Any:
    import numpy as np

    found = np.asarray(values)
    if found.ndim > 1 and found.shape[1] > 1:
        raise ValueError(f"it gives {found.shape[1]} labels for each input (multi-label): set problem: multilabel")
    return found.reshape(-1)


def plain(value: Any) -> Any:
    """Python's own number, text or the like in the place of NumPy's."""
    return value.item() if hasattr(value, "item") else value
