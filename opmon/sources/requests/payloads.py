"""What requests and responses hold: the inputs of one, and the answer to each of them.

Known are the forms of ``mlflow models serve`` (``dataframe_split``, ``dataframe_records``, ``inputs``, ``instances``),
which Databricks inference tables keep too, the V2 inference protocol of KServe, MLServer and Triton, Seldon's own, and
CSV and JSON as SageMaker takes them. Pure: text in, values out; what cannot be understood is one input with nothing in
it.
"""

from __future__ import annotations

import base64
import binascii
import csv
import io
import itertools
import json
import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from opmon.sources.nested import as_json
from opmon.types import Json

FEATURES = "features"
"""The column of inputs that are a list without names."""
_LABELS = ("prediction", "label", "class", "predicted_label", "output")
_SCORES = ("probabilities", "scores", "predicted_probabilities", "probability", "logits")

_MOST_PADDING = 100_000
"""Where tensors by name differ in length, so many values may lack: more are no rows of one request."""

Row: TypeAlias = dict[str, Json]


def inputs_of(text: str | None) -> list[Row]:
    """The inputs in a request; one with nothing in it where there is none to be found.

    >>> inputs_of('{"dataframe_split": {"columns": ["a", "b"], "data": [[1, "x"], [2, "y"]]}}')
    [{'a': 1, 'b': 'x'}, {'a': 2, 'b': 'y'}]
    >>> inputs_of('{"inputs": [{"name": "x", "shape": [2, 2], "datatype": "FP32", "data": [1, 2, 3, 4]}]}')
    [{'x': [1, 2]}, {'x': [3, 4]}]
    """
    found = _inputs(as_json(text))
    if not found and text is not None and text.strip() and text.strip()[0] not in "[{":
        found = _of_csv(text)
    return found or [{}]


def answers_of(text: str | None, count: int) -> list[Row]:
    """The answers in a response to ``count`` inputs: ``prediction``, ``scores``, and all of it as JSON."""
    given = _answers(as_json(text))
    if given is None and text is not None and text.strip():
        lines = [line for line in text.strip().splitlines() if line.strip()]
        given = [_scalar(line.split(",")) for line in lines]
    if given is None or len(given) != count:
        return [{"prediction": None, "scores": None, "response": None} for _ in range(count)]
    return [_answer(value) for value in given]


def rows_of(request: str | None, response: str | None, about: Row) -> list[Row]:
    """One row for each input of a request; of several, the id has the input's number behind it."""
    inputs = inputs_of(request)
    answers = answers_of(response, len(inputs))
    several, key = len(inputs) > 1, about["id"]
    return [
        {**given, **about, **answer, "id": f"{key}#{place}" if several and key is not None else key}
        for place, (given, answer) in enumerate(zip(inputs, answers, strict=True))
    ]


def plain_text(data: str | None, encoding: str | None) -> str | None:
    """The text of a payload that may be base64."""
    if data is None or (encoding or "").upper() != "BASE64":
        return data
    try:
        return base64.b64decode(data, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return None


def _inputs(value: Json) -> list[Row]:
    if isinstance(value, Mapping):
        split = value.get("dataframe_split")
        if isinstance(split, Mapping):
            return _split(split.get("columns"), split.get("data"))
        if "columns" in value and "data" in value:
            return _split(value["columns"], value["data"])
        seldon = _seldon(value)
        if seldon is not None:
            names, rows = seldon
            return _split(names, rows) if names else _many(rows)
        for key in ("dataframe_records", "instances", "inputs"):
            if key in value:
                return _many(value[key])
        return [dict(value)]
    return _many(value) if isinstance(value, list) else []


def _split(columns: Json, data: Json) -> list[Row]:
    if not isinstance(columns, list) or not isinstance(data, list):
        return []
    return [dict(zip(map(str, columns), row, strict=False)) for row in data if isinstance(row, list)]


def _seldon(value: Mapping[str, Json]) -> tuple[list[Json], list[Json]] | None:
    """The names and the rows of a message of Seldon's own protocol; None where it is none.

    >>> _seldon({"data": {"names": ["a"], "tensor": {"shape": [2, 1], "values": [1, 2]}}})
    (['a'], [[1], [2]])
    """
    data = value.get("data")
    if not isinstance(data, Mapping):
        return None
    names, rows, tensor = data.get("names"), data.get("ndarray"), data.get("tensor")
    if isinstance(tensor, Mapping):
        shape, values = tensor.get("shape"), tensor.get("values")
        count = shape[0] if isinstance(shape, list) and shape else None
        if not isinstance(values, list) or not isinstance(count, int) or count < 1 or len(values) % count:
            return None
        width = len(values) // count
        rows = [values[start : start + width] for start in range(0, len(values), max(1, width))]
    return (names if isinstance(names, list) else [], rows) if isinstance(rows, list) else None


def _many(value: Json) -> list[Row]:
    if isinstance(value, Mapping):  # tensors by name, each with a row for every input
        columns = {str(name): rows for name, rows in value.items() if isinstance(rows, list)}
        lengths = [len(rows) for rows in columns.values()]
        if len(lengths) * max(lengths, default=0) - sum(lengths) > _MOST_PADDING:
            return []
        return [dict(zip(columns, row, strict=True)) for row in itertools.zip_longest(*columns.values())]
    if not isinstance(value, list):
        return []
    if value and all(isinstance(each, Mapping) and "data" in each and "name" in each for each in value):
        return _tensors(value)
    if value and not any(isinstance(each, list | Mapping) for each in value) and _are_numbers(value):
        return [{FEATURES: value}]  # one input, without the list around it
    return [dict(each) if isinstance(each, Mapping) else {FEATURES: _flat(each)} for each in value]


def _tensors(tensors: Sequence[Mapping[str, Json]]) -> list[Row]:
    """The rows of V2 tensors: the first size of each shape counts the inputs."""
    columns = {}
    for tensor in tensors:
        shape, data = tensor.get("shape"), _flat(tensor["data"])
        count = shape[0] if isinstance(shape, list) and shape and isinstance(shape[0], int) and shape[0] > 0 else 1
        if not data or len(data) % count:
            return []
        width = len(data) // count
        rows = [data[start : start + width] for start in range(0, len(data), width)]
        columns[str(tensor["name"])] = [row[0] for row in rows] if width == 1 else rows
    if len({len(rows) for rows in columns.values()}) != 1:
        return []
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _answers(value: Json) -> list[Json] | None:
    if isinstance(value, Mapping):
        outputs = value.get("outputs")
        if isinstance(outputs, list):
            tensors = [each for each in outputs if isinstance(each, Mapping) and "data" in each]
            rows = _tensors([{"name": "output", **each} for each in tensors])
            return [next(iter(row.values())) if len(row) == 1 else row for row in rows] or None
        seldon = _seldon(value)
        if seldon is not None:
            return seldon[1]
        for key in ("predictions", "outputs", "result"):
            if key in value:
                given = value[key]
                return given if isinstance(given, list) else [given]
        return [value]
    return value if isinstance(value, list) else None if value is None else [value]


def _answer(value: Json) -> Row:
    if isinstance(value, Mapping):
        label = next((value[key] for key in _LABELS if key in value), None)
        scores = next((each for key in _SCORES if isinstance(each := value.get(key), list)), None)
    elif isinstance(value, list) and len(value) > 1:
        label, scores = None, value
    else:
        label, scores = (value[0] if isinstance(value, list) and value else value), None
    plain = label if isinstance(label, str | int | float | bool) else None
    return {"prediction": plain, "scores": _fractions(scores), "response": json.dumps(value)}


def _fractions(scores: Sequence[Json] | None) -> Json:
    """Scores as fractions; nothing where they are no numbers, or such as no fraction holds."""
    if scores is None or not _are_numbers(scores):
        return None
    try:
        return [float(each) for each in scores if isinstance(each, int | float)]
    except OverflowError:
        return None


def _of_csv(text: str) -> list[Row]:
    try:
        lines = [row for row in csv.reader(io.StringIO(text)) if row]
    except csv.Error:
        return []
    return [_csv_row(row) for row in lines]


def _csv_row(cells: Sequence[str]) -> Row:
    """Numbers are a list without names; with words among them each cell has a column: ``c0``, ``c1``, …"""
    values = [_cell(cell) for cell in cells]
    if all(isinstance(value, float) for value in values):
        return {FEATURES: values}
    return {f"c{place}": value for place, value in enumerate(values)}


def _cell(cell: str) -> float | str | None:
    text = cell.strip()
    if not text:
        return math.nan
    try:
        return float(text)
    except ValueError:
        return text


def _scalar(cells: Sequence[str]) -> Json:
    values = [_cell(cell) for cell in cells]
    return values[0] if len(values) == 1 else values


def _flat(value: Json) -> list[Json]:
    if not isinstance(value, list):
        return [value]
    if not any(isinstance(each, list) for each in value):
        return value
    return [inner for each in value for inner in _flat(each)]


def _are_numbers(values: Sequence[Json]) -> bool:
    return all(isinstance(each, int | float) and not isinstance(each, bool) for each in values)
